"""Sums of Gram matrices of one tile after another, as long as they can be trusted: compiled work of `triangular.py`.

Tiles are small, so that their products stay precise; one call takes many of them and holds no interpreter lock.
What doing it plainly costs is said in `column_kernels.py`, whose products these are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.column_kernels import gram_of_columns, gram_of_rows
from partsketch.common.linalg.compiled import compiled, compiled_with

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Compiled once, within what calls them: a function of its own would be compiled, and then again with each caller.
_inlined = compiled_with(inline="always")


@_inlined
def add_scaled_gram(
    total: FloatArray, product: FloatArray, scale: FloatArray, before: FloatArray, out: FloatArray
) -> float:
    """Write total + D product D, D being the diagonal matrix of the scales, and return how much its diagonal grew.

    That is its largest entry over the same of `before`. Returns −1 when the product has entries that are not finite:
    then one on the diagonal is not, for no product of two columns is larger than both their squares.
    """
    width = scale.size
    largest, nothing = 0.0, 0.0
    for i in range(width):
        nothing += product[i, i] - product[i, i]
        for j in range(width):
            out[i, j] = total[i, j] + product[i, j] * (scale[i] * scale[j])
        growth = out[i, i] / before[i]
        # Compared, not `max`: that is one more function to compile.
        if growth > largest:
            largest = growth
    return largest if nothing == 0.0 else -1.0


@_inlined
def _taken(total: FloatArray, product: FloatArray, units: FloatArray, spare: FloatArray, inflation: float) -> bool:
    scale = units[0]
    growth = add_scaled_gram(total, product, scale, units[1], spare)
    # Infinity times zero is not at most one.
    if growth < 0 or not growth * inflation <= 1.0:
        return False
    # Loops, not a slice: that takes the compiler seconds.
    for i in range(scale.size):
        for j in range(scale.size):
            total[i, j] = spare[i, j]
    return True


@compiled
def add_tiles_of_rows(
    features: FloatArray,
    targets: FloatArray,
    roots: FloatArray,
    tile_rows: int,
    ones: int,
    strip: FloatArray,
    addresses: IntArray,
    product: FloatArray,
    total: FloatArray,
    units: FloatArray,
    spare: FloatArray,
    inflation: float,
) -> int:
    """Add the Gram matrices of whole tiles of rows to the total, and return how many; stop at one that inflates it.

    The product of that one is left in `product`. `units` are the scale of the total, and its diagonal when it was last
    looked at.
    """
    for begin in range(0, features.shape[0] - tile_rows + 1, tile_rows):
        end = begin + tile_rows
        gram_of_rows(features, targets, roots, begin, end, ones, strip, addresses, product)
        if not _taken(total, product, units, spare, inflation):
            return begin // tile_rows
    return len(features) // tile_rows


@compiled
def add_tiles_of_columns(
    addresses: IntArray,
    steps: IntArray,
    here: IntArray,
    tiles: int,
    tile_rows: int,
    product: FloatArray,
    total: FloatArray,
    units: FloatArray,
    spare: FloatArray,
    inflation: float,
) -> int:
    """Do the same with columns at these addresses, which are `steps` bytes further on in the next tile.

    `here` has room for the addresses of one tile.
    """
    for tile in range(tiles):
        for column in range(addresses.size):
            here[column] = addresses[column] + tile * steps[column]
        gram_of_columns(here, tile_rows, product)
        if not _taken(total, product, units, spare, inflation):
            return tile
    return tiles
