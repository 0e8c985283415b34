"""The data of the workloads: deterministic, made chunk by chunk, kept in .benchmark-data; and their reference answers.

The reference is Householder QR over chunks (TSQR), then refined with residuals in extended precision, so that it is
better than the float64 answers that are held against it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

FloatArray = NDArray[np.float64]
Chunks = Callable[[], Iterator[tuple[FloatArray, FloatArray]]]

DATA = Path(__file__).resolve().parent.parent / ".benchmark-data"
TARGET = "y"
_ROW_GROUP = 1_000_000
_REFINEMENT_CHUNK = 250_000
_REFINEMENTS = 2


@dataclass(frozen=True)
class Arrays:
    """Features, C-ordered, and target."""

    X: FloatArray
    y: FloatArray

    def head(self, rows: int) -> Arrays:
        """Return the first rows, for warming up."""
        return Arrays(np.array(self.X[:rows]), np.array(self.y[:rows]))


@dataclass(frozen=True)
class Reference:
    """Exact least squares with an intercept.

    Attributes
    ----------
    coefficients
        Intercept first.
    factor
        R with RᵀR = AᵀA for A = [1 X].
    loss
        Residual sum of squares ℓ.
    last_step
        Relative size of the last refinement: an estimate of what is still wrong with the coefficients.
    """

    coefficients: FloatArray
    factor: FloatArray
    loss: float
    last_step: float

    def forward_error(self, coefficients: FloatArray) -> float:
        """Return ‖a − a*‖ / ‖a*‖."""
        return float(np.linalg.norm(coefficients - self.coefficients) / np.linalg.norm(self.coefficients))

    def excess_loss(self, coefficients: FloatArray) -> float:
        """Return ‖X(a − a*)‖² / ℓ, which equals the relative excess of the loss but is not a difference of losses."""
        return float(np.sum((self.factor @ (coefficients - self.coefficients)) ** 2) / self.loss)


@dataclass(frozen=True)
class Problem:
    """A regression problem; `condition` 0 means mildly correlated columns of different scales with means."""

    rows: int
    width: int
    condition: float = 0.0

    @property
    def name(self) -> str:
        """A file name."""
        return f"{'plain' if not self.condition else 'ill'}-{self.rows}x{self.width}"

    def chunks(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield features and target, a row group at a time."""
        mixing, means, slopes, noise = self._constants()
        for number, begin in enumerate(range(0, self.rows, _ROW_GROUP)):
            rng = np.random.default_rng([20240229, self.width, int(self.condition), number])
            count = min(_ROW_GROUP, self.rows - begin)
            X = rng.standard_normal((count, self.width)) @ mixing
            X += means
            yield X, X @ slopes + 1.0 + noise * rng.standard_normal(count)

    def _constants(self) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        rng = np.random.default_rng([1, self.width])
        if self.condition:
            # Rotated, so that no scaling of columns cures it: X = U diag(1 … 1/κ) Vᵀ.
            rotation = np.linalg.qr(rng.standard_normal((self.width, self.width)))[0]
            mixing = np.geomspace(1.0, 1.0 / self.condition, self.width)[:, None] * rotation.T
            means = np.zeros(self.width)
        else:
            scales = np.geomspace(0.1, 10.0, self.width)
            mixing = (np.eye(self.width) + 0.3 / np.sqrt(self.width) * rng.standard_normal((self.width,) * 2)) * scales
            means = scales * rng.standard_normal(self.width)
        slopes = rng.standard_normal(self.width) / np.linalg.norm(mixing, axis=0)
        return mixing, means, slopes, float(np.linalg.norm(mixing @ slopes))  # noise as large as signal: R² = 1/2

    def make_arrays(self) -> Path:
        """Write the rows as one array [X y] per kind; return the folder."""
        folder = DATA / f"{self.name}.arrays"
        if not (folder / "y.npy").exists():
            folder.mkdir(parents=True, exist_ok=True)
            parts = list(self.chunks())
            np.save(folder / "X.npy", np.concatenate([X for X, _ in parts]))
            np.save(folder / "y.npy", np.concatenate([y for _, y in parts]))
        return folder

    def arrays(self) -> Arrays:
        """Load the rows into memory."""
        folder = self.make_arrays()
        return Arrays(np.load(folder / "X.npy"), np.load(folder / "y.npy"))

    def parquet(self) -> Path:
        """Return the Parquet file, made on first use with pyarrow's default settings."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = DATA / f"{self.name}.parquet"
        if path.exists():
            return path
        DATA.mkdir(parents=True, exist_ok=True)
        names = [f"x{index}" for index in range(self.width)]
        schema = pa.schema([(name, pa.float64()) for name in [*names, TARGET]])
        unfinished = path.with_suffix(".unfinished")
        with pq.ParquetWriter(unfinished, schema) as writer:
            for X, y in self.chunks():
                columns = [np.ascontiguousarray(column) for column in X.T]
                writer.write_table(pa.table([*columns, y], schema=schema), row_group_size=_ROW_GROUP)
        unfinished.rename(path)
        return path

    def csv(self) -> Path:
        """Return the CSV file, made on first use with all digits."""
        import pyarrow as pa
        from pyarrow import csv

        path = DATA / f"{self.name}.csv"
        if path.exists():
            return path
        DATA.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        with unfinished.open("wb") as file:
            for number, (X, y) in enumerate(self.chunks()):
                columns = {f"x{index}": np.ascontiguousarray(X[:, index]) for index in range(self.width)}
                csv.write_csv(pa.table({**columns, TARGET: y}), file, csv.WriteOptions(include_header=number == 0))
        unfinished.rename(path)
        return path

    def small(self) -> Problem:
        """Return the same kind of problem with few rows, for warming up."""
        return Problem(20_000, self.width, self.condition)

    def reference(self) -> Reference:
        """Return the exact answer, computed once and kept."""
        path = DATA / f"{self.name}.reference.npz"
        if not path.exists():
            save_reference(path, solve_reference(self.chunks))
        return load_reference(path)


def save_reference(path: Path, found: Reference) -> None:
    """Keep the exact answer of a problem."""
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, coefficients=found.coefficients, factor=found.factor, loss=found.loss, last_step=found.last_step)


@cache
def load_reference(path: Path) -> Reference:
    """Return an answer that was kept."""
    with np.load(path) as stored:
        return Reference(stored["coefficients"], stored["factor"], float(stored["loss"]), float(stored["last_step"]))


def _triangle(rows: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.qr(rows, mode="r"))


def solve_reference(chunks: Chunks) -> Reference:
    """Solve by TSQR and refine by seminormal equations with residuals in extended precision."""
    stacked: FloatArray | None = None
    for X, y in chunks():
        for begin in range(0, len(X), 50_000):
            features, target = X[begin : begin + 50_000], y[begin : begin + 50_000]
            factor = _triangle(np.column_stack([np.ones(len(target)), features, target]))
            stacked = factor if stacked is None else _triangle(np.vstack([stacked, factor]))
    assert stacked is not None
    R, projected = stacked[:-1, :-1], stacked[:-1, -1]
    coefficients = solve_triangular(R, projected).astype(np.longdouble)
    last_step = float("nan")
    for _ in range(_REFINEMENTS):
        gradient = np.zeros(len(coefficients), dtype=np.longdouble)
        for X, y in chunks():
            for begin in range(0, len(X), _REFINEMENT_CHUNK):
                part = X[begin : begin + _REFINEMENT_CHUNK].astype(np.longdouble)
                residual = y[begin : begin + _REFINEMENT_CHUNK] - coefficients[0] - part @ coefficients[1:]
                gradient[0] += residual.sum()
                gradient[1:] += residual @ part
        step = solve_triangular(R, solve_triangular(R, gradient.astype(np.float64), trans=1))
        coefficients = coefficients + step
        last_step = float(np.linalg.norm(step) / np.linalg.norm(coefficients.astype(np.float64)))
    return Reference(coefficients.astype(np.float64), R, float(stacked[-1, -1]) ** 2, last_step)
