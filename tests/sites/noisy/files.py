"""Rows, bounds and noisy summaries for the tests of files with a promise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import partsketch as ps
from partsketch.sites.noisy.mechanism import SENSITIVITY
from partsketch.theory.gaussian_mechanism import gaussian_scale

BOUNDS: dict[str, Any] = {
    "a": {"lower": 0, "upper": 100, "centre": 50, "spread": 10},
    "b": (-4, 4),
    "y": {"lower": -20, "upper": 30, "spread": 4},
}
TRUTH = np.array([0.1, 2.0])


def table(rows: int = 5000, seed: int = 0) -> pa.Table:
    draw = np.random.default_rng(seed)
    a, b = draw.normal(50, 10, rows), draw.uniform(-3, 3, rows)
    return pa.table({"a": a, "b": b, "y": 1 + np.column_stack([a, b]) @ TRUTH + draw.normal(size=rows)})


def seeded_noise(count: int, epsilon: float, delta: float, seed: int) -> np.ndarray:
    """Return whole numbers with the law of `draw_noise`, the same every time, for tests that count how often."""
    scale = gaussian_scale(epsilon, delta) * SENSITIVITY
    drawn = np.random.default_rng(seed).normal(0, scale, count)
    return np.array([round(value) for value in drawn.tolist()], dtype=object)


def noisy(folder: Path, rows: Any = None, **keywords: Any) -> ps.NoisySummary:
    given = {"epsilon": 1.0, "bounds": BOUNDS, "site": "north", "ledger": folder / "ledger.jsonl", **keywords}
    summary = ps.sketch(table() if rows is None else rows, "y", **given)
    assert isinstance(summary, ps.NoisySummary)
    return summary
