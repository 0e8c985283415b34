"""The summary: what a partition becomes. Small, immutable, mergeable in two ways, with a file format of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from partsketch.common.errors import InputError
from partsketch.common.files import write_atomically
from partsketch.common.linalg.solve import factor_of_rows, tall_factor
from partsketch.sketches.base import get_sketch
from partsketch.summaries.provenance import About, Part, find_overlap, joined_parts, shared_rows
from partsketch.summaries.shown import ShownInShort
from partsketch.summaries.tasks import INTERCEPT

if TYPE_CHECKING:
    from partsketch.common.linalg.double_double import DoubleDouble

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Summary(ShownInShort):
    """A small matrix Z = S A that stands for the rows A, with what is needed to merge and to solve.

    Attributes
    ----------
    matrix
        Z, read-only; its columns are those of `columns`.
    columns
        Column names: the intercept first if there is one, then features and targets.
    kind
        Kind of sketch.
    parts
        What stands behind the rows of Z, in order.
    row_count, weight_sum
        How many rows, and how much weight, were summarised.
    about
        What else its maker tells.
    low
        What the doubles of the matrix leave out of it, where that counts: of columns that lie far from zero, or nearly
        determine one another. None where it does not.
    centre
        A value in the middle of each column that lies far from zero; zero for the others. Around it the matrix and
        `low` have all digits that are known.

    Examples
    --------
    >>> import numpy as np, partsketch as ps
    >>> rows = np.random.default_rng(0).standard_normal((1000, 3))
    >>> summary = ps.sketch(rows, sketch_size=40, random_state=1)
    >>> np.asarray(summary).shape, summary.columns
    ((40, 4), ('(intercept)', 'x0', 'x1', 'x2'))
    """

    matrix: FloatArray
    columns: tuple[str, ...]
    kind: str
    parts: tuple[Part, ...]
    row_count: int
    weight_sum: float
    about: About = field(default_factory=About)
    low: FloatArray | None = None
    centre: FloatArray = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        matrix = _frozen(self.matrix)
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "low", None if self.low is None or not self.low.any() else _frozen(self.low))
        object.__setattr__(self, "centre", _frozen(self.centre if len(self.centre) else np.zeros(len(self.columns))))
        if matrix.ndim != 2 or matrix.shape[1] != len(self.columns):
            raise InputError(f"A summary of {len(self.columns)} columns cannot hold a matrix of shape {matrix.shape}.")
        if len(set(self.columns)) != len(self.columns):
            raise InputError("A summary needs distinct column names.")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Summary):
            return NotImplemented
        arrays = ("matrix", "low", "centre")
        others = ("columns", "kind", "parts", "row_count", "weight_sum", "about")
        mine, theirs = ([getattr(summary, name) for name in others] for summary in (self, other))
        return mine == theirs and all(
            np.array_equal(_or_nothing(getattr(self, name)), _or_nothing(getattr(other, name))) for name in arrays
        )

    def _in_short(self) -> tuple[str, Sequence[str], str]:
        size, width = self.matrix.shape
        about = "about " if self.about.rounded_to > 1 else ""
        what = f"{'private ' * self.about.private}{self.kind}, {size:,} × {width:,} for {about}{self.row_count:,} rows"
        return what, self.columns, ", ".join(dict.fromkeys(part.site for part in self.parts if part.site))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.matrix, dtype=dtype, copy=copy)

    def __hash__(self) -> int:
        return hash((self.columns, self.kind, self.parts, self.matrix.tobytes()))

    def told(self, parts: tuple[Part, ...], about: About) -> Summary:
        """Return the same numbers with another story: quicker than a new summary, for there is nothing to check."""
        new = object.__new__(Summary)
        new.__dict__.update(self.__dict__, parts=parts, about=about)
        return new

    def _check_same_columns(self, other: Summary) -> None:
        if self.kind != other.kind:
            raise InputError(f"Cannot merge a {self.kind} summary with a {other.kind} one: make both of one kind.")
        if self.columns != other.columns:
            differing = sorted(set(self.columns) ^ set(other.columns))
            detail = f"these are in one only: {', '.join(differing)}" if differing else "their order differs"
            raise InputError(f"Cannot merge summaries with different columns ({detail}).")

    def stack(self, other: Summary) -> Summary:
        """Merge with a summary of other rows by putting one below the other (exact factors are factored again)."""
        self._check_same_columns(other)
        exact = not get_sketch(self.kind).is_random
        overlap = find_overlap([(0, part) for part in self.parts] + [(1, part) for part in other.parts])
        if overlap is not None:
            raise InputError(
                f"Cannot stack: {shared_rows(overlap[0][1], overlap[1][1])} of the same data are in both summaries "
                "and would count twice; give other rows of one site a label of their own."
            )
        mine = {(part.seed, part.stream) for part in self.parts if part.seed is not None}
        for part in () if exact else other.parts:
            if (part.seed, part.stream) in mine:
                raise InputError(
                    f"Cannot stack: both sketches use the random numbers of seed {part.seed}, stream {part.stream}; "
                    "sum them if they are parts of one sketch, else make one with another seed."
                )
        centre = common_centre((self, other))
        rows = joined_rows(centre, self, other)
        if exact:
            rows = factor_of_rows(rows)
        rows = rows.moved(centre)
        return Summary(
            matrix=rows.high,
            low=rows.low,
            centre=centre,
            columns=self.columns,
            kind=self.kind,
            parts=self.parts + other.parts,
            row_count=self.row_count + other.row_count,
            weight_sum=self.weight_sum + other.weight_sum,
            about=self.about.joined(other.about),
        )

    def sum(self, other: Summary) -> Summary:
        """Merge with the same sketch rows of other rows: the result is the sketch of the union."""
        self._check_same_columns(other)
        if not get_sketch(self.kind).is_random:
            raise InputError("Exact summaries are merged by stacking, not by summing.")
        if not get_sketch(self.kind).is_summable:
            raise InputError(
                f"A {self.kind} sketch depends on how many rows there are: sketches of parts cannot be summed."
            )
        identity = [(part.seed, part.stream, part.size, part.sparsity) for part in self.parts]
        if any(part.seed is None for part in self.parts) or identity != [
            (part.seed, part.stream, part.size, part.sparsity) for part in other.parts
        ]:
            raise InputError("Cannot sum: the summaries are not made by the same sketch rows (seed, stream, size).")
        parts = tuple(joined_parts(mine, theirs) for mine, theirs in zip(self.parts, other.parts, strict=True))
        rows = self.rows.plus(other.matrix)
        if other.low is not None:
            rows = rows.plus(other.low)
        return Summary(
            matrix=rows.high,
            low=None if self.low is None and other.low is None else rows.low,
            centre=common_centre((self, other)),
            columns=self.columns,
            kind=self.kind,
            parts=parts,
            row_count=self.row_count + other.row_count,
            weight_sum=self.weight_sum + other.weight_sum,
            about=self.about.joined(other.about),
        )

    @property
    def rows(self) -> DoubleDouble:
        """The matrix with all its digits."""
        from partsketch.common.linalg.double_double import DoubleDouble

        return DoubleDouble.of(self.matrix, self.low)

    @cached_property
    def triangle(self) -> FloatArray:
        """At most as many rows as columns, with the same sums of products as those of the matrix."""
        height, width = self.matrix.shape
        return self.matrix if height <= width else tall_factor(self.matrix)

    @property
    def height(self) -> int:
        """Rows of the matrix."""
        return len(self.matrix)

    def select(self, columns: tuple[str, ...]) -> FloatArray:
        """Return the matrix of these columns in this order; it may not be written to."""
        # Stacks of thousands of sketches are large.
        return self.matrix if columns == self.columns else self.matrix[:, self.places(columns)]

    def places(self, columns: Sequence[str]) -> list[int]:
        """Return the numbers of these columns."""
        numbers = {name: number for number, name in enumerate(self.columns)}
        for name in columns:
            if name not in numbers:
                raise InputError(f"The summary has no column {name!r}; it has {', '.join(self.columns)}.")
        return [numbers[name] for name in columns]

    def narrowed(self, columns: tuple[str, ...]) -> Summary:
        """Return the exact summary of these columns alone, and of the ones if there are any."""
        kept = (*self.columns[: int(self.columns[0] == INTERCEPT)], *columns)
        places = [self.columns.index(name) for name in kept]
        centred = self.rows.moved(-self.centre)
        centre = self.centre[places]
        rows = factor_of_rows(type(centred)(centred.high[:, places], centred.low[:, places])).moved(centre)
        part = replace(self.parts[0], size=len(kept)) if len(self.parts) == 1 else self.parts[0]
        return replace(
            self,
            matrix=rows.high,
            low=rows.low,
            centre=centre,
            columns=kept,
            parts=(part, *self.parts[1:]),
            about=self.about.narrowed(kept),
        )

    def to_bytes(self) -> bytes:
        """Return the file format, as docs/sketch-format.md describes it."""
        from partsketch.summaries.file import to_bytes

        return to_bytes(self)

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "summary") -> Summary:
        """Read what `to_bytes` wrote; `name` is used in messages."""
        from io import BytesIO

        from partsketch.summaries.file import read

        return read(BytesIO(data), len(data), name)

    def save(self, path: str | Path) -> None:
        """Write to a file, whole or not at all."""
        write_atomically(Path(path), self.to_bytes())

    @classmethod
    def load(cls, path: str | Path) -> Summary:
        """Read a file that `save` wrote."""
        from partsketch.summaries.file import load

        return load(Path(path))


def _frozen(values: FloatArray) -> FloatArray:
    # What nobody can write any more need not be copied.
    frozen = isinstance(values, np.ndarray) and values.base is None and not values.flags.writeable
    if frozen and values.flags.c_contiguous and values.dtype == np.float64:
        return values
    copied = np.array(values, dtype=np.float64, order="C")
    copied.flags.writeable = False
    return copied


def _or_nothing(values: FloatArray | None) -> FloatArray:
    return np.empty(0) if values is None else values


def common_centre(summaries: Sequence[Summary]) -> FloatArray:
    """Return for every column what the first summary that takes anything off takes off."""
    centre = np.zeros(len(summaries[0].columns))
    for summary in summaries:
        centre = np.where(centre != 0, centre, summary.centre)
    return centre


def joined_rows(centre: FloatArray, *summaries: Summary) -> DoubleDouble:
    """Return the rows of all matrices, one below the other, of columns from which `centre` is taken off."""
    from partsketch.common.linalg.double_double import DoubleDouble

    parts = [summary.rows.moved(-centre) for summary in summaries]
    return DoubleDouble(np.vstack([part.high for part in parts]), np.vstack([part.low for part in parts]))
