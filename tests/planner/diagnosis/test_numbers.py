"""Numbers of a diagnosis, written out from the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import partsketch as ps
from tests.by_hand import FloatArray
from tests.sketches.plain_random import shuffled_partition

SIZES = (300, 300, 90)
PART = np.repeat([0, 1, 2], SIZES)


def frame() -> pd.DataFrame:
    """Partitions of uneven size; the last one has a column of another scale, and one row is far out."""
    draw = np.random.default_rng(6)
    X = draw.normal(size=(len(PART), 2)) + 1.0
    X[PART == 2, 1] *= 4.0
    X[50] = [60.0, 1.0]
    y = X @ [1.0, 2.0] + draw.normal(size=len(PART))
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y, "w": draw.uniform(0.2, 3.0, len(PART)), "site": PART})


def design(weights: FloatArray | None = None) -> FloatArray:
    rows = frame()
    A = np.column_stack([np.ones(len(rows)), rows["a"], rows["b"]])
    return A if weights is None else A * np.sqrt(weights)[:, None]


def grams(A: FloatArray, part: Any = PART) -> list[FloatArray]:
    return [A[part == i].T @ A[part == i] for i in range(3)]


def ratio(G: list[FloatArray]) -> float:
    return float(np.mean([np.trace(one @ np.linalg.inv(other)) for one in G for other in G]) / 3)


def diagnosed(**options: Any) -> Any:
    return ps.diagnose(frame(), "y", ["a", "b"], partition_by="site", **options)


@pytest.mark.parametrize("weighted", [False, True])
def test_divergence_and_distances_of_uneven_partitions(weighted: bool) -> None:
    A = design(frame()["w"].to_numpy() if weighted else None)
    found, G = diagnosed(weights="w" if weighted else None), grams(A)
    assert found.divergence_ratio == pytest.approx(ratio(G))
    # Gram matrices per row: only what differs between rows counts.
    even = [one / size for one, size in zip(G, SIZES, strict=True)]
    for i, part in enumerate(found.partitions):
        both = [
            (np.trace(even[i] @ np.linalg.inv(even[j])) + np.trace(even[j] @ np.linalg.inv(even[i]))) / 6 - 1
            for j in range(3) if j != i
        ]  # fmt: skip
        assert part.distance == pytest.approx(np.median(both))
        assert part.row_count == SIZES[i]
    parts = np.array([shuffled_partition(0, row, 3) for row in range(len(PART))])
    if not weighted:
        assert ps.diagnose(frame(), "y", ["a", "b"], n_partitions=3).shuffled_divergence_ratio == pytest.approx(
            ratio(grams(A, parts))
        )


@pytest.mark.parametrize("weighted", [False, True])
def test_leverage_of_the_row_that_is_far_out(weighted: bool) -> None:
    A = design(frame()["w"].to_numpy() if weighted else None)
    found, G = diagnosed(weights="w" if weighted else None), grams(A)
    row = next(one for one in found.influential_rows if one.row == 50)
    assert row.leverage == pytest.approx(A[50] @ np.linalg.inv(G[0]) @ A[50])
    assert row.relative_leverage == pytest.approx(np.mean([A[50] @ np.linalg.inv(G[j]) @ A[50] for j in (1, 2)]))
    assert (row.column, row.value, row.partition) == ("a", pytest.approx(60.0), "0")
    # All rows of a tenth or more, and three times the average, of their own partition.
    leverages = np.array([row @ np.linalg.inv(G[part]) @ row for row, part in zip(A, PART, strict=True)])
    bound = np.array([max(0.1, min(9 / SIZES[part], 0.9)) for part in PART])
    assert {one.row for one in found.influential_rows} == set(np.flatnonzero(leverages >= bound).tolist())
    kept = leverages < bound
    assert found.ratio_without_rows == pytest.approx(ratio(grams(A[kept], PART[kept])), rel=1e-6)


def test_curves_merge_neighbours_and_lose_none() -> None:
    """Three partitions, then the first two together, then all: what averaging loses, by hand."""
    A, y = design(), frame()["y"].to_numpy()
    exact = np.linalg.lstsq(A, y)[0]
    loss = float(np.sum((y - A @ exact) ** 2))
    curve = {point.partitions: point.average for point in diagnosed().curve}
    assert sorted(curve) == [1, 2, 3]
    for count, groups in ((3, PART), (2, np.minimum(PART // 2, 1))):
        fits = [np.linalg.lstsq(A[groups == i], y[groups == i])[0] for i in range(count)]
        excess = float(np.sum((A @ (np.mean(fits, axis=0) - exact)) ** 2))
        assert curve[count] == pytest.approx(excess / loss, rel=1e-6)
    assert curve[1] == pytest.approx(0.0, abs=1e-12)


def test_random_partitions_count_the_rows_of_all_blocks() -> None:
    """Partitions of two rows more than a block of 32,768: random ones lose what they lose, not nothing."""
    draw = np.random.default_rng(1)
    X = draw.normal(size=(65_540, 2))
    y = X.sum(axis=1) + draw.normal(size=len(X))
    found = ps.diagnose(np.column_stack([X, y]), "x2", n_partitions=2, sketch_size=30)
    losses = {one.method: one for one in found.losses}
    # D is d nearly, for both: (1/k)(d/(m − d − 1)) and next to nothing for averaging.
    for value in (losses["partition"].excess, losses["partition"].shuffled):
        assert value == pytest.approx(3 / 26 / 2, rel=0.05)


def test_shuffling_is_not_advised_where_one_row_decides() -> None:
    """One row of extreme size makes its partition unlike the others in any order: D/d hardly falls."""
    draw = np.random.default_rng(4)
    X = draw.normal(size=(2_000, 3))
    X[17, 0] = 800.0
    y = X.sum(axis=1) + draw.normal(size=len(X))
    found: list[Any] = [ps.diagnose(np.column_stack([X, y]), "x3", n_partitions=8, seed=seed) for seed in range(6)]
    lower = [one for one in found if one.shuffled_divergence_ratio < one.divergence_ratio]
    assert lower, "some shuffle makes it a little smaller"
    for one in found:
        assert one.shuffled_divergence_ratio > 0.6 * one.divergence_ratio
        assert not any(sentence.startswith("Shuffle the rows") for sentence in one.advice)
