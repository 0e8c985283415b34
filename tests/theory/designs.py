"""Data and explicit sketches for the tests of the theory: three designs, and every S drawn entry by entry."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import hadamard
from sklearn.datasets import load_digits

from partsketch.theory import PartitionMoments
from partsketch.theory.many_moments import many_moments

FloatArray = NDArray[np.float64]
Partition = tuple[FloatArray, FloatArray]
DESIGNS = ("identical", "heterogeneous", "singular")
COLUMNS = 4
COEFFICIENTS = np.array([1.0, -2.0, 0.5, 3.0])


def design(name: str, seed: int = 11) -> list[Partition]:
    """Three partitions of 4 columns: i.i.d. and even; unlike and uneven; singular, unlike and uneven."""
    rng = np.random.default_rng(seed)
    sizes = (60, 60, 60) if name == "identical" else (50, 90, 70)
    partitions = []
    for index, size in enumerate(sizes):
        X = rng.standard_normal((size, COLUMNS))
        if name == "heterogeneous":
            X = X @ np.diag([1.0, 1 + index, 2.0, 1 / (1 + 0.5 * index)]) + 0.3 * index * X[:, [1, 0, 3, 2]]
        if name == "singular" and index != 1:
            X[:, index] = 0.0 if index == 0 else 2 * X[:, 3]
        # Errors far from Gaussian, and a curve the model misses: the given-data formulas assume nothing of them.
        y = X @ COEFFICIENTS + rng.exponential(1.0, size) - 1 + 0.3 * X[:, 1] ** 2
        partitions.append((X, y))
    return partitions


def explicit_sketches(rows: FloatArray, sketch_size: int, draws: int, rng: np.random.Generator) -> FloatArray:
    """`S [X y]` for many explicit Gaussian S with entries N(0, 1/m): draws × m × q."""
    batches = []
    for start in range(0, draws, 2000):
        S = rng.standard_normal((min(2000, draws - start), sketch_size, len(rows))) / np.sqrt(sketch_size)
        batches.append(S @ rows)
    return np.concatenate(batches)


def read_all(sets: Sequence[Sequence[FloatArray]], size: int | None = None) -> list[list[PartitionMoments]]:
    """Read many sets of sketches, or of factors of sketches of one size: thousands together take a part of the time."""
    sketches = [sketch for one in sets for sketch in one]
    parts = iter(many_moments(sketches, [size or len(sketch) for sketch in sketches]))
    return [list(islice(parts, len(one))) for one in sets]


def fits(sketches: FloatArray) -> FloatArray:
    """Minimum-norm least squares on each sketch, the target in the last column.

    By normal equations: half the digits are enough for means over draws, and thousands of sketches take a third of the
    time. Columns that depend on others do so exactly, far below 1e-12 of the largest eigenvalue.
    """
    across = sketches[:, :, :-1].transpose(0, 2, 1)
    inverses = np.linalg.pinv(across @ sketches[:, :, :-1], rcond=1e-12, hermitian=True)
    return np.asarray((inverses @ (across @ sketches[:, :, -1:]))[:, :, 0])


def together(partition: Partition) -> FloatArray:
    """`[X y]`."""
    return np.column_stack(partition)


def excesses(partitions: list[Partition], coefficients: FloatArray) -> FloatArray:
    """`‖X (a − a*)‖²` from the rows themselves."""
    X = np.vstack([part[0] for part in partitions])
    y = np.concatenate([part[1] for part in partitions])
    exact = np.linalg.lstsq(X, y)[0]
    return np.asarray(np.sum(((coefficients - exact) @ X.T) ** 2, axis=1))


@cache
def _hadamard(size: int) -> FloatArray:
    return np.asarray(hadamard(size, dtype=np.float64))


def sketch_matrix(kind: str, sketch_size: int, rows: int, rng: np.random.Generator) -> FloatArray:
    """One explicit sketching matrix, m × p, with `E SᵀS` the identity."""
    if kind == "gaussian":
        return np.asarray(rng.standard_normal((sketch_size, rows)) / np.sqrt(sketch_size))
    if kind == "srht":
        padded = 2 ** int(np.ceil(np.log2(rows)))
        picked = rng.choice(padded, sketch_size, replace=False)
        signs = rng.choice([-1.0, 1.0], rows)
        return np.asarray(_hadamard(padded)[picked, :rows] * (signs / np.sqrt(sketch_size)))
    if kind == "orthogonal":
        turned = np.linalg.qr(rng.standard_normal((rows, sketch_size)))[0]
        return np.asarray(turned.T * np.sqrt(rows / sketch_size))
    non_zeros = 8
    S = np.zeros((sketch_size, rows))
    places = np.argsort(rng.random((sketch_size, rows)), axis=0)[:non_zeros]
    S[places, np.arange(rows)] = rng.choice([-1.0, 1.0], (non_zeros, rows)) / np.sqrt(non_zeros)
    return S


def digits_partitions(k: int) -> list[PartitionMoments]:
    """Digits without its constant columns, the first k⌊n/k⌋ rows in k partitions in default order."""
    X, y = load_digits(return_X_y=True)
    X = X[:, X.std(axis=0) > 0]
    size = len(X) // k
    return [
        PartitionMoments.from_rows(X[i * size : (i + 1) * size], y[i * size : (i + 1) * size].astype(float))
        for i in range(k)
    ]
