"""Least squares by preconditioned conjugate gradients, refined with true residuals until rounding stops it.

Conjugate gradients on R⁻ᵀAᵀA R⁻¹ need one pass per step, in which d numbers leave every segment of rows. Their own
residuals drift away from the true ones by rounding; so every run is short, and a new one starts from the residuals of
the coefficients themselves. The rounding of a run then only slows the next one down, and the last coefficients are as
accurate as a direct method's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partsketch.fitting.refinement.conditioners import Conditioner
from partsketch.fitting.refinement.passes import Products, RowPasses

FloatArray = NDArray[np.float64]

_EPSILON = float(np.finfo(np.float64).eps)

#: A run stops at this part of the gradient that it began with: rounding has a say from there on.
_RUN_REDUCTION = 1e-7

_LARGEST_RUNS = 8

#: Part of the worst case of rounding, ε·condition·‖residual‖, that is usually reached.
_USUAL_ROUNDING = 0.02

#: How many times what rounding explains of a gradient may be left where steps no longer make it smaller. Directions in
#: which columns nearly cancel are lost in the rounding of the others: what is left of a gradient there is far more.
_MOST_LEFT = 100.0

#: Part of a random probe that may be left when columns are independent: dependent ones leave about 1/√d of it.
PROBE_LEFT = 1e-6


@dataclass(frozen=True, eq=False)
class Iterated:
    """Coefficients, the residual sums of squares that belong to them, and whether rounding alone ended the steps.

    `probe_left` is the part of the probe that the steps left, nan without a probe; `last` is a pass with the targets.
    """

    coefficients: FloatArray
    residual_sums: FloatArray
    converged: bool
    probe_left: float
    last: Products


def iterate(
    rows: RowPasses,
    conditioner: Conditioner,
    start: FloatArray,
    steps: int,
    first: Products | None = None,
    probe: FloatArray | None = None,
) -> Iterated:
    """Refine coefficients until rounding stops it, or for `steps` steps.

    Parameters
    ----------
    rows
        The rows.
    conditioner
        Preconditioner.
    start
        Coefficients to begin with, a column per target.
    steps
        Largest number of steps.
    first
        The pass for `start`, if it has been made.
    probe
        A gradient, one column, that takes part in the passes until little is left of it, but does not keep them going.
    """
    best, smallest, sums = start, np.full(start.shape[1], np.inf), np.full(start.shape[1], np.inf)
    coefficients = start
    probe_size = np.nan if probe is None else np.linalg.norm(probe)
    probe_left = 1.0 if probe is not None else np.nan
    for _ in range(_LARGEST_RUNS):
        products = first or rows.multiply(coefficients, with_targets=True)
        first = None
        gradient = conditioner.divide_transposed(products.gradients)
        sizes = np.linalg.norm(gradient, axis=0)
        better = sizes < smallest
        stagnant = sizes > 0.5 * smallest
        best = np.where(better, coefficients, best)
        sums = np.where(better, products.residual_sums, sums)
        smallest = np.minimum(sizes, smallest)
        floor = _EPSILON * np.sqrt(products.residual_sums) * max(1.0, _USUAL_ROUNDING * conditioner.condition)
        open_ones = ~stagnant & (sizes > floor) & (sizes > 0)
        if not open_ones.any():
            enough = smallest <= _MOST_LEFT * (floor + _rounding(products, conditioner, best))
            return Iterated(best, sums, bool(enough.all()), probe_left, products)
        if steps <= 0:
            break
        gradient, floor = gradient[:, open_ones], floor[open_ones]
        riding = probe is not None and probe_left > PROBE_LEFT
        if probe is not None and riding:
            gradient, floor = np.hstack([gradient, probe]), np.append(floor, np.inf)
        solution, residual, used = _run(rows, conditioner, gradient, floor, steps)
        if riding:
            probe = residual[:, -1:]
            probe_left = float(np.linalg.norm(probe) / probe_size)
        steps -= used
        correction = np.zeros_like(best)
        correction[:, open_ones] = solution[:, : open_ones.sum()]
        coefficients = best + conditioner.divide(correction)
    return Iterated(best, sums, False, probe_left, products)


def _rounding(products: Products, conditioner: Conditioner, coefficients: FloatArray) -> FloatArray:
    """Return what rounding leaves of gradients over R: one step of the targets, and of each term of fitted values."""
    terms = np.sqrt(products.target_sums[1]) + conditioner.norms @ np.abs(coefficients)
    return np.asarray(_EPSILON * np.sqrt(len(coefficients)) * terms)


def _run(
    rows: RowPasses, conditioner: Conditioner, gradient: FloatArray, floor: FloatArray, steps: int
) -> tuple[FloatArray, FloatArray, int]:
    """Solve R⁻ᵀAᵀA R⁻¹ u = gradient roughly, all columns in the same passes.

    Return u, what is left of the gradient, and the steps it took.
    """
    solution, residual, direction = np.zeros_like(gradient), gradient.copy(), gradient.copy()
    square = np.einsum("ij,ij->j", residual, residual)
    enough = np.maximum(_RUN_REDUCTION**2 * square, (0.3 * floor) ** 2)  # infinite for a probe
    moving = square > 0
    used = 0
    while used < steps and (moving & (square > enough)).any():
        used += 1
        products = rows.multiply(conditioner.divide(direction), with_targets=False)
        image = -conditioner.divide_transposed(products.gradients)
        curvature = np.einsum("ij,ij->j", direction, image)
        moving = curvature > 0
        length = np.divide(square, curvature, out=np.zeros_like(square), where=moving)
        solution += length * direction
        residual -= length * image
        before, square = square, np.einsum("ij,ij->j", residual, residual)
        turn = np.divide(square, before, out=np.zeros_like(square), where=moving)
        direction = (residual + turn * direction) * moving
    return solution, residual, used
