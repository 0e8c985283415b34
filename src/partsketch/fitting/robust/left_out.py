"""What becomes of the coefficients when each cluster is left out in turn."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.engines.local import usable_cores
from partsketch.fitting.robust import kernels

FloatArray = NDArray[np.float64]

#: A cluster with a larger share of some direction than this is taken out by adding the others, not by subtracting it.
LARGE_SHARE = 0.9
#: What the others leave of a direction, below which they do not determine it.
_NOTHING = 1e-10
#: How far the leverages of all rows may be from the rank, of which they are the sum: rounding, with a wide margin.
_LARGEST_DRIFT = 1e-6
#: Clusters that a thread takes at once.
_AT_ONCE = 1 << 14


def turned(packed: FloatArray, root: FloatArray) -> FloatArray:
    """Return products of the columns of clusters, lower triangles line by line, in the coordinates of the root."""
    rows, columns = np.tril_indices(len(root))
    whole = np.empty((len(packed), len(root), len(root)))
    whole[:, rows, columns] = whole[:, columns, rows] = packed
    rows, columns = np.tril_indices(root.shape[1])
    return np.asarray((root.T @ whole @ root)[:, rows, columns])


def _unpacked(packed: FloatArray, width: int) -> FloatArray:
    """Return the symmetric matrix of which the lower triangle is given, line by line."""
    matrix = np.zeros((width, width))
    matrix[np.tril_indices(width)] = packed
    return matrix + np.tril(matrix, -1).T


def left_out(packed: FloatArray, scores: FloatArray, named: Callable[[int], str]) -> FloatArray:
    """Return γ without each cluster, less γ: shape (clusters, rank)."""
    rank = scores.shape[1]
    changes, scores = np.empty(scores.shape), np.ascontiguousarray(scores)

    def solve(first: int) -> None:
        here = slice(first, first + _AT_ONCE)
        kernels.leave_out_each(packed[here], scores[here], LARGE_SHARE, changes[here])

    # Each cluster has a system of its own, whoever solves it.
    with ThreadPoolExecutor(usable_cores()) as pool:
        list(pool.map(solve, range(0, len(scores), _AT_ONCE)))
    # The shares of all clusters add up to the rank, so that few are large.
    for cluster in np.flatnonzero(np.isnan(changes).any(axis=1)).tolist():

        def of_others(cluster: int = cluster) -> FloatArray:
            return _unpacked(packed[:cluster].sum(axis=0) + packed[cluster + 1 :].sum(axis=0), rank)

        own = _unpacked(packed[cluster], rank)
        changes[cluster] = change_without(own, of_others, scores[cluster], partial(named, cluster))
    return changes


def change_without(
    own: FloatArray, of_others: Callable[[], FloatArray], scores: FloatArray, named: Callable[[], str]
) -> FloatArray:
    """Return γ without a cluster, less γ, from its products and scores; those of all others are asked for if needed."""
    others = np.eye(len(own)) - own
    if np.linalg.eigvalsh(own)[-1] > LARGE_SHARE:
        # What lies outside a cluster that has nearly all of a direction is added up, not what is left of the identity.
        others = of_others()
        if np.linalg.eigvalsh(others)[0] < _NOTHING:
            raise InputError(
                f"Without the rows of cluster {named()!r} the others do not determine all coefficients, and "
                "vcov='CRV3' leaves out each in turn: ask for 'CRV1', or leave columns out."
            )
    return np.asarray(-np.linalg.solve(others, scores))


def check_shares(shares: float, rank: int) -> None:
    """Refuse where the leverages of all rows are not what they must be in all."""
    if abs(shares - rank) > _LARGEST_DRIFT * rank:
        raise InputError("Columns are too nearly dependent for vcov='CRV3': leave some out, or ask for 'iid'.")
