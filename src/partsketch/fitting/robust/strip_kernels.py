"""Scores of rows that are few columns wide, a strip of rows at a time: all of it stays in the first-level cache."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.column_kernels import add_products, pointer_to
from partsketch.common.linalg.compiled import compiled
from partsketch.common.linalg.lanes import LANES, fetch_all
from partsketch.fitting.robust.score_lanes import PRODUCTS, write_products
from partsketch.sketches.kernels.group_rows import find_places, place_columns
from partsketch.sketches.kernels.group_sums import add_products as add_row_products

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Rows of a strip.
STRIP_ROWS = 256
#: Clusters whose rows are kept together, as a power of two: what is made of them stays in the second-level cache.
GROUP_BITS = 11


class Turn(NamedTuple):
    """How rows are turned into the coordinates of the fit.

    Attributes
    ----------
    ones
        1 where a column of ones comes first, which is not among those that are read; else 0.
    centre
        What is taken off the columns: features, then targets.
    residuals
        What columns and targets are multiplied with to become residuals, one line per target.
    root
        What columns are multiplied with, one line per column that comes out.
    reach
        The first and last of each of these lines that is not zero.
    straight
        Whether each of these lines has one number, that of its own column: 1, else 0.
    """

    ones: int
    centre: FloatArray
    residuals: FloatArray
    root: FloatArray
    reach: IntArray
    straight: int


class Room(NamedTuple):
    """Where a strip is worked on.

    Attributes
    ----------
    rows, left
        Columns less their centre, and what rows leave to others.
    turned
        Columns in the coordinates of the fit, then residuals of the targets; zeros behind them.
    scaled
        The former times the latter, in whole groups of columns.
    turned_at, scaled_at
        Addresses of the lines of both.
    """

    rows: FloatArray
    left: FloatArray
    turned: FloatArray
    scaled: FloatArray
    turned_at: IntArray
    scaled_at: IntArray


@compiled
def _turn_strip(addresses, begin, count, turn, room):  # type: ignore[no-untyped-def]
    """Write rows of the columns at these addresses, as the fit sees them, and their residuals."""
    rows, turned = room.rows, room.turned
    width, columns = turn.root.shape
    for j in range(turn.ones):
        for row in range(count):
            rows[j, row] = 1.0
            turned[j, row] = turn.root[j, j]
    for j in range(turn.ones, turn.centre.size):
        values = numba.carray(pointer_to(addresses[j - turn.ones] + 8 * begin), count)
        middle = turn.centre[j]
        fetch_all(values, STRIP_ROWS, STRIP_ROWS)
        if turn.straight and j < width:
            scale = turn.root[j, j]
            for row in range(count):
                value = values[row] - middle
                rows[j, row] = value
                turned[j, row] = value * scale
        else:
            for row in range(count):
                rows[j, row] = values[row] - middle
    flat, out, step = rows.reshape(-1), turned.reshape(-1), rows.shape[1]
    lines, root = turn.residuals.reshape(-1), turn.root.reshape(-1)
    for row in range(0, count, PRODUCTS):
        # Behind the last row are others of an earlier strip, of which nothing is used.
        for k in range(0 if turn.straight else width):
            first = turn.reach[k, 0]
            place, start = k * step + row, first * step + row
            write_products(out, place, root, k * columns + first, flat, start, step, turn.reach[k, 1] - first)
        for target in range(turn.residuals.shape[0]):
            first, place = target * turn.centre.size, (width + target) * step + row
            write_products(out, place, lines, first, flat, row, step, turn.centre.size)


@compiled
def add_squares(addresses, count, weights, turn, power, room, sums):  # type: ignore[no-untyped-def]
    """Add the squares of the scores of rows, a matrix for each target, upper triangles in whole groups.

    Residuals are divided by what a row leaves to the others to the power of half of `power`. Return the least of that,
    and where it is.

    Parameters
    ----------
    weights
        Empty where each is one.
    """
    width, targets = turn.root.shape[0], turn.residuals.shape[0]
    turned, scaled, left = room.turned, room.scaled, room.left
    least, where = np.inf, np.int64(0)
    for begin in range(0, count, STRIP_ROWS):
        rows = min(STRIP_ROWS, count - begin)
        _turn_strip(addresses, begin, rows, turn, room)
        if power:
            for row in range(rows):
                left[row] = 0.0
            for k in range(width):
                for row in range(rows):
                    left[row] += turned[k, row] * turned[k, row]
            for row in range(rows):
                left[row] = 1.0 - (left[row] * weights[begin + row] if weights.size else left[row])
            for row in range(rows):
                if left[row] < least:
                    least, where = left[row], np.int64(begin + row)
                left[row] = left[row] if power == 2 else np.sqrt(left[row])
        for target in range(targets):
            residuals = turned[width + target]
            if weights.size:
                for row in range(rows):
                    residuals[row] *= weights[begin + row]
            if power:
                for row in range(rows):
                    residuals[row] /= left[row]
            for k in range(width):
                for row in range(rows):
                    scaled[k, row] = turned[k, row] * residuals[row]
            add_products(room.scaled_at, np.int64(0), rows, 0, 0, sums[target])
    return least, where


@compiled
def weigh_strip(addresses, begin, count, weights, turn, room):  # type: ignore[no-untyped-def]
    """Write turned columns and residuals of some rows, times the roots of their weights."""
    turned = room.turned
    _turn_strip(addresses, begin, count, turn, room)
    if weights.size:
        for row in range(count):
            room.left[row] = np.sqrt(weights[begin + row])
        for k in range(turn.root.shape[0] + turn.residuals.shape[0]):
            for row in range(count):
                turned[k, row] *= room.left[row]


@compiled
def _place_strip(count, begin, room, places, near):  # type: ignore[no-untyped-def]
    """Write the rows of a strip to their places, one line each."""
    if count >= LANES:
        place_columns(room.turned_at, count, places[begin : begin + count], near)
        return
    for k in range(near.shape[1]):
        for row in range(count):
            near[places[begin + row], k] = room.turned[k, row]


@compiled
def add_clusters(addresses, count, labels, weights, turn, room, near, squares):  # type: ignore[no-untyped-def]
    """Add the products of turned columns and residuals with one another to those of each cluster: upper triangles.

    Parameters
    ----------
    near
        Room for the rows in the order of their clusters.
    squares
        One matrix per cluster.
    """
    step = near.shape[1]
    sizes, places = np.zeros(squares.shape[0], np.int64), np.empty(count, np.int64)
    find_places(labels, sizes, places)
    for begin in range(0, count, STRIP_ROWS):
        rows = min(STRIP_ROWS, count - begin)
        weigh_strip(addresses, begin, rows, weights, turn, room)
        _place_strip(rows, begin, room, places, near)
    first = 0
    for cluster in range(sizes.size):
        if sizes[cluster]:
            add_row_products(near[first : first + sizes[cluster]], sizes[cluster], step, False, squares[cluster])
            first += sizes[cluster]
