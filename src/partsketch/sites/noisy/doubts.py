"""Where nothing is said of a fit to noisy sums of products, and where what is said may be luck of the noise."""

from __future__ import annotations

import math

from partsketch.theory.noisy_products import NoisyFit

#: Below this the laws, which hold to first order, give intervals that are too wide by more than a point.
LEAST_SIGNAL = 3.0
#: A minimal loss of fewer standard deviations of its noise divides nothing. It is told from nothing earlier, but files
#: that pass a low limit by luck of the noise state a share that is too small: at 6 one in seven of them misses, where a
#: tenth of the files pass.
_LEAST_LOSS = 6.0
#: What passes a limit by fewer deviations of its noise may have passed by luck: where at most half of such files pass,
#: nineteen in twenty of those that do are this close.
_CLOSE = 2.0


def doubt(fit: NoisyFit) -> str:
    """Return why nothing is said of a fit; empty where something is."""
    if fit.repaired:
        several = fit.repaired > 1
        return (
            f"the noise of the promise is as large as what {fit.repaired} direction{'s' * several} of the features "
            f"tell{'s' * (not several)}, and coefficients were drawn towards zero; it takes more rows, fewer columns "
            "or a larger epsilon"
        )
    if fit.signal < LEAST_SIGNAL:
        return (
            "the noise of the promise is nearly as large as what the features tell, and its law is not known well "
            "enough; it takes more rows, fewer columns or a larger epsilon"
        )
    return ""


def cautions(fit: NoisyFit) -> list[str]:
    """Return sentences where errors or shares are stated that luck may have let through.

    The noise of an eigenvalue has a standard deviation of √(2/p) in the units of the signal. A file that passes a limit
    by little may be one of few that do, and its noise is then not drawn as the law has it.
    """
    if doubt(fit):
        return []
    found = []
    if is_close(fit):
        found.append(
            "The noise of the promise is close to what the features tell: if other files of such rows would state no "
            "errors, this one does by luck of its noise, and its intervals are too short; it takes more rows, fewer "
            "columns or a larger epsilon."
        )
    if tells_loss(fit) and fit.minimal_loss < (_LEAST_LOSS + _CLOSE) * fit.loss_deviation:
        found.append(
            "The noise of the promise is close to the minimal loss: if other files of such rows would not say what "
            "share of it privacy cost, this one does by luck of its noise, and the share is too small; it takes more "
            "rows, fewer columns or a larger epsilon."
        )
    return found


def is_close(fit: NoisyFit) -> bool:
    """Whether the noise is close to what the features tell, or above it: laws to first order may not hold."""
    return fit.signal < LEAST_SIGNAL + _CLOSE * math.sqrt(2 / len(fit.coefficients))


def tells_loss(fit: NoisyFit) -> bool:
    """Whether the noise leaves the minimal loss to be seen."""
    return fit.minimal_loss > _LEAST_LOSS * fit.loss_deviation
