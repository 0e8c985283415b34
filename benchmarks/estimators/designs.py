"""Partitions of three real tables and of five synthetic designs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.problem import FloatArray
from partsketch import simulate, theory
from partsketch.paper.data_sets import TITLES, load

#: Columns and sketch rows of the synthetic designs.
COLUMNS, SIZE = 6, 24

Partitions = tuple[list[theory.PartitionMoments], FloatArray]


@dataclass(frozen=True)
class Design:
    """Partitions, drawn anew or always the same.

    Attributes
    ----------
    name
        Words for the table.
    count
        Number of partitions k.
    sketch_size
        Rows m of each sketch.
    shared
        Whether partitions share their coefficients by construction; None for real tables.
    is_drawn
        Whether `make` gives other rows every time.
    make
        Returns the exact moments of the partitions, and the noise variance of each.
    draws
        How many sets of sketches are drawn.
    """

    name: str
    count: int
    sketch_size: int
    shared: bool | None
    is_drawn: bool
    make: Callable[[np.random.Generator], Partitions]
    draws: int


def _synthetic(
    rows: FloatArray, scales: FloatArray, noise: FloatArray, spread: float
) -> Callable[[np.random.Generator], Partitions]:
    def make(rng: np.random.Generator) -> Partitions:
        parts = []
        for count, scale, level in zip(rows.astype(int), scales, noise, strict=True):
            X = scale * rng.standard_normal((count, COLUMNS))
            truth = 1 + spread * rng.standard_normal(COLUMNS)
            parts.append(theory.PartitionMoments.from_rows(X, X @ truth + level * rng.standard_normal(count)))
        return parts, noise**2

    return make


def synthetic(k: int, wanted: Callable[[str], bool] = bool) -> Iterator[Design]:
    """Yield the five synthetic designs for k partitions, or those of them whose names are wanted."""
    ones, even = np.ones(k), np.full(k, 500.0)
    uneven, small = np.r_[np.full(k - 1, 100.0), 3000.0], np.r_[np.full(k - 1, 3.0), 1.0]
    noise = np.geomspace(0.2, 4.0, k)
    for name, shared, make in (
        ("alike", True, _synthetic(even, ones, ones, 0.0)),
        ("uneven sizes", True, _synthetic(uneven, ones, ones, 0.0)),
        ("uneven sizes and scales", True, _synthetic(uneven, small, ones, 0.0)),
        ("unlike noise", True, _synthetic(even, ones, noise, 0.0)),
        ("unlike coefficients", False, _synthetic(even, ones, ones, 0.5)),
    ):
        if wanted(name):
            yield Design(name, k, SIZE, shared, True, make, 800)


def _always(found: Partitions) -> Callable[[np.random.Generator], Partitions]:
    return lambda rng: found


def real(k: int, shuffled: bool, wanted: Callable[[str], bool] = bool) -> Iterator[Design]:
    """Yield the paper's three tables, cut into k partitions in file order or after a shuffle."""
    for name in ("house", "digits", "cover"):
        title = f"{TITLES[name]}, {'shuffled' if shuffled else 'file order'}"
        if not wanted(title):
            continue
        data = load(name).shuffled() if shuffled else load(name)
        parts = simulate.partition_factors(data.X, data.y, [k])[k]
        pooled = theory.pooled_moments(parts)
        noise = np.full(k, pooled.loss / (pooled.row_count - pooled.rank))
        columns, least = data.X.shape[1], min(part.row_count for part in parts)
        # With as many rows as the data orthogonal sketches lose nothing, and no sketch is one.
        size = 4 * columns if 4 * columns < least else (columns + least) // 2
        # A draw of Digits takes a second.
        yield Design(title, k, size, None, False, _always((parts, noise)), 100 if name == "digits" else 400)
