"""Hostile tables, each of a kind that real data have; the target has noise, so that no fit is perfect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.problem import FloatArray


@dataclass(frozen=True)
class Design:
    """A table: `make` returns features and target."""

    name: str
    title: str
    make: Callable[[], tuple[FloatArray, FloatArray]]
    intercept: bool = True


def _from(
    columns: Callable[[np.random.Generator, FloatArray], FloatArray], rows: int = 2000
) -> Callable[[], tuple[FloatArray, FloatArray]]:
    """Return a maker of 1 − z₀ + z₁/2 + noise with features made of z."""

    def make() -> tuple[FloatArray, FloatArray]:
        generator = np.random.default_rng(0)
        z = generator.normal(size=(rows, 2))
        noise = generator.normal(size=rows)
        return columns(generator, z), 1 - z[:, 0] + z[:, 1] / 2 + noise

    return make


def _dummies(generator: np.random.Generator, z: FloatArray) -> FloatArray:
    levels = generator.integers(0, 5, len(z))
    levels[17] = 5
    return np.column_stack([levels[:, None] == np.arange(6), z]).astype(np.float64)


def _polynomial(generator: np.random.Generator, z: FloatArray) -> FloatArray:
    years = np.linspace(1950, 2024, len(z))
    return np.column_stack([years**power for power in (1, 2, 3)])


def _rotated(generator: np.random.Generator, z: FloatArray) -> FloatArray:
    rotation, other = (np.linalg.qr(generator.normal(size=(6, 6)))[0] for _ in range(2))
    return np.asarray(generator.normal(size=(len(z), 6)) @ rotation * np.logspace(0, -8, 6) @ other.T)


def _one_huge_row(generator: np.random.Generator, z: FloatArray) -> FloatArray:
    X = z.copy()
    X[1234] = [1e9, 3e8]
    return X


DESIGNS = (
    Design("tame", "two normal columns", _from(lambda g, z: z)),
    Design("zero", "a column of zeros, 100,000 rows", _from(lambda g, z: np.c_[np.zeros(len(z)), z], 100_000)),
    Design("zero-twice", "zeros, and a column twice, 100,000 rows",
           _from(lambda g, z: np.c_[z[:, 0], np.zeros(len(z)), z[:, 1], z[:, 1]], 100_000)),
    Design("identifier", "an identifier from 10¹⁶ on", _from(lambda g, z: np.c_[np.arange(len(z)) + 1e16, z])),
    Design("constant", "a constant, 1.7 · 10⁹", _from(lambda g, z: np.c_[z, np.full(len(z), 1.7e9)])),
    Design("large-constant", "a constant, 1.7 · 10¹⁸", _from(lambda g, z: np.c_[z, np.full(len(z), 1.7e18)])),
    Design("timestamps", "nanoseconds within a millisecond",
           _from(lambda g, z: np.c_[g.integers(0, 10**6, len(z)) + 1.7e18, z])),
    Design("far", "columns N(0, 1) + 10¹²", _from(lambda g, z: z + 1e12)),
    Design("unlike-scales", "equal columns of scale 10⁸ beside one of 10⁻⁷",
           _from(lambda g, z: np.c_[1e8 * z[:, 0], 1e-7 * z[:, 1], 1e8 * z[:, 0]])),
    Design("tiny", "a column times 10⁻¹⁷⁰", _from(lambda g, z: z * [1e-170, 1.0])),
    Design("huge", "a column times 10¹⁵⁰", _from(lambda g, z: z * [1e150, 1.0])),
    Design("dummies", "all levels of a category, one of them once", _from(_dummies)),
    Design("near", "columns that differ by 10⁻⁷", _from(lambda g, z: np.c_[z, z[:, 0] + 1e-7 * g.normal(size=len(z))])),
    Design("polynomial", "year, year², year³", _from(_polynomial)),
    Design("rotated", "condition 10⁸ in a rotated basis", _from(_rotated)),
    Design("huge-row", "one row of 10⁹", _from(_one_huge_row)),
    Design("few-rows", "nine rows, eight columns", _from(lambda g, z: np.c_[z, g.normal(size=(len(z), 6))], 9), False),
)  # fmt: skip
