"""Rows in clusters, for comparisons with other packages."""

from __future__ import annotations

import numpy as np
import pandas as pd


def clustered_rows(rows: int = 1200, clusters: int = 9, seed: int = 0, near: float = 0.0) -> pd.DataFrame:
    """Return rows whose noise hangs together within clusters; with `near`, column b is a + near · noise."""
    rng = np.random.default_rng(seed)
    cluster = rng.integers(0, clusters, rows)
    values = rng.normal(size=(rows, 3)) + 0.3 * cluster[:, None]
    if near:
        values[:, 1] = values[:, 0] + near * rng.normal(size=rows)
    slopes = rng.normal(size=clusters)[cluster]
    y = values @ [1.0, 2.0, 3.0] + slopes * values[:, 0] + rng.normal(size=rows)
    frame = pd.DataFrame(values, columns=["a", "b", "c"])
    return frame.assign(y=y, z=values[:, 2] + rng.normal(size=rows), w=rng.uniform(0.5, 2, rows), g=cluster)
