"""The lasso and the elastic net on a factor: coordinate descent finds which columns take part, one solve their values.

Minimised is ½‖z − R b‖² + Σ p_j |b_j| + ½ Σ q_j b_j². Coordinate descent is slow to the last digits; once it knows the
signs, the solution is that of linear equations, and whether it is the one can be checked.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.compiled import compiled

FloatArray = NDArray[np.float64]

#: Changes in units of the target at which descent stops and the equations are tried, one after the other.
_TOLERANCES = (1e-5, 1e-8, 1e-11, 1e-14)
_MOST_SWEEPS = 20_000

#: By how much of the penalty a column that takes no part may pull, and of its own size an equation may be missed.
_SLACK = 1e-9


@compiled
def _descend(gram, pull, squares, absolute, b, tolerance, sweeps):  # type: ignore[no-untyped-def]
    """Change one coefficient after the other until none moves by more than the tolerance; `pull` is Rᵀ(z − R b)."""
    for _ in range(sweeps):
        largest = 0.0
        for j in range(b.size):
            curvature = gram[j, j] + squares[j]
            if curvature <= 0.0:
                continue
            before = b[j]
            rest = pull[j] + gram[j, j] * before
            size = abs(rest) - absolute[j]
            after = 0.0
            if size > 0.0:
                after = (size if rest > 0.0 else -size) / curvature
            if after != before:
                change = after - before
                b[j] = after
                for i in range(b.size):
                    pull[i] -= gram[i, j] * change
                moved = abs(change) * np.sqrt(curvature)
                if moved > largest:
                    largest = moved
        if largest <= tolerance:
            return True
    return False


def minimise(
    root: FloatArray, right: FloatArray, absolute: FloatArray, squares: FloatArray, start: FloatArray
) -> FloatArray:
    """Return the coefficients b of least penalised loss for the factor R and z = `right`."""
    gram = np.ascontiguousarray(root.T @ root)
    b = start.copy()
    scale = float(np.linalg.norm(right))
    for tolerance in _TOLERANCES:
        pull = root.T @ (right - root @ b)
        _descend(gram, pull, squares, absolute, b, tolerance * scale, _MOST_SWEEPS)
        exact = _of_signs(root, right, absolute, squares, np.sign(b))
        if exact is not None:
            return exact
    return b


def _of_signs(
    root: FloatArray, right: FloatArray, absolute: FloatArray, squares: FloatArray, signs: FloatArray
) -> FloatArray | None:
    """Return the solution if its coefficients have these signs, else None."""
    from scipy.linalg import solve_triangular

    active = np.flatnonzero(signs)
    b = np.zeros(len(signs))
    if active.size:
        width = active.size
        rows = np.zeros((len(root) + width, width + 1))
        rows[: len(root), :width], rows[: len(root), width] = root[:, active], right
        rows[len(root) :, :width] = np.diag(np.sqrt(squares[active]))
        factor: FloatArray = np.asarray(np.linalg.qr(rows, mode="r"))
        upper = factor[:width, :width]
        if not np.abs(np.diagonal(upper)).min() > 0:
            return None
        held = solve_triangular(upper, absolute[active] * signs[active], trans="T", check_finite=False)
        b[active] = solve_triangular(upper, factor[:width, width] - held, check_finite=False)
        if not np.array_equal(np.sign(b), signs):
            return None
    pull = np.abs(root.T @ (right - root @ b))
    idle = signs == 0
    room = _SLACK * np.linalg.norm(root, axis=0) * float(np.linalg.norm(right))
    return b if np.all(pull[idle] <= absolute[idle] * (1 + _SLACK) + 1e-4 * room[idle]) else None
