"""Contrasts of categories: what stands in the columns for each level, as formulaic defines it."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from partsketch.common.errors import InputError
from partsketch.sources.formula.design import CATEGORY, Factor
from partsketch.sources.formula.expressions import called

#: Levels that a sentence lists.
_SHOWN = 10


def load_formulaic() -> Any:
    """Return formulaic, or say how to have it."""
    try:
        import formulaic
    except ImportError as error:
        raise InputError("Formulas need formulaic: pip install 'partsketch[formula]'.") from error
    return formulaic


def with_contrasts(factor: Factor) -> tuple[Factor, Any]:
    """Return a category with the coding that its call of `C` asks for, and formulaic's own contrasts."""
    if factor.kind != CATEGORY or called(factor.whole) != "C":
        return factor, None
    call = factor.whole.tree
    assert isinstance(call, ast.Call)
    given = dict(zip(("contrasts",), call.args[1:2], strict=False))
    given |= {str(keyword.arg): keyword.value for keyword in call.keywords}
    unknown = [name for name in given if name not in ("contrasts", "levels")]
    if unknown or len(call.args) > 2:
        raise InputError(f"{factor.expression!r} in the formula has arguments that C does not have: contrasts, levels.")
    if "contrasts" not in given:
        return factor, None
    contrasts = _contrasts(given["contrasts"], factor)
    try:
        matrix = contrasts.get_coding_matrix(list(factor.levels), reduced_rank=True)
    except (ValueError, KeyError) as error:
        levels = f"{', '.join(factor.levels[:_SHOWN])}{', …' if len(factor.levels) > _SHOWN else ''}"
        reason = str(error).rstrip(".")
        raise InputError(
            f"The contrasts of {factor.expression!r} do not go with its levels ({levels}): {reason}."
        ) from error
    if type(contrasts).__name__ in ("TreatmentContrasts", "SASContrasts"):
        missing = [number for number, row in enumerate(matrix.to_numpy()) if not row.any()]
        return replace(factor, reference=missing[0]), contrasts
    coding = tuple(tuple(float(value) for value in row) for row in matrix.to_numpy())
    return replace(factor, coding=coding), contrasts


#: Contrasts by the names of formulaic (after `contr.`) and of patsy, and formulaic's class of each.
_CONTRASTS = {
    "treatment": "TreatmentContrasts",
    "SAS": "SASContrasts",
    "sum": "SumContrasts",
    "helmert": "HelmertContrasts",
    "diff": "DiffContrasts",
    "poly": "PolyContrasts",
    "Treatment": "TreatmentContrasts",
    "Sum": "SumContrasts",
    "Helmert": "HelmertContrasts",
    "Diff": "DiffContrasts",
    "Poly": "PolyContrasts",
}


def _contrasts(tree: ast.expr, factor: Factor) -> Any:
    """Return the contrasts that are written, with constants as arguments."""
    from formulaic.transforms import contrasts as known

    function = tree.func if isinstance(tree, ast.Call) else tree
    name = (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )
    if name not in _CONTRASTS:
        raise InputError(
            f"{factor.expression!r} in the formula has contrasts that are not known: write contr.treatment, contr.sum, "
            "contr.helmert, contr.diff, contr.poly or contr.SAS."
        )
    values = tree.args if isinstance(tree, ast.Call) else []
    named = tree.keywords if isinstance(tree, ast.Call) else []
    try:
        given = [ast.literal_eval(value) for value in values]
        keywords = {
            "base" if word.arg == "reference" else str(word.arg): ast.literal_eval(word.value) for word in named
        }
        if name in ("treatment", "Treatment"):
            given, keywords = (
                [_level(value) for value in given],
                {key: _level(value) for key, value in keywords.items()},
            )
        return getattr(known, _CONTRASTS[name])(*given, **keywords)
    except (ValueError, TypeError, SyntaxError) as error:
        raise InputError(f"Cannot read the contrasts of {factor.expression!r} in the formula: {error}.") from error


def _level(value: Any) -> str:
    """Return a level as it is written in a formula, as the text that stands for it."""
    return str(value)


def written_levels(factor: Factor) -> tuple[str, ...] | None:
    """Return the levels that a call of `C` lists; None where they are to be found."""
    if factor.kind != CATEGORY or called(factor.whole) != "C":
        return None
    assert isinstance(factor.whole.tree, ast.Call)
    for keyword in factor.whole.tree.keywords:
        if keyword.arg == "levels":
            try:
                return tuple(str(level) for level in ast.literal_eval(keyword.value))
            except (ValueError, TypeError) as error:
                raise InputError(
                    f"The levels of {factor.expression!r} in the formula must be a list of texts."
                ) from error
    return None
