"""What compiled kernels save: each beside the same work done plainly, on one thread. `python -m benchmarks.kernels`.

Notes at the top of the kernels tell the factors that this prints.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from threadpoolctl import threadpool_limits

from partsketch.common.linalg.blas import tile_rows_for
from partsketch.common.linalg.column_kernels import column_addresses
from partsketch.common.linalg.double_double import DoubleDouble
from partsketch.common.linalg.wide_gram import WideGram
from partsketch.fitting.refinement.kernels import add_dense
from partsketch.sketches.accumulator import Columns, Stream, dense_rows
from partsketch.sketches.base import SketchSpecification, get_sketch
from partsketch.sketches.kernels.gram_slices import add_exact_gram
from partsketch.sketches.kernels.gram_sums import add_tiles_of_columns
from partsketch.sketches.random import derive_key, fill_normals

ROWS, WIDTH, SIZE, REPEATS = 65536, 40, 300, 25
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(ROWS, WIDTH))
#: Rows that no cache holds.
MANY = np.tile(X, (8, 1))

Work = Callable[[], Any]


def sketch_work(kind: str) -> Work:
    specification = SketchSpecification(kind, SIZE, 0)
    rows = dense_rows(X)

    def made() -> Any:
        accumulator = get_sketch(kind).accumulator(specification, Stream(row_count=ROWS), Columns(WIDTH, 0, False))
        accumulator.add_rows(rows)
        return accumulator.finish()

    return made


def plain_scatter(sparsity: int) -> Work:
    """Return the sketch as a product with a sparse matrix, whose places need not be distinct."""

    def made() -> Any:
        places = RANDOM.integers(SIZE, size=ROWS * sparsity)
        signs = RANDOM.choice([-1.0, 1.0], size=ROWS * sparsity)
        matrix = scipy.sparse.csc_array((signs, places, np.arange(0, ROWS * sparsity + 1, sparsity)), (SIZE, ROWS))
        return matrix @ X

    return made


def plain_hadamard() -> Any:
    work = X * RANDOM.choice([-1.0, 1.0], size=(ROWS, 1))
    step = 1
    while step < ROWS:
        pairs = work.reshape(-1, 2, step * WIDTH)
        work = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1)
        step *= 2
    return work.reshape(ROWS, WIDTH)[RANDOM.choice(ROWS, SIZE, replace=False)]


def plain_gaussian() -> Any:
    return sum(RANDOM.normal(size=(SIZE, 512)) @ X[first : first + 512] for first in range(0, ROWS, 512))


def gram_work() -> Work:
    columns = np.ascontiguousarray(X.T)
    tile_rows = 512
    steps = np.full(WIDTH, tile_rows * 8)
    product, spare, scale = np.empty((WIDTH, WIDTH)), np.empty((WIDTH, WIDTH)), np.ones(WIDTH)

    def made() -> Any:
        total = np.zeros((WIDTH, WIDTH))
        # An inflation of zero: every tile is taken.
        taken = add_tiles_of_columns(
            column_addresses(columns), steps, ROWS // tile_rows, tile_rows, product, total, scale, spare, 0.0
        )
        assert taken == ROWS // tile_rows
        return total

    return made


def wide_work(width: int) -> tuple[Work, Work]:
    """Return products of many columns and ones, from rows where they lie, and of a copy of them by NumPy."""
    height = tile_rows_for(width)
    rows = dense_rows(RANDOM.normal(size=(2 * height, width)))
    out = np.zeros((width + 1, width + 1))

    def made() -> None:
        product = WideGram(width + 1)
        for begin in range(0, len(rows.features), height):
            product.multiply(rows, 1, begin, begin + height).add_to(out, np.ones(width + 1), out)

    def plain() -> None:
        tile = np.ones((height, width + 1))
        for begin in range(0, len(rows.features), height):
            tile[:, 1:] = rows.features[begin : begin + height]
            np.add(out, tile.T @ tile, out=out)

    return made, plain


def plain_gram() -> Any:
    matrix = np.column_stack(COLUMNS)
    return matrix.T @ matrix


COLUMNS = [np.ascontiguousarray(column) for column in X.T]


def exact_gram() -> Any:
    tile = np.ascontiguousarray(X[:4096].T)
    return add_exact_gram(DoubleDouble.of(np.zeros((WIDTH, WIDTH))), tile)


def plain_exact_gram() -> Any:
    wide = X[:4096].astype(np.longdouble)
    return wide.T @ wide


def pass_work() -> Work:
    coefficients, targets, nothing = np.ones((1, WIDTH)), MANY[:, :1].copy(), np.empty(0)

    def made() -> Any:
        state, partial, total = np.zeros(1, np.int64), np.zeros((1, WIDTH + 1)), np.zeros((1, WIDTH + 1))
        add_dense(MANY, targets, nothing, coefficients, 0, state, partial, total)
        return partial + total

    return made


def plain_pass() -> Any:
    residuals = MANY[:, 0] - MANY @ np.ones(WIDTH)
    return MANY.T @ residuals


def numbers_work() -> Work:
    key, rows, out = derive_key(0, "gaussian"), np.arange(4096), np.empty((64, 4096))
    return lambda: fill_normals(key, 0, rows, 1.0, out)


PAIRS: dict[str, tuple[Work, Work]] = {
    "gram_sums.py, column_kernels.py: Gram matrix of columns, beside column_stack and NumPy": (gram_work(), plain_gram),
    **{
        f"panel_kernels.py: Gram matrix of {width} columns of rows, beside copies and NumPy": wide_work(width)
        for width in (256, 1000)
    },
    "gram_slices.py: products without rounding, beside long doubles": (exact_gram, plain_exact_gram),
    "products.py: Gaussian sketch, beside NumPy's normals and product": (sketch_work("gaussian"), plain_gaussian),
    "random.py: normal numbers, beside NumPy's": (numbers_work(), lambda: RANDOM.normal(size=(64, 4096))),
    "scatter.py: sparse_sign, beside a sparse product": (sketch_work("sparse_sign"), plain_scatter(8)),
    "scatter.py: count_sketch, beside a sparse product": (sketch_work("count_sketch"), plain_scatter(1)),
    "hadamard.py: srht, beside a whole transform in NumPy": (sketch_work("srht"), plain_hadamard),
    "refinement/kernels.py: residuals and their products, beside two products": (pass_work(), plain_pass),
}


def seconds(work: Work) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> None:
    """Print the least time of each pair, taken in turns, and how many times longer the plain way takes."""
    print(f"{ROWS:,} rows of {WIDTH} columns, sketches of {SIZE} rows; the least of {REPEATS}, one thread")
    with threadpool_limits(1):
        for name, pair in PAIRS.items():
            for work in pair:
                work()
            times = [[seconds(work) for work in pair] for _ in range(REPEATS)]
            ours, plain = (min(column) for column in zip(*times, strict=True))
            print(f"{name}: {1e3 * ours:.2f} ms, plainly {1e3 * plain:.2f} ms, {plain / ours:.1f} times")


if __name__ == "__main__":
    main()
