"""polars-ols: least squares as an expression of polars."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.problem import TARGET, Arrays, FloatArray


def as_frame(arrays: Arrays) -> Any:
    """Put the columns into a polars data frame."""
    import polars as pl

    columns = {f"x{index}": np.ascontiguousarray(column) for index, column in enumerate(arrays.X.T)}
    return pl.DataFrame({**columns, TARGET: arrays.y})


def fit_frame(frame: Any) -> FloatArray:
    """Fit with an intercept, by its default solver."""
    import polars as pl
    import polars_ols  # noqa: F401 (registers the expression)

    features = [pl.col(name) for name in frame.columns if name != TARGET]
    fitted = pl.col(TARGET).least_squares.ols(*features, add_intercept=True, mode="coefficients")
    values = frame.select(fitted.alias("fitted")).unnest("fitted").row(0)
    return np.array([values[-1], *values[:-1]])
