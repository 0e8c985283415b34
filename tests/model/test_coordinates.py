"""Coordinates: roots of inverse Gram matrices of the columns as they are."""

from __future__ import annotations

import numpy as np
import pytest

import partsketch as ps
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


def test_variances_beyond_doubles_are_infinite() -> None:
    """Whoever asks looks whether errors are numbers; the intercept's is a sum over slopes, whose squares overflow."""
    coordinates = Coordinates(2, 1, np.array([0.0, 1e10, 0.0]), np.ones(3))
    with np.errstate(all="ignore"):
        errors = coordinates.standard_errors(np.diag([1.0, 1e300]), 0)
        assert np.isinf(coordinates.covariance(np.diag([1.0, 1e300]), 0)[0, 0])
    assert errors[0] == np.inf
    assert errors[1] == pytest.approx(1e150)


@pytest.mark.filterwarnings("ignore:What the fit loses")
@pytest.mark.parametrize(
    ("unit", "target_unit", "message"),
    [(1e-240, 1.0, "Column 'x0' times the roots"), (1.0, 1e-300, "Target 'y' times the roots")],
)
def test_columns_that_tiny_weights_bring_below_doubles_are_refused(
    unit: float, target_unit: float, message: str
) -> None:
    x, z, y = np.random.default_rng(0).normal(size=(3, 50))
    X, target, model = np.column_stack([x * unit, z]), y * target_unit, ps.SketchedRegression("exact")
    with pytest.raises(ps.InputError, match=message):
        model.fit(X, target, sample_weight=np.full(50, 1e-140))
    # Larger weights change nothing but that.
    plain = ps.SketchedRegression("exact").fit(np.column_stack([x, z]), y)
    np.testing.assert_allclose(model.fit(X, target).coef_ * [unit, 1.0] / target_unit, plain.coef_, rtol=1e-12)


def test_a_column_that_weights_make_zero_is_not_called_zero() -> None:
    x, z, y = np.random.default_rng(0).normal(size=(3, 50))
    with pytest.warns(ps.PartsketchWarning, match="'x0' is zero in every row that counts, or so small that it is zero"):
        ps.SketchedRegression("exact").fit(np.column_stack([x * 1e-300, z]), y, sample_weight=np.full(50, 1e-160))


@pytest.mark.filterwarnings("ignore::partsketch.PartsketchWarning")
@pytest.mark.parametrize("place", [0.0, 1.0, 1000.0, 1e9 + 1 / 3])
def test_a_column_that_is_constant_in_a_sample_says_nothing(place: float) -> None:
    """One row of 300 differs and is not sampled: wherever the column lies, what is left of it is no column."""
    x, y = np.full((300, 1), place), np.random.default_rng(0).normal(size=300)
    x[5] += 1
    sampled = ps.SketchedRegression("stack", sketch="row_sample", sketch_size=40, n_partitions=2, random_state=3)
    model = sampled.fit(x, y).model_
    assert [name for name, _ in model.record.aliased] == ["x0"]
    assert model.record.rank == 1
    assert np.ptp(model.predict(x)) < 1e-9
    assert model.certificate.kind == "approximate"
