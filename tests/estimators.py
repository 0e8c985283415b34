"""Rows and small estimators for the tests of the scikit-learn front."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch import SketchedRegression

FloatArray = NDArray[np.float64]

METHODS = ["auto", "exact", "average", "partition", "stack", "whole"]


def data(rows: int = 400, columns: int = 3) -> tuple[FloatArray, FloatArray]:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(rows, columns))
    return X, X @ np.arange(1.0, columns + 1) + 1.0 + 0.1 * generator.normal(size=rows)


def small(method: str = "partition", **options: Any) -> SketchedRegression:
    return SketchedRegression(method, n_partitions=2, random_state=0, **options)
