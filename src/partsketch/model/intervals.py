"""Intervals and tests of the coefficients of a model: for the true ones, or for those of exact least squares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.shown import ShownAsText
from partsketch.common.student import half_width, p_values
from partsketch.common.units import p_value_phrase
from partsketch.model.assumptions import warn_of_restrictions
from partsketch.model.held import lengths, no_covariance
from partsketch.model.kept_intervals import KeptIntervals
from partsketch.model.restrictions import read_restrictions

if TYPE_CHECKING:
    from partsketch.model.model import Model

FloatArray = NDArray[np.float64]

#: What intervals may be of, and how a table calls it.
TRUTH, EXACT = "truth", "exact"
SUBJECTS = {TRUTH: "the true coefficients", EXACT: "the coefficients of exact least squares"}

#: Sums of squares of the same rows differ by less than this part: 1 - R² has lost at most six digits of sixteen.
_SAME_ROWS, _LEAST_LEFT = 1e-8, 1e-6

#: What rounding may be of a statistic: the digits that are shown hold.
_LARGEST_ROUNDING = 1e-6

_HIDDEN = (
    "Columns nearly determine one another, and rounding hides how sure the restricted sums of their coefficients are: "
    "give differences of such columns in place of the columns, or leave some out."
)


class Spread(NamedTuple):
    """Middle, standard errors and degrees of freedom of intervals; None when the middle is known without error.

    Intervals that were kept, of a wild bootstrap or of inverted tests, take the place of t quantiles; the latter may
    stand without standard errors.
    """

    centre: FloatArray
    errors: FloatArray | None
    freedom: float | None
    kept: KeptIntervals | None = None

    def tests(self) -> tuple[FloatArray | None, FloatArray | None]:
        """Return t values and two-sided p-values of zero; None when the middle is known without error.

        They are NaN where an error is zero: what is left of a perfect fit is rounding, and zero or not is no question.
        """
        if self.freedom is None:
            return None, None
        if self.errors is None:
            return None, None if self.kept is None else self.kept.p_values
        with np.errstate(divide="ignore", invalid="ignore"):
            t_values = np.where(self.errors > 0, self.centre / self.errors, np.nan)
        if self.kept is not None:
            return t_values, self.kept.p_values
        return t_values, p_values(t_values, self.freedom)


@dataclass(frozen=True, repr=False)
class RestrictionTest(ShownAsText):
    """An F test of linear restrictions on the coefficients.

    Attributes
    ----------
    statistic
        F.
    df
        Degrees of freedom: number of independent restrictions, and those of the noise.
    p_value
        Chance of an F at least as large if the restrictions hold.
    of
        "truth": the restrictions are on the true coefficients; "exact": on those of exact least squares.
    """

    statistic: float
    df: tuple[int, float]
    p_value: float
    of: str

    def __str__(self) -> str:
        return (
            f"F = {self.statistic:.4g} with {self.df[0]} and {_count(self.df[1])} degrees of freedom, "
            f"{p_value_phrase(self.p_value, 3)}, of {SUBJECTS[self.of]}"
        )


def _count(df: float) -> str:
    """Return degrees of freedom as they are read: 39,995, or 4.3 where they are no whole number."""
    return f"{df:,.0f}" if df >= 1000 or float(df).is_integer() else f"{df:.4g}"


def spread_of(model: Model, number: int, kind: str, of: str) -> Spread:
    """Return what the intervals of target `number` are made of, or say why there are none."""
    if of not in SUBJECTS:
        raise InputError(f"of is {of!r}: choose 'truth' or 'exact'.")
    inference = model.inferences[number]
    if of == TRUTH:
        centre = model.column_coefficients[:, number]
        if kind != "model":
            return Spread(centre, *inference.errors_of(kind))
        if inference.standard_errors is None and inference.inverted is not None:
            return Spread(centre, None, np.inf, inference.inverted)
        return Spread(centre, *inference.errors_of(kind), inference.wild or inference.inverted)
    if kind != "model":
        raise InputError(f"kind={kind!r} goes with of='truth': for of='exact' leave it out.")
    known = inference.around_exact
    if known.standard_errors is None:
        raise InputError(f"There are no intervals for exact least squares: {known.reason}.")
    return Spread(known.centre, known.standard_errors, known.degrees_of_freedom)


def by_target(model: Model, value: Callable[[Spread], FloatArray | None], with_errors: bool = True) -> FloatArray:
    """Return something of the true coefficients of every target, refused where it takes errors and there are none."""
    for inference in model.inferences if with_errors else ():
        inference.errors_of("model")
    values = [np.asarray(value(spread_of(model, i, "model", TRUTH))) for i in range(len(model.target_names))]
    return values[0] if len(values) == 1 else np.stack(values)


def check_level(level: float) -> None:
    """Refuse a coverage that is none."""
    if not 0 < level < 1:
        raise InputError(f"level is {level}: give a number between 0 and 1, such as 0.95.")


def ends(spread: Spread, level: float) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper ends of t intervals."""
    check_level(level)
    if spread.freedom is None:
        return spread.centre, spread.centre
    if spread.kept is not None:
        lower, upper = spread.kept.interval(level).T
        return lower, upper
    assert spread.errors is not None
    reach = half_width(level, spread.freedom) * spread.errors
    return spread.centre - reach, spread.centre + reach


