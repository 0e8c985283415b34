"""The exact summary of rows of which most columns are held as codes: indicators of levels, and products with them.

A row touches one column of each group of indicators. Sums of products then are counts, sums by level and
cross-tabulations, and nothing of the width of all columns is done row by row. Sums by level are kept with twice the
digits of a double; those of dense columns with one another too, unless no dense column is badly explained by all
others (the rule of `triangular.py`, judged for a segment at a time, which is in memory). What comes out are the same
`Products` that dense rows become.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.blas import gram, padded_width, tile_rows_for
from partsketch.common.linalg.double_double import DoubleDouble
from partsketch.sketches.accumulator import FloatArray, IntArray
from partsketch.sketches.centre import middle, rows_to_look_at
from partsketch.sketches.gram import inflation, power_of_two
from partsketch.sketches.kernels import coded_sums
from partsketch.sketches.kernels.gram_slices import add_exact_gram

#: Part of a level's rows that other levels leave of it, below which they determine it.
_DETERMINED = 1e-9


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Rows of one segment.

    Attributes
    ----------
    dense
        The columns that are held densely, shape (columns, rows): the ones first, if there are any, targets last.
    dense_at
        Which columns of the summary these are.
    width, targets
        Columns of the summary, and how many of them are targets.
    places
        For every entry of a row that is not zero, the column where it stands, shape (entries, rows); −1: none.
    values
        What stands there; None for ones.
    roots
        Square roots of weights; empty when every row counts once.
    intercept
        Whether the first dense column is one of ones.
    """

    dense: FloatArray
    dense_at: IntArray
    width: int
    targets: int
    places: NDArray[np.int32]
    values: tuple[FloatArray | None, ...]
    roots: FloatArray
    intercept: bool


def coded_products(rows: CodedRows) -> tuple[FloatArray, FloatArray | None]:
    """Return the sums of products of all columns, as `Products` writes them, and what was taken off the columns."""
    width, (dense_width, count) = rows.width, rows.dense.shape
    centre = dense_centre(rows)
    out = np.zeros((1 + 2 * width, width))
    units, high, low = out[0], out[1 : width + 1], out[width + 1 :]
    units[:] = 1.0
    values = _scaled_values(rows, units)
    units[rows.dense_at] = dense_units(rows, centre)
    walk = Tiles(rows, centre, units[rows.dense_at])
    sums = DoubleDouble.of(np.zeros((width, dense_width)))
    dense = DoubleDouble.of(np.zeros((dense_width, dense_width)))
    ones = np.ones(walk.height) if any(value is not None for value in values) else np.empty(0)
    for begin in range(0, count, walk.height):
        here = slice(begin, min(begin + walk.height, count))
        tile, lines = walk.tile(here)
        dense = DoubleDouble(dense.high + gram(tile)[:dense_width, :dense_width], dense.low)
        for number, (places, factors) in enumerate(zip(rows.places, values, strict=True)):
            if factors is None:
                coded_sums.add_rows_at(places[here], lines, *sums)
            else:
                coded_sums.add_multiples_at(places[here], factors[here], lines, *sums)
            for others, other_factors in zip(rows.places[: number + 1], values[: number + 1], strict=True):
                if factors is None and other_factors is None:
                    coded_sums.add_counts(others[here], places[here], high)
                else:
                    pair = [ones[: len(lines)] if part is None else part[here] for part in (other_factors, factors)]
                    coded_sums.add_pairs(others[here], places[here], *pair, high, low)
    if not _is_safe(rows, values, dense.high, sums.high, high):
        dense = DoubleDouble.of(np.zeros((dense_width, dense_width)))
        for begin in range(0, count, walk.height):
            dense = add_exact_gram(dense, walk.tile(slice(begin, min(begin + walk.height, count)))[0][:dense_width])
    is_dense = np.zeros(width, dtype=bool)
    is_dense[rows.dense_at] = True
    coded_sums.complete(high, low, rows.dense_at, *dense, *sums, is_dense, units)
    if centre is None:
        return out, None
    taken_off = np.zeros(width)
    taken_off[rows.dense_at] = centre
    return out, taken_off


class Tiles:
    """Dense columns around their centre, in units, weights applied; in the same memory for every tile."""

    def __init__(self, rows: CodedRows, centre: FloatArray | None, units: FloatArray) -> None:
        self._rows, self._centre, self._units = rows, centre, units
        padded = padded_width(len(units))
        self.height = tile_rows_for(padded)
        room = min(self.height, rows.dense.shape[1])
        self._tile = np.zeros((padded, room))
        self._lines = np.empty((room, len(units)))

    def tile(self, here: slice) -> tuple[FloatArray, FloatArray]:
        """Return columns, padded with zeros, and the same as rows."""
        count, width = here.stop - here.start, len(self._units)
        tile = self._tile[:, :count] if count < self._tile.shape[1] else self._tile
        columns = tile[:width]
        np.copyto(columns, self._rows.dense[:, here])
        if self._centre is not None:
            columns -= self._centre[:, None]
        if self._rows.roots.size:
            columns *= self._rows.roots[here]
        columns *= self._units[:, None]
        lines = self._lines[:count]
        np.copyto(lines, columns.T)
        return tile, lines


