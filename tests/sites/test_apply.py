"""A sketch as an array: the product with a matrix that depends on seed and row numbers alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

import partsketch as ps
from partsketch.sketches.base import sketch_kinds

ROWS, SIZE = 96, 20
X = np.random.default_rng(4).standard_normal((ROWS, 3)) + np.array([0.0, 5.0, -2.0])
#: The matrices of the others depend on the data too.
LINEAR = [kind for kind in sketch_kinds() if kind not in ("leverage_sample", "orthogonal")]


@pytest.mark.parametrize("kind", LINEAR)
def test_it_is_the_product_with_one_matrix(kind: str) -> None:
    S = ps.apply_sketch(np.eye(ROWS), kind, SIZE, 7)
    assert S.shape == (SIZE, ROWS)
    # Sums of 96 products of numbers below 10, in doubles.
    np.testing.assert_allclose(ps.apply_sketch(X, kind, SIZE, 7), S @ X, atol=1e-12)
    np.testing.assert_allclose(ps.apply_sketch(X[:, 1:], kind, SIZE, 7), S @ X[:, 1:], atol=1e-12)
    assert not np.allclose(ps.apply_sketch(X, kind, SIZE, 8), S @ X)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*LINEAR, "orthogonal"])
def test_the_matrix_keeps_lengths_in_the_mean(kind: str) -> None:
    # 60 draws of a squared length whose deviation is about √(2/20) of it: the mean is known to 4%, five of which are
    # allowed; a scale that is wrong by √(m/n) would be off by a factor of five.
    draws = [np.sum(ps.apply_sketch(X[:, :1], kind, SIZE, seed) ** 2) for seed in range(60)]
    assert np.mean(draws) / np.sum(X[:, 0] ** 2) == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize("kind", ["gaussian", "count_sketch"])
def test_every_source_gives_the_same(kind: str, tmp_path: Path) -> None:
    table = pa.table({f"x{number}": X[:, number] for number in range(3)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=17)
    expected = ps.apply_sketch(X, kind, SIZE, 7)
    sources: list[Any] = [table, str(tmp_path / "a.parquet"), sparse.csr_array(X), lambda: table.to_reader(13)]
    for data in sources:
        np.testing.assert_allclose(ps.apply_sketch(data, kind, SIZE, 7), expected, atol=1e-12)
    assert ps.apply_sketch(table, kind, SIZE, 7, features=["x2", "x0"]).shape == (SIZE, 2)
    assert ps.apply_sketch(X, kind).shape == (19, 3)


def test_a_summary_is_an_array() -> None:
    summary = ps.sketch(X, sketch_size=SIZE, random_state=7, fit_intercept=False)
    np.testing.assert_array_equal(np.asarray(summary), ps.apply_sketch(X, "gaussian", SIZE, 7))
    assert np.asarray(summary, dtype=np.float32).dtype == np.float32
    # A copy may be changed; the summary may not.
    copy = np.array(summary)
    copy[0, 0] = 0
    assert summary.matrix[0, 0] != 0
    assert not np.asarray(summary).flags.writeable


def test_what_is_no_sketch() -> None:
    with pytest.raises(ps.InputError, match=r"^kind is 'triangular': choose one of 'gaussian'"):
        ps.apply_sketch(X, "triangular", 10)
    with pytest.raises(ps.InputError, match="sketch_size"):
        ps.apply_sketch(X, "gaussian", 0)
