"""Figures 2 and 3: the time to build one estimator, sketch generation and application included.

The clock is the processor time of one thread, with the linear algebra limited to that thread: on an idle machine it is
the time that passes, and on a busy one it does not count the waiting.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from partsketch.common.linalg.blas import one_thread_each
from partsketch.paper.clock import ClockSettings, timed
from partsketch.paper.data_sets import DataSet
from partsketch.paper.explicit_sketches import Columns, FloatArray, gaussian_sketch
from partsketch.paper.results import Row, Tables
from partsketch.sketches.accumulator import Columns as SketchColumns
from partsketch.sketches.accumulator import Stream
from partsketch.sketches.base import SketchSpecification
from partsketch.sketches.gaussian import GaussianSketch
from partsketch.sketches.srht import padded_rows, srht
from partsketch.sketches.triangular import TriangularSketch

Readings = tuple[float, ...]


def _solved(start: float, features: FloatArray, target: FloatArray) -> Readings:
    middle = time.thread_time()
    np.linalg.lstsq(features, target)
    return start, middle, time.thread_time()


def build_exactly(X: FloatArray, y: FloatArray) -> Readings:
    """Exact least squares as NumPy solves it, O(nd²)."""
    return _solved(time.thread_time(), X, y)


def build_from_factor(columns: Columns) -> Readings:
    """Exact least squares as partsketch solves it: the triangular factor of [X y], O(nd²), then a small solve."""
    start = time.thread_time()
    accumulator = TriangularSketch().accumulator(
        SketchSpecification("triangular"), Stream(), SketchColumns(columns.width - 1, 1, False)
    )
    for tile, row_numbers in columns.tiles(0, columns.values.shape[1]):
        accumulator.add(tile, row_numbers)
    factor = accumulator.finish()
    return _solved(start, factor[:, :-1], factor[:, -1])


def build_from_gram(rows: FloatArray) -> Readings:
    """Exact least squares by the normal equations: one product [X y]ᵀ[X y], O(nd²), then a small solve."""
    start = time.thread_time()
    gram = rows.T @ rows
    return _solved(start, gram[:-1, :-1], gram[:-1, -1])


def build_from_gaussian(X: FloatArray, y: FloatArray, size: int, rng: np.random.Generator) -> Readings:
    """Least squares on an explicit Gaussian sketch made by NumPy, as the paper times it: O(mdn)."""
    start = time.thread_time()
    S = rng.standard_normal((size, len(X))) / np.sqrt(size)
    return _solved(start, S @ X, S @ y)


def build_from_fast_gaussian(columns: Columns, size: int, seed: int) -> Readings:
    """Least squares on partsketch's own Gaussian sketch, made a strip at a time."""
    start = time.thread_time()
    sketch = gaussian_sketch(columns, size, seed, 0, 0, columns.values.shape[1])
    return _solved(start, sketch[:, :-1], sketch[:, -1])


def build_from_srht(rows: FloatArray, size: int, seed: int) -> Readings:
    """Least squares on a randomised Hadamard sketch by the fast transform: O(nd log n)."""
    start = time.thread_time()
    sketch = srht(rows, size, seed)
    return _solved(start, sketch[:, :-1], sketch[:, -1])


