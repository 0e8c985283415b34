"""Rows that are kept for their clusters, written tile by tile in the order of groups of clusters."""

from __future__ import annotations

import numpy as np

from partsketch.common.linalg.compiled import compiled, compiled_with
from partsketch.common.linalg.lanes import LANES
from partsketch.fitting.robust.kept_lanes import HALF, place_eight, place_four, write_scores
from partsketch.fitting.robust.strip_kernels import GROUP_BITS, STRIP_ROWS, weigh_strip
from partsketch.sketches.kernels.group_rows import find_places

# Within what calls it: a call for every few rows would count references to the arrays, which takes longer.
_inlined = compiled_with(inline="always")

#: Rows whose scores are made at once, and how far their columns are apart: not a power of two, for the cache.
_SCORED_ROWS = 64
_APART = _SCORED_ROWS + LANES


@_inlined
def _place_lines(values, apart, places, begin, count, out, step):  # type: ignore[no-untyped-def]
    """Write some columns, `apart` numbers apart, to the places of their rows from `begin` on: a line each."""
    whole = count // LANES * LANES
    for row in range(0, whole, LANES):
        for left in range(0, step - HALF, LANES):
            place_eight(out, step, left, places, begin + row, values, left * apart + row, apart)
        if step % LANES:
            left = step - HALF
            place_four(out, step, left, places, begin + row, values, left * apart + row, apart)
    for row in range(whole, count):
        for k in range(step):
            out[places[begin + row] * step + k] = values[k * apart + row]


@compiled
def _order_rows(labels, places, starts):  # type: ignore[no-untyped-def]
    """Write where each row goes, by groups of clusters, where each group begins, and the end."""
    groups = places[1]
    for row in range(labels.size):
        groups[row] = labels[row] >> GROUP_BITS
    sizes = np.zeros(starts.size - 1, np.int64)
    find_places(groups[: labels.size], sizes, places[0])
    starts[0] = 0.0
    for group in range(sizes.size):
        starts[group + 1] = starts[group] + sizes[group]


@compiled
def keep_scores(addresses, count, labels, weights, turn, room, places, kept, starts):  # type: ignore[no-untyped-def]
    """Write the scores of rows, target by target, and behind them their clusters, by groups of clusters.

    `starts` gets the place where each group begins, and the end.
    """
    _order_rows(labels, places, starts)
    order, out, step = places[0], kept.reshape(-1), kept.shape[1]
    width, targets, values = turn.root.shape[0], turn.residuals.shape[0], room.scaled.reshape(-1)
    if turn.straight and targets == 1:
        scales, factors = np.empty(width), turn.residuals.reshape(-1)
        for k in range(width):
            scales[k] = turn.root[k, k]
        # Scores of some rows, then their places: lines that are not in the cache wait for memory, others for them.
        for begin in range(0, count, _SCORED_ROWS):
            rows = min(_SCORED_ROWS, count - begin)
            for row in range(0, rows, LANES):
                # Behind the last row of a tile there is room for others, of which nothing is used.
                write_scores(
                    values,
                    row,
                    _APART,
                    addresses,
                    begin + row,
                    turn.ones,
                    turn.centre,
                    scales,
                    factors,
                    labels,
                    weights,
                )
            _place_lines(values, _APART, order, begin, rows, out, step)
        return
    turned, scaled = room.turned, room.scaled
    for begin in range(0, count, STRIP_ROWS):
        rows = min(STRIP_ROWS, count - begin)
        weigh_strip(addresses, begin, rows, weights, turn, room)
        for target in range(targets):
            for k in range(width):
                for row in range(rows):
                    scaled[target * width + k, row] = turned[k, row] * turned[width + target, row]
        for row in range(rows):
            scaled[targets * width, row] = labels[begin + row]
        _place_lines(values, STRIP_ROWS, order, begin, rows, out, step)


@compiled
def keep_rows(addresses, count, labels, weights, turn, room, places, kept, starts):  # type: ignore[no-untyped-def]
    """Write rows as `weigh_strip` makes them, their squares and their clusters; else as `keep_scores`."""
    _order_rows(labels, places, starts)
    order, out, step = places[0], kept.reshape(-1), kept.shape[1]
    turned, width, values = room.turned, turn.root.shape[0], room.turned.reshape(-1)
    behind = width + turn.residuals.shape[0]
    for begin in range(0, count, STRIP_ROWS):
        rows = min(STRIP_ROWS, count - begin)
        weigh_strip(addresses, begin, rows, weights, turn, room)
        for row in range(rows):
            turned[behind, row] = 0.0
            turned[behind + 1, row] = labels[begin + row]
        for k in range(width):
            for row in range(rows):
                turned[behind, row] += turned[k, row] * turned[k, row]
        _place_lines(values, STRIP_ROWS, order, begin, rows, out, step)
