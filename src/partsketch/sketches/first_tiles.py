"""Sums of Gram matrices of tiles: plainly the first ones of a process, then by the compiled kernels, to the same bits.

The kernels of `kernels/gram_sums.py` take half a second to compile, once after an installation, and save some twenty
microseconds for each tile: nothing in a fit of few rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from partsketch.common.linalg.column_kernels import column_addresses, gram_of_columns, gram_of_rows
from partsketch.sketches.accumulator import DenseRows, FloatArray, IntArray
from partsketch.sketches.gram import add_scaled

#: The sum so far, its scale and its diagonal when last looked at, room for another sum, its inflation.
Trusted = tuple[FloatArray, FloatArray, FloatArray, float]

#: Tiles that a process adds plainly before it asks for the kernels: two milliseconds in all.
FIRST_TILES = 96


class _Process:
    """How many tiles this process has added; threads that count past one another do no harm."""

    tiles = 0


def ask_for_kernels() -> None:
    """Add no tiles plainly any more, where fits are timed."""
    _Process.tiles = FIRST_TILES


def _are_first(tiles: int) -> bool:
    _Process.tiles += tiles
    return _Process.tiles <= FIRST_TILES


def add_tiles_of_columns(
    addresses: IntArray, steps: IntArray, tiles: int, tile_rows: int, product: FloatArray, trusted: Trusted
) -> int:
    """Do what the kernel of the same name does."""
    if _are_first(tiles):

        def multiply(tile: int) -> None:
            gram_of_columns(addresses + tile * steps, tile_rows, product)

        return _added(tiles, multiply, product, *trusted)
    from partsketch.sketches.kernels import gram_sums

    room = np.empty_like(addresses)
    return int(gram_sums.add_tiles_of_columns(addresses, steps, room, tiles, tile_rows, product, *trusted))


def add_tiles_of_rows(
    rows: DenseRows, ones: int, tile_rows: int, strip: FloatArray, product: FloatArray, trusted: Trusted
) -> int:
    """Do what the kernel of the same name does."""
    given, work = (rows.features, rows.targets, rows.roots), (ones, strip, column_addresses(strip), product)
    tiles = len(rows.features) // tile_rows
    if _are_first(tiles):

        def multiply(tile: int) -> None:
            gram_of_rows(*given, tile * tile_rows, (tile + 1) * tile_rows, *work)

        return _added(tiles, multiply, product, *trusted)
    from partsketch.sketches.kernels import gram_sums

    return int(gram_sums.add_tiles_of_rows(*given, tile_rows, *work, *trusted))


def _added(
    tiles: int,
    multiply: Callable[[int], None],
    product: FloatArray,
    total: FloatArray,
    units: FloatArray,
    spare: FloatArray,
    inflation: float,
) -> int:
    """Add tiles, the first of which that inflates the sum is left in `product`, and return how many."""
    for tile in range(tiles):
        multiply(tile)
        with np.errstate(all="ignore"):
            growth = add_scaled(total, product, units[0], units[1], spare)
            # Infinity times zero is not at most one.
            if growth < 0 or not growth * inflation <= 1.0:
                return tile
        total[...] = spare
    return tiles
