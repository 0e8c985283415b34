"""Laws of all fast sketches: what they multiply, and that nothing but seed, stream and row number decides the bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partsketch import InputError
from partsketch.sketches.base import SketchSpecification, get_sketch
from tests.sketches.drawing import FloatArray, matrix_of, sketched
from tests.sketches.explicit import sign_matrix, sparse_sign, srht_matrix

LINEAR = ("srht", "sparse_sign", "count_sketch")
SAMPLES = ("row_sample", "leverage_sample")


def rows_of(count: int, width: int, zeros: float = 0.5) -> FloatArray:
    rng = np.random.default_rng(count * 1000 + width)
    return np.asarray(rng.normal(size=(count, width)) * (rng.random((count, width)) >= zeros))


def explicit(specification: SketchSpecification, rows: int, stream: int) -> FloatArray:
    assert specification.size is not None
    assert specification.seed is not None
    if specification.kind == "srht":
        return srht_matrix(rows, specification.size, specification.seed, stream)
    return sign_matrix(specification, specification.sparsity or 1, stream, np.arange(rows))


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(LINEAR),
    rows=st.integers(1, 900),
    width=st.sampled_from([1, 2, 7, 8, 9, 16, 33]),
    seed=st.integers(0, 2**64 - 1),
    stream=st.integers(0, 1000),
    data=st.data(),
)
def test_sketch_is_the_product_with_its_matrix(
    kind: str, rows: int, width: int, seed: int, stream: int, data: st.DataObject
) -> None:
    """Rounding: sums of at most 900 numbers of order one."""
    size = data.draw(st.integers(1, get_sketch(kind).largest_size(rows) or 90))
    specification = SketchSpecification(kind, size, seed)
    A = rows_of(rows, width)
    expected = explicit(specification, rows, stream) @ np.column_stack([np.ones(rows), A])
    np.testing.assert_allclose(sketched(A, specification, stream=stream), expected, rtol=0, atol=1e-11)


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(LINEAR + SAMPLES),
    rows=st.integers(30, 700),
    width=st.sampled_from([1, 3, 8, 17]),
    weighted=st.booleans(),
    data=st.data(),
)
def test_bits_depend_neither_on_cuts_nor_on_how_rows_are_held(
    kind: str, rows: int, width: int, weighted: bool, data: st.DataObject
) -> None:
    A = rows_of(rows, width)
    weights = np.random.default_rng(rows).exponential(size=rows) if weighted else None
    specification = SketchSpecification(kind, 20, 5)
    whole = sketched(A, specification, weights=weights)
    cuts = tuple(sorted(data.draw(st.lists(st.integers(0, rows), max_size=5))))
    for held in ("dense", "sparse", "tile"):
        # Scores of leverage come from products of whole tiles, which summarise() always cuts at the same rows.
        if kind != "leverage_sample":
            assert np.array_equal(sketched(A, specification, held, cuts, weights), whole)


@settings(max_examples=30, deadline=None)
@given(kind=st.sampled_from(LINEAR), cut=st.integers(0, 400), sparse=st.booleans())
def test_sketches_of_parts_sum_to_the_sketch_of_the_whole(kind: str, cut: int, sparse: bool) -> None:
    A, numbers = rows_of(400, 5), np.arange(400)
    specification = SketchSpecification(kind, 16, 3)
    held = "sparse" if sparse else "dense"
    parts = [
        sketched(A[rows], specification, held, row_numbers=numbers[rows], row_count=400)
        for rows in (slice(0, cut), slice(cut, 400))
    ]
    whole = sketched(A, specification)
    np.testing.assert_allclose(get_sketch(kind).merge(*parts), whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", LINEAR)
def test_weights_are_square_roots_on_rows(kind: str) -> None:
    """Weight 4 is a row doubled, weight 0 a row that is absent."""
    A, weights = rows_of(300, 4), np.tile([1.0, 4.0, 0.0], 100)
    specification = SketchSpecification(kind, 20, 1)
    S = explicit(specification, 300, 0)
    expected = (S * np.sqrt(weights)) @ np.column_stack([np.ones(300), A])
    np.testing.assert_allclose(sketched(A, specification, weights=weights), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", LINEAR)
def test_rows_that_are_absent_count_as_zeros(kind: str) -> None:
    A = rows_of(500, 6, 0.0)
    kept = np.flatnonzero(np.random.default_rng(0).random(500) < 0.3)
    zeroed = np.zeros_like(A)
    zeroed[kept] = A[kept]
    specification = SketchSpecification(kind, 24, 9)
    got = sketched(A[kept], specification, row_numbers=kept, row_count=500)
    # The intercept's column differs: rows of zeros have a one there.
    assert np.array_equal(got[:, 1:], sketched(zeroed, specification)[:, 1:])


def test_places_of_a_row_are_distinct_and_even() -> None:
    """60,000 rows, s = 3 of m = 7: each of the 35 sets and each sign pattern within five standard errors."""
    specification = SketchSpecification("sparse_sign", 7, 2, 3)
    S = sign_matrix(specification, 3, 0, np.arange(60_000)) * np.sqrt(3)
    assert np.array_equal(np.abs(S).sum(axis=0), np.full(60_000, 3.0))
    assert np.abs(S).max() == pytest.approx(1.0)
    sets = (np.abs(S) > 0.5).T @ (1 << np.arange(7))
    counts = np.unique(sets, return_counts=True)[1]
    assert counts.size == 35
    assert np.all(np.abs(counts - 60_000 / 35) < 5 * np.sqrt(60_000 / 35))
    assert abs(S.sum()) < 5 * np.sqrt(180_000)


@pytest.mark.parametrize("kind", LINEAR + SAMPLES)
def test_expected_gram_matrix_is_kept(kind: str) -> None:
    """E[SᵀS] = I: 3,000 seeds, 20 rows, m = 8; 400 entries within five standard errors of the mean over seeds.

    SRHT pads 20 rows to 32: forgetting the padding in the scale would show as a diagonal of 20/32.
    """
    products = np.stack(
        [(lambda S: S.T @ S)(matrix_of(SketchSpecification(kind, 8, seed), 20)) for seed in range(3000)]
    )
    error = np.std(products, axis=0, ddof=1) / np.sqrt(3000) + 1e-12
    assert np.all(np.abs(products.mean(axis=0) - np.eye(20)) < 5 * error)


def distortions(kind: str, size: int, seeds: int) -> FloatArray:
    """‖QᵀSᵀSQ − I‖ for an orthonormal Q of 8 columns in 600 rows, even leverage, one per seed."""
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(600, 8)))[0]
    assert 600 * float(np.max(np.sum(Q**2, axis=1))) < 24
    A = np.column_stack([Q, np.zeros(600)])
    out = []
    for seed in range(seeds):
        Z = sketched(A, SketchSpecification(kind, size, seed))[:, 1:-1]
        out.append(float(np.linalg.norm(Z.T @ Z - np.eye(8), 2)))
    return np.array(out)


@pytest.mark.parametrize("kind", ["count_sketch", "sparse_sign"])
def test_sparse_sketches_embed_subspaces_as_the_second_moment_says(kind: str) -> None:
    """P(distortion > ε) ≤ E‖QᵀSᵀSQ − I‖²_F/ε² ≤ d(d + 1)/(m ε²) (Nelson and Nguyên 2013), for any Q.

    200 seeds, d = 8, m = 720, ε = ½: the bound is 0.4. The mean square itself is within the bound too, and more than
    a fifth of it: Q has even leverage, so that hardly anything is gained on (d² + d)/m = 0.1.
    """
    found = distortions(kind, 720, 200)
    assert np.mean(found > 0.5) <= 8 * 9 / (720 * 0.25)
    assert 0.02 < np.mean(found**2) < 0.1


@pytest.mark.parametrize("kind", ["srht", *SAMPLES])
def test_sampling_sketches_embed_subspaces_as_chernoff_says(kind: str) -> None:
    """P(distortion > ε) ≤ 2 d exp(−m ε²/(3 μ)), μ = n · largest leverage (Tropp 2011).

    200 seeds, d = 8, m = 400, ε = 0.9. With μ ≤ 24, as this Q has it for samples of rows, and as random signs give
    it to SRHT all but surely, the bound is 0.18.
    """
    found = distortions(kind, 400, 200)
    assert np.mean(found > 0.9) <= 2 * 8 * np.exp(-400 * 0.81 / (3 * 24))
    assert 0.05 < np.median(found) < 0.5


def test_same_rows_far_away_and_negative_cases() -> None:
    A = rows_of(100, 3)
    assert not np.array_equal(sparse_sign(A, 20, 1), sparse_sign(A, 20, 1, first_row=100))
    both = sparse_sign(A, 20, 1) + sparse_sign(A, 20, 1, first_row=100)
    np.testing.assert_allclose(sparse_sign(np.vstack([A, A]), 20, 1), both, rtol=0, atol=1e-13)
    with pytest.raises(InputError, match="sparsity is 21"):
        sparse_sign(A, 20, 1, sparsity=21)
    with pytest.raises(InputError, match="table of rows"):
        sparse_sign(np.zeros(4), 20, 1)
    with pytest.raises(InputError, match="goes with sketch='sparse_sign'"):
        SketchSpecification("count_sketch", 5, 1, 2)
    assert SketchSpecification("sparse_sign", 5, 1).sparsity == 5
    assert SketchSpecification("sparse_sign", 50, 1).sparsity == 8


def test_count_sketches_warn_below_the_known_bound_and_not_at_it() -> None:
    sketch = get_sketch("count_sketch")
    for columns in (2, 6, 30):
        bound = columns * (columns + 1)
        assert sketch.size_warnings(bound, columns) == ()
        assert str(bound) in sketch.size_warnings(bound - 1, columns)[0]
    assert [sketch.default_size(columns)[0] for columns in (2, 6, 19, 30)] == [18, 42, 380, 600]
