"""Whether doubles hold a fit: where coefficients nearly cancel, rounding them is felt in what they predict."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from partsketch.common.errors import InputError
from partsketch.model.explained import is_rounding
from partsketch.model.regression import Combination, Regression
from partsketch.summaries.summary import Summary

#: Rounding may add this share to the loss before a fit is no longer said to lose nothing: it moves fitted values by a
#: thousandth of what the residuals are.
LARGEST_UNTOLD = 1e-6
#: From this share on the residuals themselves are not known: rounding moves fitted values by a tenth of them.
LARGEST_KNOWN = 1e-2

#: Terms of a prediction that are no larger than this many times the target cancel no more than sums usually do.
_USUAL = 1e3


def known_loss(combination: Combination, summaries: Sequence[Summary], regression: Regression, number: int) -> float:
    """Return the loss of an exact fit, zero where it is no more than rounding; refuse where rounding hides it."""
    require_digits(combination, summaries, regression, number, LARGEST_KNOWN)
    loss = float(combination.solutions[0].residual_sums[number])
    return 0.0 if is_rounding(loss, summaries, regression, number) else loss


def require_digits(
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
    if not summaries or not loss > 0 or is_rounding(loss, summaries, regression, number):
        return 0.0
    # Columns of a factor are as long as those of the rows behind it. An intercept is added at the centre, uncancelled.
    columns = summaries[0].select((*regression.features, regression.targets[number]))
    *norms, target = np.linalg.norm(columns, axis=0)
    free = regression.free_columns
    terms = float(np.abs(solution.coefficients[free:, number]) @ norms[free:])
    if terms <= _USUAL * target:
        return 0.0
    return float((np.finfo(np.float64).eps * terms / np.sqrt(loss)) ** 2)
