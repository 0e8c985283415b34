"""Factors and inverses of wide triangles: right, and the same bits however many threads share them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from partsketch.common.linalg.helpers import sharing_with
from partsketch.common.linalg.wide_triangles import inverse_of_triangle, upper_factor


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
