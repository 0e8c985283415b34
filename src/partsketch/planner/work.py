"""The sizes that the costs of a fit depend on."""

from __future__ import annotations

import math
from dataclasses import dataclass

from partsketch.model.methods import METHODS
from partsketch.sketches.base import SEGMENT_ROWS, get_sketch
from partsketch.sources.base import NO_CODES, Codes

#: With more tasks than this workers end at about the same time.
_MANY_TASKS = 256


@dataclass(frozen=True)
class Work:
    """The sizes that costs depend on.

    Attributes
    ----------
    rows, columns, targets
        Rows n; columns to estimate d, the intercept included; targets.
    method, sketch
        Names; the sketch of an exact method is "triangular".
    partitions, sketch_size
        k and m; m is None for exact summaries.
    storage
        "memory", or the format of the files: "Parquet", "CSV", "Feather".
    extra_passes
        Passes over the rows before the fit, to find the values of columns.
    counting_passes
        Passes before that which only count the rows.
    splittable
        Whether several workers may read at once.
    group_rows
        Rows of a row group or record batch in files.
    codes
        Columns that are held as codes.
    """

    rows: int
    columns: int
    targets: int
    method: str
    sketch: str
    partitions: int
    sketch_size: int | None
    storage: str = "memory"
    extra_passes: int = 0
    counting_passes: int = 0
    splittable: bool = True
    group_rows: int = SEGMENT_ROWS
    codes: Codes = NO_CODES

    @property
    def width(self) -> int:
        """Columns of a summary, q."""
        return self.columns + self.targets

    @property
    def by_code(self) -> bool:
        """Whether codes are summed as such, not as dense columns."""
        return get_sketch(self.sketch).takes_codes and self.codes.pay_off

    @property
    def summary_rows(self) -> int:
        """Rows of one summary: m, or q for the exact factor."""
        return self.width if self.sketch_size is None else self.sketch_size

    @property
    def sketches(self) -> int:
        """Summaries of every row: k for sketches of the whole, else one."""
        return self.partitions if METHODS[self.method].sketched and not METHODS[self.method].by_partition else 1

    @property
    def accumulations(self) -> int:
        """Matrices that every row is added to: one per summary, or one for all where they share a pass."""
        return 1 if get_sketch(self.sketch).shares_pass else self.sketches

    @property
    def summaries(self) -> int:
        """Summaries in all."""
        return 1 if self.method == "exact" else self.partitions

    @property
    def tasks(self) -> int:
        """Pieces of work that may go on at the same time."""
        if not self.splittable:
            return 1
        return self._parts * max(1, math.ceil(self.rows / self._parts / self._segment_rows))

    @property
    def _segment_rows(self) -> int:
        return get_sketch(self.sketch).segment_rows

    @property
    def _parts(self) -> int:
        return self.partitions if METHODS[self.method].by_partition else 1

    def evenness(self, workers: int) -> float:
        """Return how many workers' time the rows take up, at most all: the last task may find the others idle."""
        if workers == 1 or not self.splittable or self.tasks == 1:
            return 1.0
        if self.tasks > _MANY_TASKS:
            return float(workers)
        parts, longest = self._parts, self._segment_rows
        if self.storage != "memory" and self.group_rows > longest:
            # Segments that start in the same row group are read by one worker, whatever their partition.
            parts, longest = 1, self.group_rows
        whole, rest = divmod(self.rows / parts, longest)
        sizes = [float(longest)] * int(whole) + [rest]
        busy = [0.0] * workers
        for size in sizes * parts:
            busy[busy.index(min(busy))] += size
        return self.rows / max(busy)
