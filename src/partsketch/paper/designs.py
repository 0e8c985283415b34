"""Synthetic fixed designs: rows alike in the mean, and rows whose scale drifts so that partitions differ."""

from __future__ import annotations

import numpy as np

from partsketch.paper.explicit_sketches import FloatArray

DESIGNS = ("iid", "heterogeneous")
TITLES = {"iid": "i.i.d. rows", "heterogeneous": "heterogeneous rows"}


def synthetic_design(name: str, n: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Return X (n × d): standard normal rows, for "heterogeneous" with column scales that drift along the rows.

    Columns in even places grow from 1 to 3 over the rows, the others shrink from 1 to ⅓, so that partitions in order of
    rows have unlike Gram matrices.
    """
    X = rng.standard_normal((n, d))
    if name == "heterogeneous":
        drift = 3.0 ** np.linspace(0, 1, n)
        X[:, ::2] *= drift[:, None]
        X[:, 1::2] /= drift[:, None]
    return np.asarray(X)
