"""Clusters of two columns at once: noise hangs together between rows that share a value of either.

The middle of the sandwich is that of the clusters of one column, plus that of the other, less that of the clusters of
rows which share both. Labels of rows are first + count · second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from partsketch.fitting.robust import kernels
from partsketch.fitting.robust.cluster_lines import added_lines
from partsketch.fitting.robust.tiles import TileFeeder
from partsketch.summaries.tasks import Piece

if TYPE_CHECKING:
    from partsketch.fitting.robust.scores import ScoreRequest

FloatArray = NDArray[np.float64]

#: An eigenvalue of the difference below this part of the largest is not rounding: the matrix is no covariance.
_NEGATIVE = 1e-10

NOT_POSITIVE = (
    "Clusters of two columns give no covariance matrix here: it has a negative eigenvalue, which was set to zero in "
    "coordinates in which the columns are uncorrelated and of one length. There are few clusters of one of the columns "
    "for so many coefficients: take clusters of that column alone, or fewer features."
)


class TwoWays(TileFeeder):
    """Sums scores by the values of either column, and of both."""

    def __init__(self, request: ScoreRequest, partition: int, segment: int) -> None:
        super().__init__(request, partition, segment)
        self._found: tuple[list[FloatArray], ...] = ([], [], [])

    def _turned(self, rows: FloatArray) -> FloatArray:
        """Return rows in the coordinates of the fit, one line each."""
        return self._lines_of(rows)

    def _sum(self, rows: FloatArray, scores: FloatArray, weights: FloatArray, count: int) -> None:
        labels = self._labels[:count]
        second, first = np.divmod(labels, self.request.clusters)
        for of, found in zip((first, second, labels), self._found, strict=True):
            values, places = np.unique(of, return_inverse=True)
            sums = np.zeros((len(values), len(scores) * rows.shape[1] + 1))
            sums[:, -1] = values
            kernels.add_scores(places, rows, scores, np.arange(len(values)), len(values), sums)
            found.append(sums)

    def _matrices(self) -> tuple[FloatArray, ...]:
        return tuple(added_lines(np.vstack(found)) for found in self._found)


def two_way_spread(
    request: ScoreRequest, whole: Piece, root: FloatArray, number: int
) -> tuple[FloatArray, tuple[int, int], bool]:
    """Return lines whose squares add up to V₁ + V₂ − V₁₂ in the coordinates of γ, and numbers of clusters of columns.

    The last says whether that sum is a covariance matrix. Where it is not, its negative eigenvalues are set to zero.
    """
    first, second, both = (lines[:, number * request.width : (number + 1) * request.width] for lines in whole.matrices)
    squares = first.T @ first + second.T @ second - both.T @ both
    if request.root is None:
        squares = root.T @ squares @ root
    values, vectors = np.linalg.eigh((squares + squares.T) / 2)
    positive = bool(values[0] >= -_NEGATIVE * max(values[-1], 0.0))
    spread = np.sqrt(np.clip(values, 0.0, None))[:, None] * vectors.T
    return np.asarray(spread), (len(first), len(second)), positive
