"""Kept rows, taken cluster by cluster: each is fetched from where it lies, and no cluster needs a place in memory."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.column_kernels import pointer_to
from partsketch.common.linalg.compiled import compiled, compiled_with
from partsketch.common.linalg.lanes import LANES, add_scaled, fetch_all
from partsketch.fitting.robust.kept_lanes import add_line
from partsketch.fitting.robust.kernels import leave_out_each
from partsketch.fitting.robust.score_lanes import add_scaled_row, product_of_rows
from partsketch.fitting.robust.strip_kernels import GROUP_BITS
from partsketch.sketches.kernels.group_sums import add_products

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Within what calls it: a call for every row would count references to the arrays, which takes longer.
_inlined = compiled_with(inline="always")

#: Lines of clusters that are multiplied at once.
_LINES = 128
#: Rows that are asked for before they are needed.
_FETCHED = 12


class Kept(NamedTuple):
    """Where the rows lie that were kept.

    Attributes
    ----------
    origin
        An address.
    bases
        Where the rows of each tile are counted from, in numbers behind it.
    starts
        Which rows of each tile are those of each group: the place of the first, and the end.
    step
        Numbers of a row.
    label
        Which of them is the number of its cluster.
    """

    origin: int
    bases: IntArray
    starts: IntArray
    step: int
    label: int


@compiled
def add_scores(kept, groups, width, squares):  # type: ignore[no-untyped-def]
    """Add the squares of the scores of clusters, a matrix for each target: upper triangles.

    Parameters
    ----------
    groups
        The first and last group whose clusters are added.

    Returns
    -------
    int
        How many clusters have rows.
    """
    targets, line, step = squares.shape[0], squares.shape[1], kept.step
    flat, size = numba.carray(pointer_to(kept.origin), 1), 1 << GROUP_BITS
    lines, seen = np.empty((targets, size, line)), np.empty(size, np.bool_)
    out, found = lines.reshape(-1), 0
    for group in range(groups[0], groups[1]):
        lines[:], seen[:] = 0.0, False
        for tile in range(kept.bases.size):
            coming = min(tile + 1, kept.bases.size - 1)
            fetch_all(flat, kept.bases[coming] + kept.starts[coming, group] * step, _FETCHED * step)
            for row in range(kept.starts[tile, group], kept.starts[tile, group + 1]):
                at = kept.bases[tile] + row * step
                fetch_all(flat, at + _FETCHED * step, step)
                cluster = int(flat[at + kept.label]) & (size - 1)
                seen[cluster] = True
                if targets == 1:
                    # The number of the cluster is added too, of which nothing is used.
                    add_line(flat, at, step, out, cluster * line)
                    continue
                for target in range(targets):
                    add_scaled_row(flat, at + target * width, width, 1.0, out, (target * size + cluster) * line)
        for target in range(targets):
            add_products(lines[target], size, line, False, squares[target])
        for cluster in range(size):
            found += seen[cluster]
    return found


@_inlined
def _add_row(out, target, used, step, flat, at, factor):  # type: ignore[no-untyped-def]
    """Add a row times a factor to a line; behind the columns come residuals, of which nothing is used."""
    for block in range(0, step, LANES):
        add_scaled(out, (target * _LINES + used) * step + block, flat, at + block, factor)


@compiled
def _add_lines(lines, used, squares):  # type: ignore[no-untyped-def]
    """Add the squares of lines, and clear them."""
    for target in range(squares.shape[0]):
        add_products(lines[target], used, lines.shape[2], False, squares[target])
        lines[target, :used] = 0.0


@compiled
def _list_rows(kept, group, step, flat, ends):  # type: ignore[no-untyped-def]
    """Return where the rows of a group lie, cluster by cluster, and write where the rows of each cluster end."""
    size, count = 1 << GROUP_BITS, 0
    ends[:] = 0
    for tile in range(kept.bases.size):
        count += kept.starts[tile, group + 1] - kept.starts[tile, group]
        for row in range(kept.starts[tile, group], kept.starts[tile, group + 1]):
            ends[int(flat[kept.bases[tile] + row * step + kept.label]) & (size - 1)] += 1
    places, end = np.empty(count, np.int64), 0
    for cluster in range(size):
        end += ends[cluster]
        ends[cluster] = end - ends[cluster]
    for tile in range(kept.bases.size):
        for row in range(kept.starts[tile, group], kept.starts[tile, group + 1]):
            cluster = int(flat[kept.bases[tile] + row * step + kept.label]) & (size - 1)
            places[ends[cluster]] = kept.bases[tile] + row * step
            ends[cluster] += 1
            fetch_all(flat, kept.bases[tile] + row * step, step)
    return places


@compiled
def add_changes(kept, groups, width, most, squares, aside):  # type: ignore[no-untyped-def]
    """Add the squares of what changes when a cluster is left out; else as `add_scores`.

    Clusters whose share is larger than `most` are noted in `aside`, and not added.

    Returns
    -------
    int
        How many clusters have rows.
    float
        The sum of all shares.
    """
    targets, step = squares.shape[0], squares.shape[1]
    flat, size = numba.carray(pointer_to(kept.origin), 1), 1 << GROUP_BITS
    lines, used, found, shares = np.zeros((targets, _LINES, step)), 0, 0, 0.0
    out, ends = lines.reshape(-1), np.empty(size, np.int64)
    factor, parts = np.empty((width, width)), np.empty((targets, width))
    sums, scores = np.empty((1, width * (width + 1) // 2)), np.empty((targets, 1, width))
    for group in range(groups[0], groups[1]):
        places, last = _list_rows(kept, group, step, flat, ends), 0
        for cluster in range(size):
            first, last = last, ends[cluster]
            if first == last:
                continue
            found += 1
            at = places[first]
            share = flat[at + width + targets]
            if last - first == 1:
                # Of a row alone its square is all: x e / (1 − x'x).
                for target in range(targets if share <= most else 0):
                    _add_row(out, target, used, step, flat, at, flat[at + width + target] / (1.0 - share))
            elif last - first == 2:
                other = places[first + 1]
                both = product_of_rows(flat, at, other, width)
                left, left_other = 1.0 - share, 1.0 - flat[other + width + targets]
                share += flat[other + width + targets]
                over = 1.0 / (left * left_other - both * both)
                for target in range(targets if share <= most else 0):
                    of_one, of_other = flat[at + width + target], flat[other + width + target]
                    _add_row(out, target, used, step, flat, at, (left_other * of_one + both * of_other) * over)
                    _add_row(out, target, used, step, flat, other, (left * of_other + both * of_one) * over)
            elif last - first <= width:
                share = _solve_rows(flat, places, first, last - first, width, most, factor, parts, lines, used)
            else:
                share = _solve_columns(flat, places[first:last], width, most, sums, scores, lines, used)
            shares += share
            if share <= most:
                used += 1
            else:
                aside[(group - groups[0]) * size + cluster] = True
            if used == _LINES:
                _add_lines(lines, used, squares)
                used = 0
    _add_lines(lines, used, squares)
    return found, shares


@compiled
def _solve_rows(flat, places, first, count, width, most, factor, parts, lines, used):  # type: ignore[no-untyped-def]
    """Write X' (1 − X X')⁻¹ e of a cluster of few rows X with residuals e; return the trace of X X'.

    That is (1 − X'X)⁻¹ X'e, from a system of as many unknowns as there are rows. Nothing is written where the trace is
    larger than `most`; below that 1 − X X' is far from singular, and needs no pivots.
    """
    targets, step = lines.shape[0], lines.shape[2]
    out, trace = lines.reshape(-1), 0.0
    for i in range(count):
        square = flat[places[first + i] + width + targets]
        factor[i, i] = 1.0 - square
        trace += square
    if not trace <= most:
        return trace
    for i in range(count):
        at = places[first + i]
        for target in range(targets):
            parts[target, i] = flat[at + width + target]
        for j in range(i):
            # Line i less its products with those before, then divided by their pivots.
            value = -product_of_rows(flat, at, places[first + j], width)
            for k in range(j):
                value -= factor[i, k] * factor[j, k] * factor[k, k]
            factor[i, j] = value / factor[j, j]
            factor[i, i] -= factor[i, j] * value
            for target in range(targets):
                parts[target, i] -= factor[i, j] * parts[target, j]
    for target in range(targets):
        for i in range(count - 1, -1, -1):
            value = parts[target, i] / factor[i, i]
            for j in range(i + 1, count):
                value -= factor[j, i] * parts[target, j]
            parts[target, i] = value
            _add_row(out, target, used, step, flat, places[first + i], value)
    return trace


@compiled
def _solve_columns(flat, places, width, most, sums, scores, lines, used):  # type: ignore[no-untyped-def]
    """Write (1 − X'X)⁻¹ X'e, less its sign, of a cluster of more rows than columns; else as `_solve_rows`."""
    targets = lines.shape[0]
    sums[:], scores[:] = 0.0, 0.0
    products, flat_scores = sums.reshape(-1), scores.reshape(-1)
    for at in places:
        place = 0
        for j in range(width):
            add_scaled_row(flat, at, j + 1, flat[at + j], products, place)
            place += j + 1
        for target in range(targets):
            add_scaled_row(flat, at, width, flat[at + width + target], flat_scores, target * width)
    trace = 0.0
    for j in range(width):
        trace += products[j * (j + 3) // 2]
    if trace <= most:
        for target in range(targets):
            leave_out_each(sums, scores[target], most, lines[target, used : used + 1, :width])
    return trace