def timing_experiment(data: DataSet, counts: tuple[int, ...], size: int, settings: ClockSettings) -> Tables:
    """Return the time per estimator for every k, the linear algebra limited to one thread.

    Parameters
    ----------
    data : DataSet
        The rows.
    counts : tuple of int
        Values of k.
    size : int
        Rows m of a sketch.
    settings : ClockSettings
        How long to measure, and the seed.

    Returns
    -------
    tables
        "times": one row per estimator and k. OLS and β̂_i do not depend on k; they have k = 1.
    """
    rng = np.random.default_rng(settings.seed)
    rows: list[Row] = []
    n = len(data.X)
    together = np.column_stack([data.X, data.y])
    whole = Columns.of(data.X, data.y)

    def add(name: str, k: int, partition_rows: int, work: Callable[[int], Readings]) -> None:
        entry: Row = {"data_set": data.name, "estimator": name, "k": k, "rows": partition_rows, "sketch_size": size}
        rows.append({**entry, "features": data.X.shape[1], **timed(work, settings)})

    GaussianSketch().prepare()
    with one_thread_each():
        add("ols", 1, n, lambda _: build_exactly(data.X, data.y))
        add("ols_factor", 1, n, lambda _: build_from_factor(whole))
        add("ols_gram", 1, n, lambda _: build_from_gram(together))
        add("whole", 1, n, lambda _: build_from_gaussian(data.X, data.y, size, rng))
        for k in counts:
            p = n // k
            features = [np.ascontiguousarray(data.X[i * p : (i + 1) * p]) for i in range(min(k, 20))]
            targets = [data.y[i * p : (i + 1) * p] for i in range(min(k, 20))]
            columns = [Columns.of(X, y) for X, y in zip(features, targets, strict=True)]
            rows_together = [np.column_stack([X, y]) for X, y in zip(features, targets, strict=True)]
            turn = len(features)

            def sketched(i: int, X: list[FloatArray] = features, y: list[FloatArray] = targets) -> Readings:
                return build_from_gaussian(X[i % len(X)], y[i % len(X)], size, rng)

            def fast(i: int, Z: list[Columns] = columns, turn: int = turn) -> Readings:
                return build_from_fast_gaussian(Z[i % turn], size, settings.seed)

            def exact(i: int, X: list[FloatArray] = features, y: list[FloatArray] = targets) -> Readings:
                return build_exactly(X[i % len(X)], y[i % len(X)])

            def factor(i: int, Z: list[Columns] = columns, turn: int = turn) -> Readings:
                return build_from_factor(Z[i % turn])

            def gram(i: int, Z: list[FloatArray] = rows_together, turn: int = turn) -> Readings:
                return build_from_gram(Z[i % turn])

            add("partition", k, p, sketched)
            add("partition_gram", k, p, gram)
            add("partition_fast", k, p, fast)
            add("partition_ols", k, p, exact)
            add("partition_factor", k, p, factor)
    return {"times": rows}


def hadamard_experiment(
    data: DataSet, row_counts: tuple[int, ...], counts: tuple[int, ...], sweep: tuple[int, ...], settings: ClockSettings
) -> Tables:
    """Return the times of Figure 3: SRHT beside Gaussian for β̂_i, and θ̂_i against k, at reduced n.

    Parameters
    ----------
    data : DataSet
        Digits; rows are drawn without replacement, as the paper does (beyond its rows, with replacement, which does not
        matter to a clock).
    row_counts : tuple of int
        Values of n for which θ̂_i is timed against k.
    counts : tuple of int
        Values of k.
    sweep : tuple of int
        Values of n for which Gaussian and SRHT are timed.
    settings : ClockSettings
        How long to measure, and the seed.

    Returns
    -------
    tables
        "times": one row per estimator, n and k.
    """
    size = data.X.shape[1] + 2
    rng = np.random.default_rng(settings.seed)
    out: list[Row] = []
    with one_thread_each():
        for n in sorted({*row_counts, *sweep}):
            chosen = np.sort(rng.choice(len(data.X), n, replace=n > len(data.X)))
            X, y = data.X[chosen], data.y[chosen]
            together = np.column_stack([X, y])

            def add(name: str, k: int, work: Callable[[int], Readings], n: int = n) -> None:
                entry: Row = {"estimator": name, "n": n, "k": k, "sketch_size": size, "padded_rows": padded_rows(n)}
                out.append({**entry, **timed(work, settings)})

            def whole(_: int, X: FloatArray = X, y: FloatArray = y) -> Readings:
                return build_from_gaussian(X, y, size, rng)

            def rotated(i: int, rows: FloatArray = together) -> Readings:
                return build_from_srht(rows, size, settings.seed + i)

            def exact(_: int, X: FloatArray = X, y: FloatArray = y) -> Readings:
                return build_exactly(X, y)

            add("whole", 1, whole)
            add("srht", 1, rotated)
            add("ols", 1, exact)
            for k in counts if n in row_counts else ():

                def sketched(i: int, X: FloatArray = X, y: FloatArray = y, k: int = k) -> Readings:
                    p = len(X) // k
                    here = slice(i % k * p, (i % k + 1) * p)
                    return build_from_gaussian(X[here], y[here], size, rng)

                add("partition", k, sketched)
    return {"times": out}
