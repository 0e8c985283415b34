"""Sums by level beside the sums of products of all columns: all that is needed to give every level an intercept.

The Gram matrix of columns less the means of their levels is that of the columns less Σ s sᵀ / w, s being the sums of a
level and w its weight. What is left may be tiny beside what it is left of, so sums have twice the digits of a double;
those of products in doubles are taken only where no column is badly explained by levels and other columns.
"""

from __future__ import annotations

import numpy as np

from partsketch.common.linalg.blas import gram
from partsketch.common.linalg.double_double import DoubleDouble
from partsketch.common.linalg.error_free import two_product
from partsketch.sketches.accumulator import FloatArray, IntArray
from partsketch.sketches.base import Merging
from partsketch.sketches.coded import CodedRows, Tiles, dense_centre, dense_units
from partsketch.sketches.gram import Products, inflation
from partsketch.sketches.kernels import coded_sums, level_sums


class LevelMerging(Merging):
    """Merges two matrices of a piece: sums of products, as `Products` writes them, and lines of levels.

    A line has the number of the level, its rows, its sums of all columns, and what their doubles leave out. A third
    matrix of one column, where there is one, has the clusters of levels as `clusters_of_levels` writes them.
    """

    def __init__(self, width: int, levels: int = 0) -> None:
        self._width, self._levels = width, levels

    def merge(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Return the sums over both sets of rows."""
        if first.shape[1] == self._width:
            return Products.read(first).plus(Products.read(second)).written()
        if first.shape[1] == 1:
            return self._merge_clusters(np.vstack([first, second])[:, 0])
        out = np.empty((len(first) + len(second), first.shape[1]))
        return out[: level_sums.merge_lines(first, second, out)]

    def moved(self, matrix: FloatArray, shift: FloatArray) -> FloatArray:
        """Return the sums of columns to which multiples of the ones were added."""
        if matrix.shape[1] == 1:
            return matrix
        if matrix.shape[1] == self._width:
            return Products.read(matrix).moved(shift).written()
        high, low = matrix[:, 2 : 2 + self._width], matrix[:, 2 + self._width :]
        product, rest = two_product(high[:, :1], shift[None, :])
        moved = DoubleDouble.of(high, low).plus(product).plus(rest + low[:, :1] * shift)
        return np.hstack([matrix[:, :2], *moved])

    def _merge_clusters(self, labels: FloatArray) -> FloatArray:
        levels = np.where(labels < 0, -1 - labels, labels % self._levels)
        order = np.argsort(levels, kind="stable")
        labels, levels = labels[order], levels[order]
        again = levels[1:] == levels[:-1]
        several = np.flatnonzero(again & (labels[1:] != labels[:-1]))
        labels[several] = -1 - levels[several]
        return np.asarray(labels[np.concatenate([[True], ~again])][:, None])


def clusters_of_levels(labels: IntArray, levels: int) -> FloatArray:
    """Return the label, level + levels · cluster, of each level that has one; −1 − level where it has several."""
    own = np.full(levels, -1, dtype=np.int64)
    own[labels % levels] = labels
    several = labels[own[labels % levels] != labels] % levels
    own[several] = -1 - several
    present = np.unique(labels % levels) if len(labels) < levels else np.flatnonzero(np.bincount(labels % levels))
    return own[present][:, None].astype(np.float64)


def level_products(rows: CodedRows, labels: IntArray, levels: int) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Return sums of products, lines of levels, and what was taken off the columns, of the rows of one segment.

    The columns of the rows are dense, the first one of ones; `labels` are the numbers of their levels.
    """
    width, count = rows.dense.shape
    counts = np.bincount(labels, minlength=levels)
    present = np.flatnonzero(counts)
    places = (np.cumsum(counts > 0) - 1).astype(np.int32)[labels]
    centre = dense_centre(rows)
    units = dense_units(rows, centre)
    walk = Tiles(rows, centre, units)
    sums = DoubleDouble.of(np.zeros((len(present), width)))
    plain = np.zeros((width, width))
    for begin in range(0, count, walk.height):
        here = slice(begin, min(begin + walk.height, count))
        tile, lines = walk.tile(here)
        plain += gram(tile)[:width, :width]
        if rows.roots.size:
            coded_sums.add_multiples_at(places[here], rows.roots[here], lines, *sums)
        else:
            coded_sums.add_rows_at(places[here], lines, *sums)
    products = DoubleDouble.of(plain)
    if not _is_safe(plain, sums.high, units[0], rows.targets):
        products = DoubleDouble.of(np.zeros((width, width)))
        for begin in range(0, count, walk.height):
            level_sums.add_products(walk.tile(slice(begin, min(begin + walk.height, count)))[1], *products)
        high, low = DoubleDouble.of(products.high).plus(products.low)
        products = DoubleDouble(*(np.triu(part) + np.triu(part, 1).T for part in (high, low)))
    high, low = DoubleDouble.of(sums.high).plus(sums.low)
    told = np.hstack([present[:, None], counts[present][:, None], high / units, low / units])
    return Products(units, *products).written(), told, centre


def _is_safe(plain: FloatArray, sums: FloatArray, unit: float, targets: int) -> bool:
    """Tell whether, within levels, no column is badly explained by the others or by the levels: then doubles do."""
    kept = np.flatnonzero(np.diagonal(plain)[1:] > 0) + 1
    if not len(kept):
        return True
    weights = sums[:, 0] / unit
    counted = weights > 0
    explained = sums[counted][:, kept].T @ (sums[counted][:, kept] / weights[counted, None])
    roots = np.sqrt(np.diagonal(plain)[kept])
    within = (plain[np.ix_(kept, kept)] - explained) / (roots[:, None] * roots)
    return inflation(within, int((kept < len(plain) - targets).sum()), np.ones(len(within))) <= 1.0


def within_levels(matrix: FloatArray, lines: FloatArray) -> tuple[Products, FloatArray]:
    """Return the sums of products of columns less the means of their levels, and these means, shape (levels, columns).

    What was taken off the columns beforehand is not in the means.
    """
    products = Products.read(matrix)
    left = DoubleDouble.of(products.high, products.low)
    means = np.empty((len(lines), len(products.scale)))
    level_sums.take_out(lines, products.scale, *left, means)
    return Products(products.scale, *left), means
