"""Whether doubles hold a fit: where coefficients nearly cancel, rounding them is felt in what they predict."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.linalg.solution import Solution
from partsketch.model.explained import is_rounding
from partsketch.model.regression import Combination, Regression
from partsketch.summaries.summary import Summary
from partsketch.summaries.tasks import INTERCEPT

FloatArray = NDArray[np.float64]

#: Rounding may add this share to the loss before a fit is no longer said to lose nothing: it moves fitted values by a
#: thousandth of what the residuals are.
LARGEST_UNTOLD = 1e-6
#: From this share on the residuals themselves are not known: rounding moves fitted values by a tenth of them.
LARGEST_KNOWN = 1e-2

#: Terms of a prediction that are no larger than this many times the target cancel no more than sums usually do.
_USUAL = 1e3
#: Columns that a message names.
_SHOWN = 5

#: Share of the target's spread to which predictions hold, or a fit says that they do not.
LARGEST_ROUNDING = 1e-9


def cancellation_warnings(combination: Combination, summaries: Sequence[Summary], regression: Regression) -> list[str]:
    """Name columns whose coefficients are so large, and so nearly cancel, that predictions keep few digits."""
    found = []
    for number, target in enumerate(regression.targets):
        terms, norm = _terms(combination, combination.coefficients[:, number], summaries, regression, number)
        share = float(np.finfo(np.float64).eps) * float(terms.sum())
        if not share > LARGEST_ROUNDING * norm > 0:
            continue
        largest = sorted(np.argsort(-terms)[: min(len(terms), 2)] + regression.free_columns)
        named = " and ".join(repr(regression.features[place]) for place in largest)
        unit = "spread" if regression.free_columns else "size"
        found.append(
            f"Coefficients nearly cancel, most of all those of {named}: as doubles they predict {target!r} to about "
            f"{share / norm:.0e} of its {unit}, however well they are found. Give differences of such columns in place "
            "of the columns, or leave some out."
        )
    return found


def _terms(
    combination: Combination,
    coefficients: FloatArray,
    summaries: Sequence[Summary],
    regression: Regression,
    number: int,
) -> tuple[FloatArray, float]:
    """Return the norms of what is added up to predictions of one target, for all features that lie somewhere, and its.

    Columns of a factor are as long as those of the rows behind it. An intercept is added at the centre, uncancelled.
    Without summaries the norms are those that came with the solution, and nothing where none did.
    """
    if not summaries:
        solution, free = combination.solutions[0], regression.free_columns
        if solution.column_norms is None or solution.total_sums is None:
            return np.zeros(0), 0.0
        return np.abs(coefficients[free:]) * solution.column_norms[free:], float(np.sqrt(solution.total_sums[number]))
    columns = summaries[0].select((*regression.features, regression.targets[number]))
    with np.errstate(over="ignore"):
        norms, free = np.sqrt(np.einsum("ij,ij->j", columns, columns)), regression.free_columns
    return np.abs(coefficients[free:]) * norms[free:-1], float(norms[-1])


def known_loss(
    combination: Combination, summaries: Sequence[Summary], regression: Regression, number: int, is_certified: bool
) -> float:
    """Return the loss of an exact fit, zero where it is no more than rounding; refuse where rounding hides it.

    Of a fit whose loss was certified that is known already.
    """
    if not is_certified:
        _require_digits(combination, summaries, regression, number, LARGEST_KNOWN)
    loss = float(combination.solutions[0].residual_sums[number])
    return 0.0 if is_rounding(loss, summaries, regression, number) else loss


def require_minimum(
    combination: Combination, summaries: Sequence[Summary], regression: Regression, number: int
) -> None:
    """Refuse to say that an exact fit loses nothing where rounding, or columns that were left out, may change that."""
    _require_digits(combination, summaries, regression, number, LARGEST_UNTOLD)
    solution = combination.solutions[0]
    share = 0.0 if solution.avoidable is None else float(solution.avoidable[number])
    if not share <= LARGEST_UNTOLD:
        named = ", ".join(repr(alias.column) for alias in solution.aliased[:_SHOWN])
        raise InputError(
            f"columns were left out that others nearly determine ({named}), and the little that is left of them would "
            f"explain {share:.1g} of the loss: if that is more than rounding of the data, take a constant off columns "
            "that lie far from zero, fit an intercept, or give differences of columns in place of the columns."
        )
    if named := _hidden(solution):
        raise InputError(
            f"columns were left out that others nearly determine ({named}): what is left of them is below the rounding "
            f"of sums of squares, and columns that stay depend on one another so nearly (condition "
            f"{solution.condition:.0e}) that so little may count. Take a constant off columns that lie far from zero, "
            "fit an intercept, or leave these columns out."
        )


def _hidden(solution: Solution) -> str:
    """Name dependent columns of which sums of squares may hide a thousandth of what is left of others that stay."""
    from partsketch.common.linalg.double_double import NOISE

    if solution.avoidable is None or not float(np.sqrt(NOISE)) * solution.condition > np.sqrt(LARGEST_UNTOLD):
        return ""
    columns = [alias.column for alias in solution.aliased if set(alias.others) - {INTERCEPT}]
    return ", ".join(repr(column) for column in columns[:_SHOWN])


def _require_digits(
    combination: Combination, summaries: Sequence[Summary], regression: Regression, number: int, share: float
) -> None:
    """Refuse to state what rounding of the coefficients of an exact fit may change by more than a share of its loss."""
    found = _rounding_share(combination, summaries, regression, number)
    if not found <= share:
        raise InputError(
            "coefficients nearly cancel, and rounding them to doubles may add "
            f"{found:.1g} of the minimal loss: columns are too nearly dependent, or lie too far from zero for a fit "
            "without an intercept; leave columns out, or fit an intercept."
        )


def _rounding_share(
    combination: Combination, summaries: Sequence[Summary], regression: Regression, number: int
) -> float:
    """Return how much of the loss rounding may add: that of every coefficient, times the norm of its column."""
    solution = combination.solutions[0]
    loss = float(solution.residual_sums[number])
    if not loss > 0:
        return 0.0
    terms, target = _terms(combination, solution.coefficients[:, number], summaries, regression, number)
    if terms.sum() <= _USUAL * target or is_rounding(loss, summaries, regression, number):
        return 0.0
    return float((np.finfo(np.float64).eps * terms.sum() / np.sqrt(loss)) ** 2)