def conf_int(model: Model, level: float, kind: str, of: str) -> FloatArray:
    """Return intervals of all targets: (columns, 2), or (targets, columns, 2) for several."""
    intervals = [
        np.stack(ends(spread_of(model, number, kind, of), level), axis=1) for number in range(len(model.target_names))
    ]
    return intervals[0] if len(intervals) == 1 else np.stack(intervals)


def tested(model: Model, restrictions: str | Model, of: str, target: str | None) -> RestrictionTest:
    """Test linear restrictions on the coefficients of a target, or a model that has fewer columns."""
    number = _target_number(model, target)
    if isinstance(restrictions, type(model)):
        matrix, values = _nested(model, restrictions)
    else:
        # Whatever is no text is refused there, in words.
        matrix, values = read_restrictions(cast(str, restrictions), model.column_names)
    spread = spread_of(model, number, "model", of)
    if spread.freedom is None:
        left = matrix @ spread.centre
        shown = ", ".join(f"{value:.6g}" for value in left)
        raise InputError(
            f"The coefficients of exact least squares are known, there is nothing to test: the left sides are {shown}."
        )
    inference = model.inferences[number]
    if of == TRUTH:
        inference.errors_of("model")
        warn_of_restrictions(model, matrix)
        return tested_in(model, number, matrix, values, spread.freedom)
    covariance = inference.around_exact.covariance
    if covariance is None:
        raise no_covariance(len(spread.centre))
    away = matrix @ spread.centre - values
    return _f_test(away, _by_covariance(matrix, covariance), spread.freedom, of)


def tested_in(model: Model, number: int, matrix: FloatArray, values: FloatArray, freedom: float) -> RestrictionTest:
    """Return the F test of `matrix @ coefficients = values` for the true coefficients of a target."""
    inference, centre = model.inferences[number], model.column_coefficients[:, number]
    if inference.covariance is None:
        raise no_covariance(len(centre))
    if inference.covariance_root is None:
        return _f_test(matrix @ centre - values, _by_covariance(matrix, inference.covariance), freedom, TRUTH)
    if model.column_names != model.feature_names:
        # The intercept is the value at the centre less what the slopes add up to there.
        matrix = np.hstack([matrix[:, :1], matrix[:, 1:] - matrix[:, :1] * model.centre])
        centre = np.concatenate([model.level[[number]], centre[1:]])
    return _f_test(matrix @ centre - values, _by_root(matrix, inference.covariance_root), freedom, TRUTH)


class _Restricted(NamedTuple):
    """How restricted sums vary: their standard errors, and eigenvalues and vectors of their correlations."""

    scale: FloatArray
    eigenvalues: FloatArray
    vectors: FloatArray


