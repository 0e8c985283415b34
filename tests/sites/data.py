"""Rows of made-up sites, and a judge of two models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import partsketch as ps
from partsketch import Summary


def rows(count: int, seed: int = 0) -> pa.Table:
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(count, 3))
    y = 1 + x @ [1.0, -2.0, 3.0] + draw.normal(size=count)
    columns: dict[str, Any] = {f"x{j}": x[:, j] for j in range(3)}
    return pa.table({**columns, "y": y, "z": y + x[:, 0] ** 2})


def same_model(first: ps.Model, second: ps.Model) -> None:
    """To the last bit: coefficients, certificates and intervals."""
    assert np.array_equal(first.coefficients, second.coefficients)
    assert np.array_equal(first.intercept, second.intercept)
    assert first.certificates == second.certificates
    assert [one.to_dict() for one in first.inferences] == [one.to_dict() for one in second.inferences]
    assert str(first.summary()) == str(second.summary())


def a_site(name: str, **options: Any) -> Summary:
    chosen: dict[str, Any] = {"features": ["x0", "x1", "x2"], "random_state": 1, "site": name, **options}
    summary: Summary = ps.sketch(rows(200, len(name)), "y", **chosen)
    return summary
