"""The calibration of noise against its definition, and the composition of promises against OpenDP's."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from partsketch import InputError
from partsketch.theory.gaussian_mechanism import ROOM, gaussian_delta, gaussian_epsilon, gaussian_scale

PROMISES = [(0.01, 1e-6), (0.3, 1e-6), (1.0, 1e-6), (1.0, 1e-12), (3.0, 1e-5), (20.0, 1e-9)]


@pytest.mark.parametrize(("epsilon", "delta"), PROMISES)
def test_delta_is_the_integral_that_defines_it(epsilon: float, delta: float) -> None:
    """δ = ∫ max(0, p(x) − e^ε p(x − 1)) dx for the densities of both neighbours."""
    scale = gaussian_scale(epsilon, delta)

    def above(x: float) -> float:
        return max(0.0, float(norm.pdf(x, 1, scale)) - math.exp(epsilon) * float(norm.pdf(x, 0, scale)))

    # Above zero from where the log of the ratio of densities is ε.
    begin = 0.5 + epsilon * scale**2
    found = quad(above, begin, begin + 20 * scale, epsabs=0, epsrel=1e-9, limit=200)[0]
    assert gaussian_delta(scale, epsilon) == pytest.approx(found, rel=1e-5)
    # A little below what was asked, by the room that is left for noise of whole numbers, and not more.
    assert delta * (1 - 200 * ROOM) < found <= delta


@pytest.mark.parametrize(("epsilon", "delta"), PROMISES)
def test_epsilon_is_the_inverse(epsilon: float, delta: float) -> None:
    assert gaussian_epsilon(gaussian_scale(epsilon, delta), delta) == pytest.approx(epsilon, rel=1e-5)


def test_several_releases_are_one_with_less_noise() -> None:
    """Two files with ε = 1 are tighter than 2, and than what OpenDP makes of their sum of ρ alone; above one."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    scale = gaussian_scale(1.0, 1e-6)
    rho = 2 / (2 * scale**2)
    both = gaussian_epsilon(1 / math.sqrt(2 * rho), 1e-6)
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    mechanism = dp.m.make_gaussian(*space, scale=1 / math.sqrt(2 * rho))
    profile = dp.c.make_zCDP_to_approxDP(mechanism).map(1.0)  # type: ignore[no-untyped-call]
    assert 1 < both < profile.epsilon(1e-6) < 2
    assert profile.epsilon(1e-6) < 1.15 * both


def test_less_noise_keeps_less() -> None:
    scales = np.geomspace(0.3, 30, 40)
    deltas = [gaussian_delta(float(scale), 1.0) for scale in scales]
    assert all(first > second for first, second in pairwise(deltas))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-6), (-1, 1e-6), (1, 0.0), (1, 0.5), (1, 1e-20), (1e9, 1e-6)])
def test_what_promises_nothing_is_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(InputError, match=r"epsilon is|delta is"):
        gaussian_scale(epsilon, delta)
