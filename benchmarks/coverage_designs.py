"""Partitions on which certificates are tried: alike, unlike, heavy, uneven, singular, sorted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Partition = tuple[FloatArray, FloatArray]
COLUMNS, PARTITIONS, ROWS = 6, 8, 200


def alike(rng: np.random.Generator) -> list[Partition]:
    """Partitions with one coefficient vector and one noise variance."""
    return _partitions(rng)


def unlike_coefficients(rng: np.random.Generator) -> list[Partition]:
    """Coefficients that differ between partitions by half the noise's standard deviation."""
    return _partitions(rng, scatter=0.5)


def unlike_noise(rng: np.random.Generator) -> list[Partition]:
    """Noise with standard deviations from 0.2 to 4."""
    return _partitions(rng, noise=np.geomspace(0.2, 4, PARTITIONS))


def one_noisy(rng: np.random.Generator) -> list[Partition]:
    """One of four partitions with ten times the noise of the others."""
    return _partitions(rng, noise=np.array([10.0, 1.0, 1.0, 1.0]), rows=[ROWS] * 4)


def unlike_both(rng: np.random.Generator) -> list[Partition]:
    """Coefficients and noise that differ."""
    return _partitions(rng, scatter=0.5, noise=np.geomspace(0.2, 4, PARTITIONS))


def heavy_tails(rng: np.random.Generator) -> list[Partition]:
    """Features with 2.5 degrees of freedom and noise with 2."""
    return _partitions(rng, tails=True)


def uneven(rng: np.random.Generator) -> list[Partition]:
    """Partitions of 60 to 1,600 rows with coefficients that differ."""
    return _partitions(rng, scatter=0.3, rows=[int(60 * 1.6**i) for i in range(PARTITIONS)])


def singular(rng: np.random.Generator) -> list[Partition]:
    """Indicator columns that are zero in some partitions."""
    parts = _partitions(rng, scatter=0.3)
    for index, (X, _) in enumerate(parts):
        X[:, 1 + index % 3] = 0.0 if index % 2 else X[:, 1 + index % 3]
    return [(X, X @ np.arange(1.0, COLUMNS + 1) + rng.standard_normal(len(X))) for X, _ in parts]


def sorted_by_target(rng: np.random.Generator) -> list[Partition]:
    """Rows in the order of the target, as in a file that somebody sorted."""
    parts = _partitions(rng)
    X, y = np.vstack([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    order = np.argsort(y)
    return list(zip(np.split(X[order], PARTITIONS), np.split(y[order], PARTITIONS), strict=True))


def _partitions(
    rng: np.random.Generator,
    scatter: float = 0.0,
    noise: FloatArray | None = None,
    tails: bool = False,
    rows: list[int] | None = None,
) -> list[Partition]:
    common = rng.standard_normal(COLUMNS)
    partitions = []
    for index, count in enumerate(rows or [ROWS] * PARTITIONS):
        X = rng.standard_t(2.5, (count, COLUMNS)) if tails else rng.standard_normal((count, COLUMNS))
        X[:, 0] = 1.0
        errors = rng.standard_t(2, count) if tails else rng.standard_normal(count)
        coefficients = common + scatter * rng.standard_normal(COLUMNS)
        partitions.append((X, X @ coefficients + errors * (1.0 if noise is None else noise[index])))
    return partitions


DESIGNS: dict[str, Callable[[np.random.Generator], list[Partition]]] = {
    "alike": alike,
    "unlike coefficients": unlike_coefficients,
    "unlike noise": unlike_noise,
    "unlike coefficients and noise": unlike_both,
    "heavy tails": heavy_tails,
    "uneven sizes": uneven,
    "singular partitions": singular,
    "sorted by the target": sorted_by_target,
}
