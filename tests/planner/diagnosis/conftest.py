"""Rows that diagnoses look at."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from partsketch.paper.stored_data import stored_data


@pytest.fixture(scope="module")
def house() -> Any:
    stored = stored_data("house")
    return pd.DataFrame(stored.X, columns=list(stored.feature_names)).assign(MedHouseVal=stored.y)


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(900, 4)) + 2
    X[700:] *= [1, 1, 1, 6]
    X[123] = [2, 900, 2, 2]
    return X, X @ [1.0, -1.0, 2.0, 0.5] + rng.normal(size=900)
