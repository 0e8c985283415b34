"""What noise a promise takes, and what several promises are together: the Gaussian mechanism.

A row that is added or removed moves the numbers of a file by at most Δ in the Euclidean norm. Normal noise of standard
deviation σΔ then keeps the promise (ε, δ) if and only if

    Φ(1/(2σ) − εσ) − e^ε Φ(−1/(2σ) − εσ) ≤ δ

(Balle and Wang, "Improving the Gaussian mechanism for differential privacy", 2018). It also is ρ-zCDP with
ρ = 1/(2σ²); ρ of several files of the same rows add up (Bun and Steinke, 2016), and since all of them are Gaussian,
they are together what one file with noise σ = 1/√(2ρ) would be.

Noise of whole numbers (Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy", 2020) has the
same privacy loss at every point, (‖v‖² − 2⟨x, v⟩)/(2σ²), and sums over whole numbers in place of the integral. Where
the standard deviation is 2⁴⁰ steps, densities of both differ by a factor within 1 ± 10⁻⁹ wherever the noise is found
with probability 1 − 10⁻³⁰; `ROOM` more noise covers that many times over.
"""

from __future__ import annotations

import math

from scipy.optimize import brentq

from partsketch.common.errors import InputError
from partsketch.common.special import log_ndtr

#: What may be promised: beyond these the numbers of the mechanism leave the range in which its samples are exact.
LEAST_EPSILON, MOST_EPSILON = 0.001, 50.0
LEAST_DELTA, MOST_DELTA = 1e-15, 0.01
#: Noise that is added for the steps of whole numbers, and for the rounding of this calibration.
ROOM = 1e-7


def gaussian_delta(scale: float, epsilon: float) -> float:
    """Return the least δ with which noise of `scale` sensitivities keeps the promise of ε.

    Parameters
    ----------
    scale : float
        Standard deviation of the noise, divided by the sensitivity.
    epsilon : float
        ε.

    Returns
    -------
    float
        δ.
    """
    near, far = 1 / (2 * scale) - epsilon * scale, -1 / (2 * scale) - epsilon * scale
    first, second = float(log_ndtr(near)), epsilon + float(log_ndtr(far))
    return math.exp(first) * -math.expm1(min(second - first, 0.0))


def gaussian_scale(epsilon: float, delta: float) -> float:
    """Return the standard deviation, in sensitivities, of the least normal noise that keeps the promise (ε, δ).

    Parameters
    ----------
    epsilon, delta : float
        The promise.

    Returns
    -------
    float
        σ, with a little room for noise of whole numbers.
    """
    check_promise(epsilon, delta)

    def difference(log_scale: float) -> float:
        return math.log(max(gaussian_delta(math.exp(log_scale), epsilon), 1e-300)) - math.log(delta)

    found = brentq(difference, math.log(1e-3), math.log(1e6), xtol=1e-12, rtol=1e-12)
    return math.exp(found) * (1 + ROOM)


def gaussian_epsilon(scale: float, delta: float) -> float:
    """Return the least ε that noise of `scale` sensitivities keeps at this δ; zero where δ alone covers it.

    Parameters
    ----------
    scale : float
        Standard deviation of the noise, divided by the sensitivity; 1/√(2ρ) for releases with ρ in all.
    delta : float
        δ.

    Returns
    -------
    float
        ε.
    """
    if gaussian_delta(scale, 0.0) <= delta:
        return 0.0
    # At ε = 1/(2σ²) + z/σ the privacy loss exceeds ε with probability Φ(−z) only: δ is smaller than that.
    most = 1 / (2 * scale**2) + 40.0 / scale
    return float(brentq(lambda epsilon: gaussian_delta(scale, epsilon) - delta, 0.0, most, xtol=1e-12, rtol=1e-12))


def check_promise(epsilon: float, delta: float) -> None:
    """Refuse an ε or a δ that promises nothing, or that no noise of whole numbers can keep."""
    for name, value, least, most in (
        ("epsilon", epsilon, LEAST_EPSILON, MOST_EPSILON),
        ("delta", delta, LEAST_DELTA, MOST_DELTA),
    ):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not least <= value <= most:
            raise InputError(f"{name} is {value!r}: give a number from {least:g} to {most:g} (--{name}).")
