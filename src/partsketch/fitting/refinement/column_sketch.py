"""The sparse sign sketch of many columns in memory, made a few columns at a time.

A sketch of a thousand columns does not fit in any cache. Row by row, almost all of it would be fetched again every few
hundred rows; here each worker takes some columns and all rows, and what it adds to stays close. The numbers and the
order in which they are added are those of the sketch that engines make, so the bits are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.compiled import compiled
from partsketch.common.linalg.lanes import LANES, add_scaled, fetch
from partsketch.sketches.base import SketchSpecification
from partsketch.sketches.kernels.scatter import draw_targets
from partsketch.sketches.sparse_sign import random_numbers
from partsketch.sources.memory.arrays import ArraySource
from partsketch.summaries.merge_tree import TreeFold

FloatArray = NDArray[np.float64]

#: Numbers of the sketch that a worker adds to at a time; a larger part of a row is read at once, a smaller part of the
#: sketch stays closer. With a quarter or four times as many it takes a third longer (1e5×1000 and 2e5×500).
_SLAB_NUMBERS = 2**19

_DRAWN_ROWS = 4096

#: Rows between the one worked on and the one that memory is asked for.
_AHEAD = 8


@compiled
def _draw(key0, key1, stream, first, size, sparsity, out):  # type: ignore[no-untyped-def]
    """Fill `out`, rows × sparsity, with twice the sketch row, plus one for a negative sign."""
    places = np.empty((sparsity, _DRAWN_ROWS), np.int64)
    signs = np.empty((sparsity, _DRAWN_ROWS))
    for begin in range(0, out.shape[0], _DRAWN_ROWS):
        count = min(_DRAWN_ROWS, out.shape[0] - begin)
        draw_targets(key0, key1, stream, np.arange(first + begin, first + begin + count), size, places, signs)
        for i in range(count):
            for k in range(sparsity):
                out[begin + i, k] = 2 * places[k, i] + (signs[k, i] < 0)


@compiled
def _add(slab, size, groups, targets, flat, width, column, roots):  # type: ignore[no-untyped-def]
    """Add `groups` times eight columns from `column` on, of rows of `width` numbers, to their sketch rows."""
    rows, sparsity = targets.shape
    for i in range(rows):
        start = i * width + column
        for g in range(groups):
            fetch(flat, start + _AHEAD * width + g * LANES)
        root = roots[i] if roots.size else 1.0
        for k in range(sparsity):
            target = targets[i, k]
            sign = -root if target & 1 else root
            for g in range(groups):
                add_scaled(slab, (g * size + (target >> 1)) * LANES, flat, start + g * LANES, sign)


@dataclass(frozen=True, eq=False)
class _Slab:
    """Some columns, in groups of eight: where they begin in the rows, and which of the sketch they are."""

    flat: FloatArray
    width: int
    column: int
    groups: int
    places: NDArray[np.int64]


def sketch_by_columns(
    source: ArraySource, fit_intercept: bool, specification: SketchSpecification, segment_rows: int, threads: int
) -> FloatArray:
    """Return S [1 X Y] for features in rows of doubles that lie one after another; the result lies by columns."""
    fold = TreeFold(np.add)
    with ThreadPoolExecutor(threads) as pool:
        for number, start in enumerate(range(0, source.row_count, segment_rows)):
            segment = source.sliced(start, start + segment_rows)
            fold.push(0, number, _sketch_segment(segment, start, fit_intercept, specification, pool))
    sketch = fold.result()
    assert sketch is not None
    return np.asarray(sketch.T)


def _sketch_segment(
    source: ArraySource, first_row: int, fit_intercept: bool, specification: SketchSpecification, pool: Executor
) -> FloatArray:
    """Return the transposed sketch of one segment."""
    size, sparsity = specification.size, specification.sparsity
    assert size is not None
    assert sparsity is not None
    roots = np.empty(0) if source.weights is None else np.sqrt(source.weights)
    targets = np.empty((source.row_count, sparsity), dtype=np.int32)
    _draw(*random_numbers(specification, 0), first_row, size, sparsity, targets)
    columns = int(fit_intercept) + source.features.shape[1] + source.targets.shape[1]
    out = np.empty((columns, size))
    scale = 1.0 / np.sqrt(sparsity)

    def work(slab: _Slab) -> None:
        sums = np.zeros((slab.groups, size, LANES))
        _add(sums.reshape(-1), size, slab.groups, targets, slab.flat, slab.width, slab.column, roots)
        for number, place in enumerate(slab.places):
            np.multiply(sums[number // LANES, :, number % LANES], scale, out=out[place])

    list(pool.map(work, _slabs(source, int(fit_intercept), max(1, _SLAB_NUMBERS // (LANES * size)))))
    return out


def _slabs(source: ArraySource, first: int, most_groups: int) -> Iterator[_Slab]:
    """Cut the columns; those that do not fill a group of eight are put together with the targets and the ones."""
    rows, width = source.features.shape
    whole = width // LANES
    flat = np.asarray(source.features).reshape(-1)
    for group in range(0, whole, most_groups):
        groups = min(most_groups, whole - group)
        places = first + np.arange(group * LANES, (group + groups) * LANES)
        yield _Slab(flat, width, group * LANES, groups, places)
    rest = width - whole * LANES
    used = rest + source.targets.shape[1] + first
    if used:
        groups = -(-used // LANES)
        tail = np.zeros((rows, groups * LANES))
        tail[:, :rest] = source.features[:, whole * LANES :]
        tail[:, rest : used - first] = source.targets
        tail[:, used - first : used] = 1.0
        places = np.concatenate([first + np.arange(whole * LANES, whole * LANES + used - first), np.arange(first)])
        yield _Slab(tail.reshape(-1), groups * LANES, 0, groups, places)
