"""Rows with a column of every kind that formulas know."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from partsketch.sources import Source

ROWS = 400


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "fare": rng.normal(size=ROWS),
            "distance": rng.gamma(2, 2, ROWS) + 0.01,
            "zone": rng.choice(["a", "b", "c d", 'it\'s "q"'], ROWS),
            "night": rng.integers(0, 2, ROWS),
            "my col": rng.normal(size=ROWS) + 5,
            "late": rng.random(ROWS) < 0.5,
            "hour": rng.integers(0, 24, ROWS),
            "k": rng.integers(3, 7, ROWS),
            "rate": rng.choice([1.5, 2.0, 3.0], ROWS),
            "pickup": pd.Timestamp("2020-01-31 12:00:00") + pd.to_timedelta(rng.integers(0, 10**7, ROWS), unit="s"),
        }
    )


def columns(source: Source, block_rows: int = 97) -> NDArray[np.float64]:
    """Return all features and targets of a source, one row each."""
    names = source.feature_names + source.target_names
    parts: list[Any] = []
    for block in source.read(0, None, block_rows):
        part = np.empty((len(names), len(block)))
        block.copy_into(part, 0, len(block))
        parts.append(part)
    return np.hstack(parts)
