"""Takes the rows of an exact summary, and gives the sums of products of its columns; `triangular.py` says how."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from partsketch.common.linalg.blas import WIDEST_KERNEL, gram, padded_width
from partsketch.common.linalg.column_kernels import STRIP_ROWS, values_at
from partsketch.common.linalg.wide_gram import WideGram, mirror
from partsketch.common.memory import aligned_zeros
from partsketch.sketches.accumulator import Accumulator, DenseRows, FloatArray, IntArray, dense_rows
from partsketch.sketches.centre import middle
from partsketch.sketches.first_tiles import Trusted, add_tiles_of_columns, add_tiles_of_rows
from partsketch.sketches.gram import Products, add_scaled, inflation, power_of_two

#: Columns of a smaller norm have squares that lose digits by underflow: not for the plain Gram matrix of raw columns.
_SMALLEST_NORM = 1e-140

#: Scale of a column that has been zero so far: a first entry that is not looks huge, and the tile is looked at again.
_UNSEEN = 1e150


class TriangularAccumulator(Accumulator):
    """Takes tiles, gives the sums of products of q columns."""

    takes_weights = True

    def __init__(self, width: int, targets: int = 1, intercept: bool = False) -> None:
        self._width, self._intercept = width, intercept
        self._features, self._targets = width - targets, targets
        # Two matrices take turns for the sum: fresh memory is cleared by the system first.
        self._spare: FloatArray = np.empty((width, width))
        self._product = self._strip = np.zeros((0, 0))
        self._wide = WideGram(width) if width > WIDEST_KERNEL else None
        self.restart()

    def restart(self) -> bool:
        """Begin with nothing again."""
        self._total: Products | None = None
        # The largest variance inflation factor, in units of what is safe, when it was last computed; the diagonal then.
        self._inflation, self._before = np.inf, np.ones(self._width)
        self._in_place = True  # whether the plain Gram matrix of the rows where they lie serves
        self._in_slices = False
        self.centre: FloatArray | None = None
        return True

    def expect_few_rows(self) -> None:
        """Go the precise way at once: it takes no time."""
        self._in_slices = True

    def add(self, tile: FloatArray, row_numbers: IntArray) -> bool:
        """Take one tile whose rows all count once."""
        return self.add_weighted(tile, np.empty(0))

    def add_weighted(self, tile: FloatArray, roots: FloatArray) -> bool:
        """Take one tile of rows as they are, and the square roots of their weights; none where each counts once."""
        if self._in_place and not self._in_slices:
            weighted = tile * roots if roots.size else tile
            if self._add_plain(self._multiplied(weighted), lambda column: not weighted[column].any()):
                return True
        if not np.isfinite(tile[: self._width]).all():
            return False
        return self._look_closer(tile[: self._width], roots)

    def add_columns(self, addresses: IntArray, steps: IntArray, tiles: int, tile_rows: int) -> int:
        """Take tiles where they lie, while the plain Gram matrix serves."""
        if not self._in_place or addresses.size > WIDEST_KERNEL:
            return 0
        product = self._room_for_product(addresses.size)

        def add_from(tile: int, stop: int) -> int:
            here = addresses + tile * steps
            return add_tiles_of_columns(here, steps, stop - tile, tile_rows, product, self._trusted())

        def values(column: int, tile: int) -> FloatArray:
            return values_at(int(addresses[column] + tile * steps[column]), tile_rows)

        return self._add_tiles(tiles, add_from, values)

    def add_dense_tiles(self, rows: DenseRows, tile_rows: int) -> int:
        """Take tiles of rows where they lie, while the plain Gram matrix serves."""
        if not self._in_place:
            return 0
        tiles, ones = len(rows.features) // tile_rows, self._width - rows.features.shape[1] - self._targets

        def values(column: int, tile: int) -> FloatArray:
            here, place = slice(tile * tile_rows, (tile + 1) * tile_rows), column - ones
            features = rows.features.shape[1]
            return rows.features[here, place] if place < features else rows.targets[here, place - features]

        if self._wide is not None:
            for tile in range(tiles):
                wide = self._wide.multiply(rows, ones, tile * tile_rows, (tile + 1) * tile_rows)
                if not self._add_plain(wide, lambda column, here=tile: not values(column, here).any()):  # type: ignore[misc]
                    return tile
            return tiles
        padded = padded_width(self._width)
        if not self._strip.size:
            # Columns whose distance is no power of two do not compete for the same few places in the cache.
            self._strip = aligned_zeros((padded, STRIP_ROWS + 8))
        product = self._room_for_product(padded)

        def add_from(tile: int, stop: int) -> int:
            here = slice(tile * tile_rows, stop * tile_rows)
            given = DenseRows(rows.row_numbers, rows.features[here], rows.targets[here], rows.roots[here])
            return add_tiles_of_rows(given, ones, tile_rows, self._strip, product, self._trusted())

        return self._add_tiles(tiles, add_from, values)

    def _multiplied(self, tile: FloatArray) -> FloatArray | WideGram:
        return gram(tile) if self._wide is None else self._wide.multiply(dense_rows(tile.T))

    def _add_tiles(
        self, tiles: int, add_from: Callable[[int, int], int], values: Callable[[int, int], FloatArray]
    ) -> int:
        """Add many tiles at once, those that do not inflate the sum, and look closer at the first that does.

        Squares of tiny numbers are zero: a column of which all sums are zero is looked at itself.
        """
        tile = 0
        while tile < tiles:
            stop = self._zeros_until(tile, tiles, values)
            tile += add_from(tile, stop)
            if tile < stop:
                # Its product is still there.
                if not self._add_plain(self._product, lambda column, here=tile: not values(column, here).any()):  # type: ignore[misc]
                    break
                tile += 1
            elif tile < tiles:
                break
        return tile

    def _zeros_until(self, tile: int, tiles: int, values: Callable[[int, int], FloatArray]) -> int:
        """Return the first tile in which a column that has been zero so far is not."""
        if self._total is None:
            return tiles
        unseen = np.flatnonzero(np.diagonal(self._total.high) == 0)
        found = (here for here in range(tile, tiles) if any(values(int(column), here).any() for column in unseen))
        return next(found, tiles) if unseen.size else tiles

    def _trusted(self) -> Trusted:
        """Return the sum so far, its scale and its diagonal when last looked at, room for another, its inflation."""
        if self._total is None:
            return self._spare, np.stack([np.ones(self._width), self._before]), self._spare, np.inf
        unseen = np.diagonal(self._total.high) == 0
        scale = np.where(unseen, _UNSEEN, self._total.scale)
        return self._total.high, np.stack([scale, self._before]), self._spare, self._inflation

    def _room_for_product(self, width: int) -> FloatArray:
        if self._product.shape[-1] != width:
            self._product = np.empty((width, width))
        return self._product

    def trusts_plain_gram(self, tile: FloatArray) -> bool:
        """Tell of a first tile, without taking it, whether its plain Gram matrix is well enough conditioned."""
        other = TriangularAccumulator(self._width, self._targets)
        return other._add_plain(other._multiplied(tile), lambda column: not tile[column].any())

    def _add_plain(self, product: FloatArray | WideGram, is_zero: Callable[[int], bool]) -> bool:
        """Add a tile's Gram matrix, padded or not, if it is finite and the sum stays well enough conditioned.

        Of many columns sums are kept above the diagonal alone, until all of them are looked at.
        """
        if not isinstance(product, np.ndarray) and self._add_where_it_lies(product):
            return True
        with np.errstate(all="ignore"):
            norms = np.sqrt(product.diagonal()[: self._width])
            if not (norms[norms != 0] >= _SMALLEST_NORM).all():
                return False
        if not all(is_zero(int(column)) for column in np.flatnonzero(norms == 0)):
            return False
        scale, total = self._units(norms)
        candidate = self._spare
        growth = add_scaled(total.high, product, scale, self._before, candidate)
        if not 0 <= growth < np.inf or not self._is_safe(candidate, growth):
            return False
        self._total, self._spare = Products(scale, candidate), total.high
        return True

    def _add_where_it_lies(self, product: WideGram) -> bool:
        """Add a product of many columns to the sum itself, if squares alone show that neither needs another look."""
        if self._total is None:
            return False
        total, scale = self._total.high, self._total.scale
        with np.errstate(all="ignore"):
            squares, before = product.diagonal(), np.diagonal(total)
            # Units that a tile would outgrow are those of a sum that it inflates.
            growth = float(((before + squares * np.square(scale)) / self._before).max())
            if not (squares.min() >= _SMALLEST_NORM**2 and before.min() > 0 and growth * self._inflation <= 1.0):
                return False
        product.add_to(total, scale, total)
        return True

    def _units(self, norms: FloatArray) -> tuple[FloatArray, Products]:
        """Return units for a tile whose columns have these norms, and the sum so far in them."""
        if self._total is None:
            scale = power_of_two(norms)
            return scale, Products(scale, np.zeros((self._width, self._width)))
        unseen = (np.diagonal(self._total.high) == 0) & (norms != 0)
        if unseen.any():
            self._inflation = np.inf
        scale = np.where(unseen, power_of_two(norms), self._total.scale)
        # Units grow where a tile is far larger than all before it, so that its squares do not overflow.
        with np.errstate(all="ignore"):
            huge = norms * scale > 2.0**60
        if huge.any():
            scale = np.where(huge, power_of_two(norms), scale)
            self._inflation = np.inf
        return scale, self._total.at(scale)

    def _is_safe(self, candidate: FloatArray, growth: float) -> bool:
        """Tell whether a sum is well enough conditioned, columns that are zero so far left aside."""
        # The inverse of a smaller Gram matrix bounds that of a larger one: look again only when the bound fails.
        if growth * self._inflation <= 1.0:
            return True
        sizes = np.diagonal(candidate)
        if self._wide is not None:
            mirror(candidate)
        seen = sizes > 0
        within = candidate if seen.all() else candidate[np.ix_(seen, seen)]
        found = inflation(within, int(seen[: self._features].sum()), sizes[seen])
        if found > 1.0:
            return False
        self._inflation, self._before = found, np.where(seen, sizes, 1.0)
        return True

    def _look_closer(self, tile: FloatArray, roots: FloatArray) -> bool:
        """Take a tile for which the plain Gram matrix of its rows will not do."""
        if self._in_place:
            self._mirror()
            self._in_place = False
            self._inflation = np.inf
            if self._intercept:
                # Rows without weight have no say, and the ones stay.
                self.centre = middle(tile[:, roots > 0] if roots.size else tile)
                self.centre[0] = 0.0
                if self._total is not None:
                    self._total = self._total.moved(-self.centre)
        values = tile if self.centre is None else tile - self.centre[:, None]
        plain, values = values, values * roots if roots.size else values
        largest = np.abs(values).max(axis=1, initial=0.0)
        if not np.isfinite(largest).all():
            return False
        scale, total = self._units(np.minimum(largest, 1e300) * np.sqrt(max(values.shape[1], 1)))  # norms are doubles
        # Padded as the compiled kernel wants it.
        columns = np.zeros((padded_width(self._width), values.shape[1]))
        np.multiply(values, scale[:, None], out=columns[: self._width])
        if not self._in_slices and total.low is None:
            candidate = total.high + gram(columns)[: self._width, : self._width]
            if self._is_safe(candidate, float((np.diagonal(candidate) / self._before).max(initial=0.0))):
                self._total = Products(scale, candidate)
                return True
        self._in_slices = True
        from partsketch.common.linalg.double_double import DoubleDouble
        from partsketch.sketches.kernels.gram_slices import add_exact_gram, rounded_off

        lower = rounded_off(plain, roots, values) * scale[:, None] if roots.size else None
        sums = add_exact_gram(DoubleDouble.of(total.high, total.low), columns[: self._width], lower)
        self._total = Products(scale, *sums)
        return True

    def _mirror(self) -> None:
        if self._wide is not None and self._total is not None and self._in_place:
            mirror(self._total.high)

    def finish(self) -> FloatArray:
        """Return the sums of products, as `Products` writes them."""
        self._mirror()
        if self._total is None:
            self._total = Products(np.ones(self._width), np.zeros((self._width, self._width)))
        return self._total.written()
