"""Where the pass over the rows keeps what it has summed of each cluster."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class ClusterLines:
    """The sums of clusters, a line each."""

    def __init__(self, clusters: int, segment_rows: int, numbers: int) -> None:
        self._most = clusters
        # Where a segment may have rows of all clusters, each has its line at once, in the order of their numbers.
        self._seen: NDArray[np.bool_] | None = None
        if clusters <= segment_rows:
            self._seen = np.zeros(clusters, dtype=bool)
            self.slots = np.arange(clusters)
            self.sums = np.zeros((clusters, numbers))
            self.sums[:, -1] = self.slots
        else:
            self.slots = np.full(clusters, -1, dtype=np.int64)
            self.sums = np.empty((64, numbers))
        self.used = 0

    def prepare(self, labels: IntArray) -> None:
        """See that there is room for these clusters."""
        if self._seen is not None:
            self._seen[labels] = True
        elif self.used + len(labels) > len(self.sums):
            size = min(max(2 * len(self.sums), self.used + len(labels)), self._most + len(labels))
            grown = np.empty((size, self.sums.shape[1]))
            grown[: self.used] = self.sums[: self.used]
            self.sums = grown

    def found(self) -> tuple[FloatArray, ...]:
        """Return the lines of clusters that have rows."""
        if self._seen is not None:
            return (self.sums if self._seen.all() else self.sums[self._seen],)
        # In the order of the clusters' numbers.
        return (self.sums[self.slots[np.flatnonzero(self.slots >= 0)]],)


def added_lines(lines: FloatArray) -> FloatArray:
    """Add lines of the same cluster, whose number comes last, in their order; the sums are in that of the clusters."""
    lines = lines[np.argsort(lines[:, -1], kind="stable")]
    starts = np.flatnonzero(np.diff(lines[:, -1], prepend=-1.0))
    merged = np.add.reduceat(lines, starts, axis=0)
    merged[:, -1] = lines[starts, -1]
    return np.asarray(merged)
