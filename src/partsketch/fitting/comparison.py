"""How far a fit is from exact least squares on the same rows, measured."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from partsketch.fitting.fit import Fit


def measured_excess_loss(fit: Fit, exact: Fit) -> NDArray[np.float64]:
    """Return L(a) − L(a*) for every target: how much more squared loss a fit has than the exact one.

    Computed as ‖R (a − a*)‖², which it equals for every a, and not as a difference of two large numbers.
    """
    mine, theirs = fit.model, exact.model
    difference = mine.coefficients - theirs.coefficients
    (summary,) = exact.summaries
    if theirs.record.options["fit_intercept"]:
        # At the centre of the factor's columns levels are no differences of huge numbers.
        centre = summary.centre[1 : 1 + len(difference)]
        levels = mine.predicted(centre[:, None]) - theirs.predicted(centre[:, None])
        difference = np.vstack([levels, difference])
    factor = summary.rows.moved(-summary.centre).high[:, : difference.shape[0]]
    return np.asarray(((factor @ difference) ** 2).sum(axis=0))


def minimal_loss(exact: Fit) -> NDArray[np.float64]:
    """Return the loss of the exact fit for every target."""
    return exact.combination.solutions[0].residual_sums
