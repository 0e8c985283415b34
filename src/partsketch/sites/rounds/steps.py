"""From gradients at the coefficients of all rounds to the next coefficients: preconditioned conjugate gradients.

The gradient `b − Gx` is known at every point x that was asked. Between these points it is known too, so the best point
of their affine hull is found without asking: that is where conjugate gradients with exact steps would be. From there
the next point lies in the direction of the gradient, divided by the sketched Gram matrix and made conjugate to the
directions before; how far is the median of what is best under the law of the sketches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partsketch.theory.moments import PartitionMoments

FloatArray = NDArray[np.float64]

_EPSILON = float(np.finfo(np.float64).eps)

#: Differences of gradients below this many times their rounding tell nothing of a direction.
_TELLING = 1e3

#: Rounding of a gradient of many rows, in units of one operation.
ROUNDING = 100 * _EPSILON


@dataclass(frozen=True, eq=False)
class Advance:
    """The best point that is known, and the direction from there.

    Attributes
    ----------
    point
        Coefficients with the least loss among those whose gradient is known.
    direction
        Where to go from there.
    seen
        `gᵀA⁻¹g` at the point.
    gained
        By how much the loss at the last point that was asked exceeds that at the best.
    """

    point: FloatArray
    direction: FloatArray
    seen: float
    gained: float


def advance(points: Sequence[FloatArray], gradients: Sequence[FloatArray], pooled: PartitionMoments) -> Advance:
    """Return the best point between those that were asked, and the direction from there.

    Parameters
    ----------
    points, gradients
        One of each per round, in order.
    pooled
        Moments of the stacked sketches, of full rank.
    """
    last, gradient = points[-1], gradients[-1]
    directions, images = _known_directions(points, gradients, pooled)
    if directions.shape[1]:
        curvature = directions.T @ images
        curvature = (curvature + curvature.T) / 2
        slopes = directions.T @ gradient
        lengths = np.linalg.solve(curvature, slopes)
        point, left, gained = last + directions @ lengths, gradient - images @ lengths, float(slopes @ lengths)
    else:
        point, left, gained = last, gradient, 0.0
    turned = pooled.inverse_root @ (pooled.inverse_root.T @ left)
    onward = turned
    if directions.shape[1]:
        onward = turned - directions @ np.linalg.solve(curvature, images.T @ turned)
    return Advance(point, onward, float(left @ turned), gained)


def _known_directions(
    points: Sequence[FloatArray], gradients: Sequence[FloatArray], pooled: PartitionMoments
) -> tuple[FloatArray, FloatArray]:
    """Return directions between the points, orthonormal for the sketches, and what G makes of them."""
    root, inverse = pooled.root, pooled.inverse_root
    # In whitened coordinates a gradient of rows with the residuals of the fit is rounded by about this.
    rounding = ROUNDING * np.sqrt(max(pooled.loss, 0.0))
    found: list[FloatArray] = []
    images: list[FloatArray] = []
    for point, gradient in zip(reversed(points[:-1]), reversed(gradients[:-1]), strict=True):
        direction, image = point - points[-1], gradients[-1] - gradient
        size = float(np.linalg.norm(root @ direction))
        if size == 0 or np.linalg.norm(inverse.T @ image) <= _TELLING * rounding:
            continue
        direction, image = direction / size, image / size
        # Twice, because once leaves rounding times the length of what was taken off.
        for _ in range(2):
            for known, known_image in zip(found, images, strict=True):
                share = float((root @ known) @ (root @ direction))
                direction, image = direction - share * known, image - share * known_image
        size = float(np.linalg.norm(root @ direction))
        if size > 1e-6:
            found.append(direction / size)
            images.append(image / size)
    width = len(points[-1])
    if not found:
        return np.empty((width, 0)), np.empty((width, 0))
    return np.column_stack(found), np.column_stack(images)