def _by_covariance(matrix: FloatArray, covariance: FloatArray) -> _Restricted:
    spread = matrix @ covariance @ matrix.T
    # No term of these sums is larger than the product of two such sums, and each is rounded to a double.
    added = np.abs(matrix) @ np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    # Restrictions on columns of other units have variances of other sizes: compare them in their own.
    scale = np.sqrt(np.maximum(np.diagonal(spread), 0.0))
    _require_digits(added, np.square(added), np.square(scale))
    eigenvalues, vectors = np.linalg.eigh(spread / np.outer(scale, scale))
    _require_independent(eigenvalues[0], eigenvalues[-1], 1e-12)
    _require_digits(added, np.sum(np.square(added / scale)), eigenvalues[0])
    return _Restricted(scale, eigenvalues, vectors)


def _by_root(matrix: FloatArray, root: FloatArray) -> _Restricted:
    """Return the same from a root, which takes no square of what nearly cancels."""
    lines, added = matrix @ root.T, np.abs(matrix) @ lengths(root)
    scale = lengths(lines.T)
    _require_digits(added, added, scale)
    vectors, sizes, _ = np.linalg.svd(lines / scale[:, None])
    smallest = sizes[-1] if len(lines) <= lines.shape[1] else 0.0
    _require_independent(smallest, sizes[0], 1e-13)
    _require_digits(added, np.linalg.norm(added / scale), smallest)
    return _Restricted(scale, np.square(sizes), vectors)


def _require_digits(added: FloatArray, rounded: Any, left: Any) -> None:
    """Refuse sums of which rounding leaves too little."""
    if not added.all():
        raise InputError("A restriction is on coefficients that have no variance: leave dependent columns out of it.")
    if not (float(np.finfo(np.float64).eps) * rounded <= _LARGEST_ROUNDING * left).all():
        raise InputError(_HIDDEN)


def _require_independent(smallest: float, largest: float, least: float) -> None:
    if smallest < least * largest:
        raise InputError(
            "The restrictions are not independent, are on dependent columns, or are more than there are clusters: "
            "state each thing once, and fewer of them."
        )


def _f_test(away: FloatArray, restricted: _Restricted, freedom: float, of: str) -> RestrictionTest:
    from scipy.special import fdtrc

    count = len(away)
    turned = restricted.vectors.T @ (away / restricted.scale)
    statistic = float(np.sum(turned**2 / restricted.eigenvalues)) / count
    return RestrictionTest(statistic, (count, freedom), float(fdtrc(count, freedom, statistic)), of)


def _nested(model: Model, smaller: Model) -> tuple[FloatArray, FloatArray]:
    """Return the restrictions that make a smaller model of a model: columns that it does not have are zero."""
    names, kept = model.column_names, set(smaller.column_names)
    extra = [place for place, name in enumerate(names) if name not in kept]
    circumstances = [(_intercepts(one.record.options), one.record.row_count) for one in (model, smaller)]
    alike = circumstances[0] == circumstances[1] and model.target_names == smaller.target_names
    if not kept < set(names) or not alike:
        raise InputError(
            "The other model is not nested in this one: it must have the same target, rows and kind of intercept, and "
            "some of this one's features."
        )
    for number, name in enumerate(model.target_names):
        here, there = (_sum_of_squares(one, number) for one in (model, smaller))
        if here is not None and there is not None and abs(here - there) > _SAME_ROWS * here:
            raise InputError(
                f"The other model is not of the same rows: there {name!r} has the sum of squares {there:.10g}, and "
                f"here {here:.10g}. Fit both to the same rows."
            )
    return np.eye(len(names))[extra], np.zeros(len(extra))


def _intercepts(options: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return which intercepts a model has: what a fit to rows says in other words than one to summaries."""
    return options.get("intercept", "common" if options["fit_intercept"] else False), options.get("absorb")


def _sum_of_squares(model: Model, number: int) -> float | None:
    """Return the sum of squares that R² of an exact fit is a share of; None where digits of it are lost."""
    loss, share = model.certificates[number].minimal_loss, model.inferences[number].r_squared
    if model.record.options["method"] != "exact" or loss is None or share is None or share > 1 - _LEAST_LEFT:
        return None
    return loss / (1 - share)


def _target_number(model: Model, target: str | None) -> int:
    if target is None and len(model.target_names) == 1:
        return 0
    if target not in model.target_names:
        named = ", ".join(map(repr, model.target_names))
        raise InputError(f"target is {target!r}: name one of {named}.")
    return model.target_names.index(target)
