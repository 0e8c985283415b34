"""Very many clusters of few rows: the rows, or their scores, are kept, and then taken cluster by cluster.

Sums of so many clusters would be as many numbers as the rows. To add a row to its sums is to read and to write a place
of memory that no other row is near; a row that is kept is written where the one before it was, and read once.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.lanes import LANES
from partsketch.engines.local import usable_cores
from partsketch.fitting.robust import kept_kernels
from partsketch.fitting.robust.kept_kernels import Kept
from partsketch.fitting.robust.left_out import LARGE_SHARE, change_without, check_shares
from partsketch.fitting.robust.scores import ScoreRequest
from partsketch.fitting.robust.strip_kernels import GROUP_BITS
from partsketch.fitting.robust.strips import MOST_COLUMNS
from partsketch.summaries.tasks import Piece

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Clusters beyond which their lines are not factored: squares are summed.
MANY_CLUSTERS = 1 << 14
#: Groups of clusters that a thread takes at once.
_GROUPS_AT_ONCE = 8
#: Rows that clusters have on average, up to which they are kept: memory is bounded by the clusters.
_MOST_ROWS_EACH = 4


def keeps_rows(columns: int, clusters: int, row_count: int | None) -> bool:
    """Tell whether clusters are so many, with so few rows each, that rows are kept."""
    few = row_count is not None and row_count <= _MOST_ROWS_EACH * clusters
    return few and clusters > MANY_CLUSTERS and columns <= MOST_COLUMNS


@dataclass(frozen=True, eq=False)
class ClusterSquares:
    """Sums over all clusters of the squares of their scores, or of what changes without them.

    Attributes
    ----------
    squares
        One matrix per target, in the coordinates of the pass.
    clusters
        How many have rows.
    """

    squares: FloatArray
    clusters: int


class _Rows:
    """The rows that the pass kept, segment by segment."""

    def __init__(self, whole: Piece, label: int) -> None:
        # What came from elsewhere may begin anywhere in its memory.
        matrices = [np.require(matrix, np.float64, ["C", "A"]) for matrix in whole.matrices]
        self.parts, starts = matrices[::2], matrices[1::2]
        addresses = np.array([part.__array_interface__["data"][0] for part in self.parts], dtype=np.int64)
        tiles, origin = [len(table) for table in starts], int(addresses.min())
        # Memory of doubles begins at multiples of eight bytes.
        bases = np.repeat((addresses - origin) // 8, tiles)
        self.kept = Kept(origin, bases, np.vstack(starts).astype(np.int64), self.parts[0].shape[1], label)

    def products(self, cluster: int, width: int, without: bool) -> FloatArray:
        """Return the products of columns and residuals of the rows of a cluster, or of all rows without it."""
        chosen = [part[(part[:, self.kept.label] == cluster) != without] for part in self.parts]
        return np.asarray(sum(rows[:, :width].T @ rows for rows in chosen))


def cluster_squares(request: ScoreRequest, whole: Piece, rank: int, named: Callable[[int], str]) -> ClusterSquares:
    """Take the rows that were kept cluster by cluster.

    Parameters
    ----------
    rank
        Of the columns: what the leverages of all rows add up to.
    named
        Gives the text of a cluster.
    """
    scored, width, targets = request.kind == "CRV1", request.width, request.coefficients.shape[1]
    rows = _Rows(whole, targets * width if scored else width + targets + 1)
    step, groups = -(-(width + 1) // LANES) * LANES if scored else rows.kept.step, rows.kept.starts.shape[1] - 1
    parts = [(first, min(first + _GROUPS_AT_ONCE, groups)) for first in range(0, groups, _GROUPS_AT_ONCE)]
    squares, aside = np.zeros((len(parts), targets, step, step)), np.zeros(groups << GROUP_BITS, dtype=bool)

    def work(number: int) -> tuple[int, float]:
        first, last = parts[number]
        if scored:
            return kept_kernels.add_scores(rows.kept, (first, last), width, squares[number]), rank
        noted = aside[first << GROUP_BITS : last << GROUP_BITS]
        found: tuple[int, float] = kept_kernels.add_changes(
            rows.kept, (first, last), width, LARGE_SHARE, squares[number], noted
        )
        return found

    # Parts hang on the number of clusters alone, whoever sums them.
    with ThreadPoolExecutor(min(usable_cores(), len(parts))) as pool:
        found, shares = zip(*pool.map(work, range(len(parts))), strict=True)
    upper = np.triu(squares.sum(axis=0)[:, :width, :width])
    total = upper + np.triu(upper, 1).transpose(0, 2, 1)
    if not scored:
        check_shares(sum(shares), rank)
        # The shares of all clusters add up to the rank, so that few are large.
        for cluster in np.flatnonzero(aside).tolist():
            total += _squares_aside(rows, cluster, width, targets, named)
    return ClusterSquares(total, sum(found))


def _squares_aside(rows: _Rows, cluster: int, width: int, targets: int, named: Callable[[int], str]) -> FloatArray:
    """Return the squares of what changes without a cluster that has a large share."""
    own = rows.products(cluster, width, without=False)
    change = change_without(
        own[:, :width],
        lambda: rows.products(cluster, width, without=True)[:, :width],
        own[:, width : width + targets],
        lambda: named(cluster),
    )
    return np.asarray(np.einsum("it,jt->tij", change, change))
