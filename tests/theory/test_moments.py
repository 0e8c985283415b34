"""Moments of a partition: the same from rows, factor or any square root, at any rank and scale."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partsketch import InputError
from partsketch.theory import PartitionMoments, moments_of, pooled_moments
from partsketch.theory.moments import require_full_rank, trace_products
from tests.theory.designs import design


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(1, 30),
    columns=st.integers(1, 6),
    rank=st.integers(0, 6),
    scale=st.integers(-6, 6),
)
def test_agrees_with_numpy_at_any_rank_and_scale(seed: int, rows: int, columns: int, rank: int, scale: int) -> None:
    rng = np.random.default_rng(seed)
    rank = min(rank, rows, columns)
    X = rng.standard_normal((rows, rank)) @ rng.standard_normal((rank, columns)) * 10.0**scale
    y = rng.standard_normal(rows)
    moments = PartitionMoments.from_rows(X, y)
    assert moments.rank == rank
    expected = np.linalg.pinv(X, rcond=1e-10) @ y
    np.testing.assert_allclose(moments.solution, expected, rtol=1e-6, atol=1e-8 * 10.0**-scale)
    assert moments.loss == pytest.approx(float(np.sum((y - X @ expected) ** 2)), abs=1e-9)
    np.testing.assert_allclose(moments.gram, X.T @ X, rtol=1e-8, atol=1e-9 * 10.0 ** (2 * scale))
    np.testing.assert_allclose(
        moments.inverse_gram, np.linalg.pinv(X.T @ X, rcond=1e-10), rtol=1e-4, atol=1e-7 * 10.0 ** (-2 * scale)
    )


def test_rows_triangle_and_any_root_agree() -> None:
    X, y = design("heterogeneous")[1]
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((90, 90)))[0]
    triangle = np.linalg.qr(np.column_stack([X, y]), mode="r")
    expected = PartitionMoments.from_rows(X, y)
    for factor in (triangle, rotation @ np.column_stack([X, y])):
        moments = PartitionMoments.from_triangular(factor, 90)
        np.testing.assert_allclose(moments.solution, expected.solution)
        assert moments.loss == pytest.approx(expected.loss)
        assert (moments.rank, moments.row_count) == (4, 90)


def test_rank_does_not_depend_on_units() -> None:
    X, y = design("singular")[2]
    for scale in (np.ones(4), np.array([1e-9, 1e9, 1.0, 1e-3])):
        assert PartitionMoments.from_rows(X * scale, y).rank == 3
    full, target = design("identical")[0]
    assert PartitionMoments.from_rows(full * np.array([1e-9, 1e9, 1.0, 1e-3]), target).rank == 4


def test_pooling_equals_stacking_rows() -> None:
    partitions = design("singular")
    pooled = pooled_moments(partitions)
    X, y = np.vstack([X for X, _ in partitions]), np.concatenate([y for _, y in partitions])
    np.testing.assert_allclose(pooled.solution, np.linalg.lstsq(X, y)[0])
    assert pooled.row_count == len(y)
    traces = trace_products(moments_of(partitions))
    inverses = [np.linalg.pinv(X.T @ X) for X, _ in partitions]
    np.testing.assert_allclose(
        traces, [[np.trace(X.T @ X @ inverse) for inverse in inverses] for X, _ in partitions], rtol=1e-8
    )


def test_refusals_name_the_culprit() -> None:
    X, y = design("singular")[0]
    with pytest.raises(InputError, match=r"partition 7 has a singular Gram matrix \(rank 3 of 4; columns 0 depend"):
        require_full_rank(PartitionMoments.from_rows(X, y), 7)
    with pytest.raises(InputError, match=r"the data has a singular.*columns age depend"):
        require_full_rank(PartitionMoments.from_rows(X, y), None, ["age", "b", "c", "d"])
    with pytest.raises(InputError, match="missing or infinite"):
        PartitionMoments.from_rows(np.array([[np.nan]]), np.array([1.0]))
    with pytest.raises(InputError, match="one target per row"):
        PartitionMoments.from_rows(X, y[1:])
    with pytest.raises(InputError, match="at least one row, and columns"):
        PartitionMoments.from_triangular(np.ones((3, 1)), 3)
    with pytest.raises(InputError, match="partitions is empty"):
        moments_of([])
    with pytest.raises(InputError, match="the same columns"):
        moments_of([(X, y), (X[:, :2], y)])
