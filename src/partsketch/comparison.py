"""How far a fit is from exact least squares on the same rows, measured."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from partsketch.fitting import Fit


def measured_excess_loss(fit: Fit, exact: Fit) -> NDArray[np.float64]:
    """Return L(a) − L(a*) for every target: how much more squared loss a fit has than the exact one.

    Computed as ‖R (a − a*)‖², which it equals for every a, and not as a difference of two large numbers.
    """
    difference = fit.combination.coefficients - exact.combination.coefficients
    factor = exact.summaries[0].matrix[:, : difference.shape[0]]
    return np.asarray(((factor @ difference) ** 2).sum(axis=0))


def minimal_loss(exact: Fit) -> NDArray[np.float64]:
    """Return the loss of the exact fit for every target."""
    return exact.combination.solutions[0].residual_sums
