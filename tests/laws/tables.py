"""Fits of the same table from every kind of storage, and what the judge says about them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy import sparse

import partsketch as ps
from tests.judge import Judgement, judge

FloatArray = NDArray[np.float64]

METHODS = ("exact", "average", "partition", "stack", "whole")

#: Those that draw random numbers.
SKETCHED = ("partition", "stack", "whole")

#: Two segments of rows, and more than a tile in the second.
ROWS = 100_000

#: Where the same numbers may lie.
IN_MEMORY = ("C", "F", "csr", "float32", "pandas")
IN_FILES = ("parquet", "csv", "feather")

#: Predictions agree to this part of the target's spread.
CLOSE = 1e-9


def noisy(rows: int = ROWS, seed: int = 0) -> tuple[FloatArray, FloatArray, FloatArray]:
    generator = np.random.default_rng(seed)
    a, b, noise = generator.normal(size=(3, rows))
    return a, b, 1 + a + 2 * b + noise


def whole_numbers(rows: int, columns: int, seed: int = 0) -> FloatArray:
    """Columns of small whole numbers: sums of products of them with other whole numbers are exact in float64."""
    return np.random.default_rng(seed).integers(-50, 51, size=(rows, columns)).astype(np.float64)


def options_of(method: str, k: int = 4) -> dict[str, Any]:
    chosen: dict[str, Any] = {"method": method, "n_partitions": k, "random_state": 7}
    return chosen | ({"sketch_size": 40} if method in SKETCHED else {})


def fit_table(
    X: FloatArray,
    y: FloatArray,
    weights: FloatArray | None = None,
    labels: NDArray[Any] | None = None,
    storage: str = "C",
    folder: Path | None = None,
    **options: Any,
) -> ps.Model:
    """Fit rows that lie in this kind of storage; with labels, partitions are those of a column "site".

    Only our own warnings are ignored: any other is an error.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.PartsketchWarning)
        if storage in ("C", "F", "csr", "float32") and labels is None:
            layouts: dict[str, Callable[[FloatArray], Any]] = {
                "C": np.ascontiguousarray,
                "F": np.asfortranarray,
                "csr": sparse.csr_array,
                "float32": lambda values: values.astype(np.float32),
            }
            return ps.SketchedRegression(**options).fit(layouts[storage](X), y, weights).model_
        columns = {f"x{number}": column for number, column in enumerate(X.T)} | {"y": y}
        if weights is not None:
            columns["w"] = weights
        if labels is not None:
            columns["site"] = labels
            options["partition_by"] = "site"
        features = [f"x{number}" for number in range(X.shape[1])]
        data = _stored(columns, storage, folder)
        return ps.fit(data, "y", features, weights=None if weights is None else "w", **options)


def _stored(columns: dict[str, Any], storage: str, folder: Path | None) -> Any:
    if storage == "pandas":
        return pd.DataFrame(columns)
    table = pa.table(columns)
    if storage not in IN_FILES:
        return table
    assert folder is not None
    path = folder / f"table.{storage}"
    if storage == "parquet":
        pq.write_table(table, path, row_group_size=max(1, len(table) // 3))
    elif storage == "feather":
        pyarrow.feather.write_feather(table, path)
    else:
        # pandas writes as many digits as it takes to read the same number again.
        table.to_pandas().to_csv(path, index=False)
    return str(path)


def spread(values: FloatArray) -> float:
    """Return the standard deviation: differences first, which lose no digits, and within float64's range."""
    quarters = values / 4
    away = quarters - quarters[0]
    unit = float(np.abs(away).max(initial=0.0)) or 1.0
    return float(np.std(away / unit)) * unit * 4


def assert_predictions(
    model: ps.Model, X: FloatArray, expected: FloatArray, y: FloatArray, close: float = CLOSE
) -> None:
    """Hold predictions to a part of the target's spread; of its size when it has none."""
    unit = spread(y) or float(np.abs(y).max()) or 1.0
    np.testing.assert_allclose(model.predict(X) / unit, expected / unit, rtol=0, atol=close)


def assert_exact(
    model: ps.Model,
    X: FloatArray,
    y: FloatArray,
    weights: FloatArray | None = None,
    inverse: bool = False,
) -> Judgement:
    """Hold an exact fit to the judge: predictions, loss, rank, names of dependent columns, coefficients."""
    close, intercept = CLOSE, bool(model.record.options["fit_intercept"])
    exact = judge(X, y, weights, intercept, inverse)
    assert_predictions(model, X, exact.fitted, y, close)
    assert_loss(model, exact, X, y, weights)
    assert model.record.rank == exact.rank
    assert {name for name, _ in model.record.aliased} == {model.column_names[number] for number in exact.aliased}
    if not exact.aliased:
        unit = spread(y) or float(np.abs(y).max()) or 1.0
        for number, truth in enumerate(exact.coefficients[intercept:]):
            error = float(abs(model.coefficients[number, 0] - truth)) * spread(X[:, number])
            assert error <= close * unit, f"coefficient {number}: {model.coefficients[number, 0]} for {float(truth)}"
    return exact


def assert_loss(
    model: ps.Model, exact: Judgement, X: FloatArray, y: FloatArray, weights: FloatArray | None = None
) -> None:
    """Hold the stated minimum to the true one: right to nine digits, and never below it beyond rounding."""
    stated = model.certificate.minimal_loss
    assert stated is not None
    centred = y - y.mean() if model.record.options["fit_intercept"] else y
    heavy = np.ones(len(y)) if weights is None else weights
    # A target that the columns explain entirely leaves the rounding of its own sixteen digits.
    rounding = float(np.sum(heavy * (1e-14 * centred) ** 2) + np.sum(heavy * np.spacing(np.abs(y)) ** 2))
    truth = float(exact.loss)
    assert truth * (1 - 1e-9) - rounding <= stated <= truth * (1 + 1e-9) + 100 * rounding
    own = float(exact.loss_of(model.predict(X)))
    assert stated <= own * (1 + 1e-9) + 100 * rounding
