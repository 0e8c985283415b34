"""Rows put in the order of their groups, each written once, from wherever its columns lie."""

from __future__ import annotations

import numpy as np

from partsketch.common.linalg.compiled import compiled
from partsketch.common.linalg.lanes import LANES, fetch_all
from partsketch.sketches.kernels.group_lanes import turn_past_cache, turn_to_places


@compiled
def find_places(groups, counts, places):  # type: ignore[no-untyped-def]
    """Count the rows of every group, and write where each row goes: group by group, in their order."""
    for group in groups:
        counts[group] += 1
    ends = np.empty(counts.size, np.int64)
    end = 0
    for group in range(counts.size):
        ends[group] = end
        end += counts[group]
    for row in range(groups.size):
        places[row] = ends[groups[row]]
        ends[groups[row]] += 1


@compiled
def place_columns(addresses, count, places, out):  # type: ignore[no-untyped-def]
    """Write rows of the columns at these addresses, as many as `out` has, to their places: eight rows at least."""
    step = out.shape[1]
    flat = out.reshape(-1)
    for begin in range(0, count, LANES):
        # The last eight rows may have been written in part: again, with the same numbers.
        row = min(begin, count - LANES)
        for coming in range(row + LANES, min(row + 2 * LANES, count)):
            fetch_all(flat, places[coming] * step, step)
        for left in range(0, step, LANES):
            turn_to_places(flat, step, left, places, addresses, row)


@compiled
def place_past_cache(addresses, count, places, out):  # type: ignore[no-untyped-def]
    """Do the same with rows that begin where lines of the cache do, and do not stay there."""
    step = out.shape[1]
    flat = out.reshape(-1)
    for begin in range(0, count, LANES):
        first = min(begin, count - LANES)
        for left in range(0, step, LANES):
            turn_past_cache(flat, step, left, places, addresses, first)


@compiled
def place_rows(rows, places, out):  # type: ignore[no-untyped-def]
    """Write rows to their places."""
    for row in range(rows.shape[0]):
        place = places[row]
        for column in range(out.shape[1]):
            out[place, column] = rows[row, column]
