"""Small problems and quiet fits for tests."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch import PartsketchWarning, SketchedRegression

FloatArray = NDArray[np.float64]

METHODS = ["exact", "average", "partition", "stack", "whole"]


def data(rows: int = 300, columns: int = 3, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(rows, columns))
    return X, X.sum(axis=1) + generator.normal(size=rows)


def quiet(method: str = "partition", **options: Any) -> Any:
    """A fit whose warnings do not matter here."""

    def fit(X: Any, y: Any, weights: Any = None) -> SketchedRegression:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PartsketchWarning)
            return SketchedRegression(method, **options).fit(X, y, weights)

    return fit
