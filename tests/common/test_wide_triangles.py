"""Factors and inverses of wide triangles: right, and the same bits however many threads share them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from partsketch.common.linalg.helpers import sharing_with
from partsketch.common.linalg.wide_triangles import (
    inverse_of_triangle,
    is_upper_triangle,
    single_factor,
    single_solve,
    upper_factor,
)
from partsketch.sketches.gram import SINGLE_ROUNDING


def _gram(width: int) -> NDArray[np.float64]:
    rows = np.random.default_rng(width).normal(size=(2 * width, width)) * np.geomspace(1.0, 1e3, width)
    return rows.T @ rows


@pytest.mark.parametrize("width", [40, 512, 513, 900])
def test_a_factor_is_that_of_lapack_and_the_same_for_any_number_of_threads(width: int) -> None:
    gram = _gram(width)
    factor = upper_factor(gram)
    with sharing_with(2):
        shared, inverse = upper_factor(gram), inverse_of_triangle(factor)
    assert np.array_equal(shared, factor)
    assert np.array_equal(inverse, inverse_of_triangle(factor))
    assert not np.tril(factor, -1).any()
    assert not np.tril(inverse, -1).any()
    # Rounding of a factor is that of its rows, times a condition of (1 + √½)/(1 − √½) = 6 of columns of norm one.
    error = np.abs(factor - np.linalg.cholesky(gram).T) / np.linalg.norm(factor, axis=0)
    assert error.max() < 100 * width * 2.3e-16
    left = np.abs(factor @ inverse - np.eye(width))
    assert (left <= 10 * width * 2.3e-16 * (np.abs(factor) @ np.abs(inverse))).all()


@pytest.mark.parametrize("width", [40, 700])
def test_what_has_no_factor_or_inverse_is_refused(width: int) -> None:
    gram = _gram(width)
    gram[-1, -1] = 0.0
    with pytest.raises(np.linalg.LinAlgError):
        upper_factor(gram)
    triangle = np.triu(_gram(width))
    triangle[width // 2, width // 2] = 0.0
    with pytest.raises(np.linalg.LinAlgError, match="zero"):
        inverse_of_triangle(triangle)


@pytest.mark.parametrize("width", [400, 600])
def test_single_numbers_round_a_factor_by_less_than_what_is_allowed_for(width: int) -> None:
    """Nearly equal columns are the worst: errors of their products do not cancel."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(2 * width, width)) * 0.03 + rng.normal(size=(2 * width, 1))
    units = 1.0 / np.linalg.norm(rows, axis=0)
    gram = (rows.T @ rows) * units * units[:, None] + 1e-2 * np.eye(width)
    factor = gram.astype(np.float32)
    single_factor(factor)
    upper = np.triu(factor).astype(np.float64)
    error = np.linalg.norm(upper.T @ upper - gram, 2)
    # The allowance is about one singular vector of a random matrix; what is below a thousandth of it was not made so.
    assert 1e-3 * SINGLE_ROUNDING * width < error < SINGLE_ROUNDING * width
    right = rng.normal(size=width).astype(np.float32)
    solved = right.copy()
    single_solve(factor, solved)
    # 2⁻²⁴ times the condition of the factor, 10·√600 at most, and the root of the number of columns.
    assert np.linalg.norm(upper.T @ solved - right) < 1e-3 * np.linalg.norm(right)
    with pytest.raises(np.linalg.LinAlgError, match="positive"):
        single_factor((gram - 1.5e-2 * np.eye(width)).astype(np.float32))


@pytest.mark.parametrize("width", [40, 513, 900])
def test_a_factor_in_single_numbers_reads_the_upper_triangle_alone_and_is_the_same_for_any_threads(width: int) -> None:
    units = 1.0 / np.sqrt(np.diagonal(_gram(width)))
    whole = (_gram(width) * units * units[:, None]).astype(np.float32)
    factor, shared = (np.where(np.tri(width, k=-1) > 0, np.float32(np.nan), whole) for _ in range(2))
    single_factor(factor)
    with sharing_with(2):
        single_factor(shared)
    assert np.array_equal(np.triu(shared), np.triu(factor))
    # Rounding of single numbers, for columns of norm one with a condition of 6.
    assert np.abs(np.triu(factor) - np.linalg.cholesky(whole.astype(np.float64)).T).max() < 100 * width * 6e-8
    whole[-1, -1] = 0.0
    with pytest.raises(np.linalg.LinAlgError, match="positive"):
        single_factor(whole)


@pytest.mark.parametrize("place", [(1, 0), (299, 0), (299, 298), (200, 130), (128, 127)])
def test_one_number_below_the_diagonal_is_seen(place: tuple[int, int]) -> None:
    triangle = np.triu(np.ones((300, 300)))
    assert is_upper_triangle(triangle)
    triangle[place] = 1e-300
    assert not is_upper_triangle(triangle)