def dense_centre(rows: CodedRows) -> FloatArray | None:
    """Return a value in the middle of each dense column that lies far from zero; None when none does."""
    if not rows.intercept:
        return None
    counted = rows.dense if not rows.roots.size else rows.dense[:, rows.roots > 0]
    some = counted[:, :: max(1, counted.shape[1] // rows_to_look_at(len(counted)))]
    centre = middle(some)
    centre[0] = 0.0
    return centre if centre.any() else None


def dense_units(rows: CodedRows, centre: FloatArray | None) -> FloatArray:
    """Return powers of two that bring the norms of dense columns below one."""
    off = np.zeros(len(rows.dense)) if centre is None else centre
    largest = np.maximum(np.abs(rows.dense.min(axis=1) - off), np.abs(rows.dense.max(axis=1) - off))
    weight = rows.roots.max() if rows.roots.size else 1.0
    return power_of_two(largest * weight * np.sqrt(rows.dense.shape[1]))


def _scaled_values(rows: CodedRows, units: FloatArray) -> list[FloatArray | None]:
    """Return what stands at the places, weights applied, in units that are written where they belong."""
    largest = np.zeros(rows.width)
    given: list[FloatArray | None] = []
    for places, values in zip(rows.places, rows.values, strict=True):
        if rows.roots.size:
            values = rows.roots if values is None else values * rows.roots
        given.append(values)
        if values is not None:
            there = places >= 0
            np.maximum.at(largest, places[there], np.abs(values[there]))
    units *= power_of_two(largest * np.sqrt(rows.dense.shape[1]))
    return [
        None if values is None else values * np.where(places >= 0, units[places], 1.0)
        for places, values in zip(rows.places, given, strict=True)
    ]


def _is_safe(
    rows: CodedRows, values: list[FloatArray | None], dense: FloatArray, sums: FloatArray, among: FloatArray
) -> bool:
    """Tell whether no dense column is badly explained by all others, levels included, so that doubles do.

    The entry with most levels is taken out first, level by level; then what is left of the others.
    """
    seen = np.flatnonzero(np.diagonal(among) > 0)
    kept = np.flatnonzero(np.diagonal(dense) > 0)
    whole = np.zeros((len(seen) + len(kept),) * 2)
    whole[: len(seen), : len(seen)] = np.triu(among[np.ix_(seen, seen)])
    whole[: len(seen), : len(seen)] += np.triu(whole[: len(seen), : len(seen)], 1).T
    whole[: len(seen), len(seen) :] = sums[np.ix_(seen, kept)]
    whole[len(seen) :, : len(seen)] = whole[: len(seen), len(seen) :].T
    whole[len(seen) :, len(seen) :] = dense[np.ix_(kept, kept)]
    norms = np.diagonal(whole).copy()
    # Levels of one entry exclude one another: their own sums are a diagonal matrix.
    groups = [np.unique(places[places >= 0]) for places in rows.places]
    if groups:
        largest = np.isin(seen, max(groups, key=len))
        largest = np.concatenate([largest, np.zeros(len(kept), dtype=bool)])
        shares = whole[~largest][:, largest] / norms[largest]
        whole = whole[np.ix_(~largest, ~largest)] - shares @ whole[np.ix_(largest, ~largest)]
        norms = norms[~largest]
    others = len(norms) - len(kept)
    roots = np.sqrt(norms)
    whole /= roots[:, None] * roots
    if rows.intercept and kept.size and kept[0] == 0:
        # The ones are one more level, and no column that anybody asks for digits of.
        ones = others
        order = [ones, *range(ones), *range(ones + 1, len(norms))]
        whole = whole[np.ix_(order, order)]
        others += 1
    whole = whole[others:, others:] - _explained(whole[:others, :others], whole[:others, others:])
    features = len(whole) - int((kept >= len(rows.dense) - rows.targets).sum())
    return inflation(whole, features, np.ones(len(whole))) <= 1.0


def _explained(gram_matrix: FloatArray, across: FloatArray) -> FloatArray:
    """Return what columns of this Gram matrix, of which some may determine others, explain."""
    if not len(gram_matrix):
        return np.zeros((across.shape[1],) * 2)
    values, vectors = np.linalg.eigh(gram_matrix)
    clear = values > _DETERMINED
    half = (vectors[:, clear].T @ across) / np.sqrt(values[clear])[:, None]
    return np.asarray(half.T @ half)
