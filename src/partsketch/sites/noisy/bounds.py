"""Public bounds of columns: read, checked, and made into how a row is measured and clipped."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from partsketch.common.errors import InputError
from partsketch.common.reading import read_at_most
from partsketch.sources.base import Source
from partsketch.sources.encoding import Encoding
from partsketch.sources.formula.design import CATEGORY
from partsketch.summaries.noisy_summary import ColumnBounds

#: Bytes of a file of bounds.
_LARGEST_FILE = 1 << 24
#: Norm at which features are clipped, in units of the norm of a row whose columns all lie one spread from the centre.
_CLIP = 1.1
#: Share of the squared norm that targets take, against that of the features.
_OF_TARGETS = 0.5
_KEYS = ("lower", "upper", "centre", "spread")


@dataclass(frozen=True)
class Measures:
    """How rows are measured: bounds of features, then targets, and the norms that they are clipped to."""

    bounds: tuple[ColumnBounds, ...]
    clip: float
    norm: float


def read_bounds(bounds: Any) -> dict[str, Any]:
    """Return bounds by column, from a TOML file or a mapping."""
    if isinstance(bounds, Mapping):
        return dict(bounds)
    if not isinstance(bounds, str | os.PathLike):
        raise InputError(
            'bounds is a file or a mapping from columns to (lower, upper), such as {"age": (18, 90)} (--bounds).'
        )
    path = Path(bounds)
    try:
        return tomllib.loads(read_at_most(path, _LARGEST_FILE, "bounds").decode())
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not TOML in UTF-8: write bounds such as age = [18, 90].") from error


def measures_of(source: Source, bounds: Any) -> Measures:
    """Return how rows of a source are measured; nothing but what is public is used."""
    given = read_bounds(bounds)
    indicators = _indicators(source.encoding)
    features = [_bounds_of(name, given, name in indicators) for name in source.feature_names]
    targets = [_bounds_of(name, given, False) for name in source.target_names]
    unknown = [name for name in given if name not in (*source.feature_names, *source.target_names)]
    if unknown:
        raise InputError(f"There are bounds of {str(unknown[0])!r}, which is no column of the file: take them out.")
    if not features:
        raise InputError("There is nothing to explain a target by: name at least one feature.")
    largest = math.sqrt(1 + math.fsum(known.reach**2 for known in features))
    clip = min(_CLIP * math.sqrt(1 + len(features)), largest)
    if targets:
        # Noise of products with a target counts against its size, and that of all others against the norm: at a half
        # to one both are near their best.
        share = clip * math.sqrt(_OF_TARGETS / len(targets))
        targets = [replace(known, factor=share / known.reach) for known in targets]
    norm = math.sqrt(clip**2 + math.fsum(known.reach**2 for known in targets))
    if not math.isfinite(norm) or not all(math.isfinite(known.reach) for known in (*features, *targets)):
        raise InputError("Bounds are too far apart for their spreads: give spreads of the size of the bounds.")
    return Measures((*features, *targets), clip, norm)


def _indicators(encoding: Encoding) -> set[str]:
    """Return the features that are zero or one by themselves: levels, and products of levels in a formula."""
    names = {name for column in encoding.columns for name in encoding.indicator_names(column)}
    design = encoding.design
    if design is None:
        return names
    for term in design.terms:
        factors = [design.factors[number] for number, _ in term.factors]
        if factors and term.scale == 1 and all(factor.kind == CATEGORY and not factor.coding for factor in factors):
            names.update(term.names)
    return names


def _bounds_of(name: str, given: Mapping[str, Any], indicator: bool) -> ColumnBounds:
    if name not in given:
        if indicator:
            return ColumnBounds(0.0, 1.0, 0.5, 0.5)
        raise InputError(
            f"There are no bounds of column {name!r}: say between which values it lies, from what is publicly known "
            "and not from these rows (--bounds)."
        )
    values = _values(name, given[name])
    lower, upper = values["lower"], values["upper"]
    if not lower < upper:
        raise InputError(f"The bounds of column {name!r} are {lower:g} and {upper:g}: the first must be the smaller.")
    half = upper / 2 - lower / 2
    centre = values.get("centre", lower / 2 + upper / 2)
    # The standard deviation of values that are spread evenly between the bounds.
    spread = values.get("spread", half / math.sqrt(3))
    if not lower <= centre <= upper:
        raise InputError(f"The centre of column {name!r}, {centre:g}, is not between its bounds.")
    if not 0 < spread <= 2 * half or 2 * half / spread > 1e100:
        raise InputError(f"The spread of column {name!r}, {spread:g}, is not between 0 and the width of its bounds.")
    return ColumnBounds(lower, upper, centre, spread)


def _values(name: str, entry: Any) -> dict[str, float]:
    if isinstance(entry, Sequence) and not isinstance(entry, str) and len(entry) == 2:
        entry = dict(zip(_KEYS, entry, strict=False))
    if not isinstance(entry, Mapping) or not {"lower", "upper"} <= set(entry) <= set(_KEYS):
        raise InputError(
            f"The bounds of column {name!r} are neither two numbers nor lower and upper, with centre and spread where "
            "they are known: write [18, 90] or {lower = 18, upper = 90, spread = 15}."
        )
    for key, value in entry.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not abs(value) < 1e150:
            raise InputError(f"{key!r} of the bounds of column {name!r} is {value!r}: give a number.")
    return {str(key): float(value) for key, value in entry.items()}
