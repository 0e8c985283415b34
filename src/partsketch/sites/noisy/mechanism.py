"""Noise of OpenDP on sums of products in whole numbers.

A row of whole numbers v with ‖v‖ ≤ N, N = 2²⁰, adds vvᵀ to the sums. What gets noise is 29 times the diagonal and 41
times what is above it. Since 41² ≤ 2·29², one row more or less moves these numbers by at most

    √(29² Σ vᵢ⁴ + 41² Σ_{i<j} vᵢ²vⱼ²) ≤ 29 ‖vvᵀ‖_F = 29 ‖v‖² ≤ 29 N²

in the Euclidean norm, exactly: all of it are whole numbers. The noise is that of OpenDP's Gaussian mechanism on whole
numbers, of standard deviation σ · 29 N², σ by `theory/gaussian_mechanism.py`. OpenDP holds 64 bits, sums of many rows
have more: its mechanism is asked for the noise of zeros, which is then added in whole numbers of any size. The noise
does not depend on what it is added to, so that this is the same mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.summaries.noisy_summary import BESIDE_DIAGONAL, ON_DIAGONAL, STEPS, unit_of_steps
from partsketch.theory.gaussian_mechanism import gaussian_scale

FloatArray = NDArray[np.float64]

#: How far one row moves the whole numbers that get noise.
SENSITIVITY = ON_DIAGONAL * STEPS**2


def check_mechanism() -> None:
    """Refuse before any work what cannot be done without OpenDP."""
    try:
        import opendp  # noqa: F401
    except ImportError as error:
        raise InputError(
            "A promise (epsilon, delta) takes the noise of OpenDP: install it with pip install 'partsketch[private]'."
        ) from error


def draw_noise(count: int, epsilon: float, delta: float) -> list[int]:
    """Return so many whole numbers of noise that keep the promise for numbers of this sensitivity."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    scale = gaussian_scale(epsilon, delta)
    mechanism = dp.m.make_gaussian(*space, scale=scale * SENSITIVITY)
    # What OpenDP itself says that a row costs, against what the ledger will say.
    cost: float = mechanism.map(float(SENSITIVITY))  # type: ignore[no-untyped-call]
    if cost > (1 + 1e-9) / (2 * scale**2):
        raise AssertionError("OpenDP's privacy map does not agree with the calibration")
    return [int(value) for value in mechanism([0] * count)]


def noisy_products(
    sums: Sequence[Sequence[int]], norm: float, epsilon: float, delta: float, noise: Sequence[int] | None = None
) -> FloatArray:
    """Return sums of products with noise, in the measure of the rows and no longer in steps.

    Parameters
    ----------
    sums
        Of rows in steps, symmetric.
    norm
        Largest norm of a row, in its measure.
    epsilon, delta
        The promise.
    noise
        Of the diagonal and what is above it, line by line; drawn here unless it was drawn before, for many at once.
    """
    count = len(sums)
    places = [(i, j) for i in range(count) for j in range(i, count)]
    drawn = draw_noise(len(places), epsilon, delta) if noise is None else noise
    square = unit_of_steps(norm, count) ** 2
    products = np.empty((count, count))
    for (i, j), number in zip(places, drawn, strict=True):
        weight = ON_DIAGONAL if i == j else BESIDE_DIAGONAL
        # Division of whole numbers rounds once, to the nearest double.
        products[i, j] = products[j, i] = (weight * sums[i][j] + number) / weight * square
    return products
