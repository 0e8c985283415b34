"""Coordinates: roots of inverse Gram matrices of the columns as they are."""

from __future__ import annotations

import numpy as np
import pytest

from partsketch.model.coordinates import Coordinates


@pytest.mark.parametrize("free", [0, 1])
def test_inverse_roots_are_those_of_the_columns_as_they_are(free: int) -> None:
    """B Bᵀ is the inverse of the Gram matrix of the raw columns, when it is so in the coordinates."""
    rng = np.random.default_rng(0)
    raw = rng.normal(size=(60, 4)) * [1, 3, 0.2, 40] + [0, 5, 0, -7]
    if free:
        raw[:, 0] = 1.0
    unit = np.array([1.0, 4.0, 0.25, 32.0, 1.0])
    centre = np.array([0.0, 5.0, 0.5, -7.0, 2.0]) * free
    standard = (raw - raw[:, :1] * centre[:4]) / unit[:4]
    root = np.linalg.inv(np.linalg.qr(standard, mode="r"))
    found = Coordinates(4, free, centre, unit).inverse_root(root)
    # Conditions of some tens.
    np.testing.assert_allclose(found @ found.T, np.linalg.inv(raw.T @ raw), rtol=1e-11, atol=1e-14)


def test_errors_and_covariances_are_those_of_the_transformation() -> None:
    rng = np.random.default_rng(3)
    unit = np.array([1.0, 4.0, 0.5, 2.0, 8.0])
    coordinates = Coordinates(4, 1, np.array([0.0, 3.0, -7.0, 0.0, 2.0]), unit)
    root = rng.normal(size=(4, 4))
    matrix, back = root @ root.T, coordinates.transformation(0)
    expected = back @ matrix @ back.T
    # A handful of products: a few times the rounding of the largest.
    np.testing.assert_allclose(coordinates.covariance(matrix, 0), expected, rtol=1e-13, atol=1e-13 * expected.max())
    errors = np.sqrt(np.diagonal(expected))
    np.testing.assert_allclose(coordinates.errors_from_root(root, 0), errors, rtol=1e-13)
    np.testing.assert_allclose(coordinates.standard_errors(matrix, 0), errors, rtol=1e-12)
