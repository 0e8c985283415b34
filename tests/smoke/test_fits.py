"""Fits from every source, by every method and sketch."""

from __future__ import annotations

import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import partsketch as ps

from .rows import KINDS, TARGET, exact_coefficients, matrix, table

METHODS = ("exact", "average", "partition", "stack", "whole")
SKETCHES = ("gaussian", "orthogonal", "srht", "sparse_sign", "count_sketch", "row_sample", "leverage_sample")


def coefficients(model: ps.Model) -> Any:
    return model.column_coefficients[:, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_every_source_gives_exact_least_squares(kind: str, tmp_path: Path) -> None:
    model = ps.fit(KINDS[kind](tmp_path), TARGET, method="exact")
    # A few hundred roundings of numbers near one.
    np.testing.assert_allclose(coefficients(model), exact_coefficients(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["table", "CSR array", "npy", "Parquet", "CSV", "Feather"])
def test_every_source_gives_the_same_sketch(kind: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"method": "stack", "n_partitions": 3, "sketch_size": 60, "random_state": 5}
    expected = coefficients(ps.fit(matrix(), TARGET, **options))
    found = coefficients(ps.fit(KINDS[kind](tmp_path), TARGET, **options))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_near_and_survives_its_file(method: str, tmp_path: Path) -> None:
    model = ps.fit(table(), TARGET, method=method, n_partitions=4, sketch_size=200, random_state=1)
    # At least 200 sketch rows for 4 columns and noise of one: errors have a deviation below 0.1.
    np.testing.assert_allclose(coefficients(model), exact_coefficients(), rtol=0, atol=0.5)
    assert np.all(np.diff(model.conf_int(), axis=1) > 0)
    assert str(model.certificate)
    assert "x1" in str(model.summary())
    model.save(tmp_path / "model.json")
    again = ps.load(tmp_path / "model.json")
    assert np.array_equal(again.predict(table()), model.predict(table()))


# Rows with zeros weigh less evenly than Gaussian ones: of a sample of them nothing is claimed, and that is said.
@pytest.mark.filterwarnings("ignore:What the fit loses against exact least squares is unknown")
@pytest.mark.parametrize("sketch", SKETCHES)
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_every_sketch_is_near(sketch: str, form: str) -> None:
    data = matrix() if form == "dense" else sparse.csr_array(matrix())
    model = ps.fit(data, TARGET, method="whole", n_partitions=2, sketch=sketch, sketch_size=400, random_state=2)
    np.testing.assert_allclose(coefficients(model), exact_coefficients(), rtol=0, atol=0.5)


def test_iterated_and_ridge_fits() -> None:
    iterated = ps.fit(matrix(), TARGET, method="exact", route="iterate")
    np.testing.assert_allclose(coefficients(iterated), exact_coefficients(), rtol=0, atol=1e-11)
    ridge = ps.fit(matrix(), TARGET, method="exact", alpha=500.0)
    assert np.linalg.norm(ridge.coefficients) < np.linalg.norm(iterated.coefficients)


def test_text_missing_values_weights_and_types() -> None:
    """Columns of every type that Arrow can hold numbers in; some values are missing."""
    draw = np.random.default_rng(0)
    count = 800
    whole, half = draw.integers(0, 9, count), draw.normal(size=count).astype(np.float32)
    flag, colour = draw.random(count) < 0.5, draw.choice(["red", "green", "blue"], count)
    price = draw.integers(100, 999, count)
    y = whole + half + 2.0 * flag + 3.0 * (colour == "red") + price / 100 + draw.normal(size=count) / 100
    holes = [None if number % 7 == 0 else float(value) for number, value in enumerate(half)]
    data = pa.table(
        {
            "whole": pa.array(whole, pa.int32()),
            "half": pa.array(holes, pa.float32()),
            "flag": pa.array(flag),
            "colour": pa.array(colour.tolist()).dictionary_encode(),
            "price": pa.array([decimal.Decimal(int(value)) / 100 for value in price], pa.decimal128(8, 2)),
            "w": pa.array(draw.integers(1, 3, count), pa.uint8()),
            "y": y,
        }
    )
    with pytest.warns(ps.PartsketchWarning, match="115 rows with missing values or of weight zero were dropped"):
        model = ps.fit(data, "y", method="exact", encode=True, missing="drop", weights="w")
    assert model.record.row_count == count - len(range(0, count, 7))
    found = dict(zip(model.feature_names, model.coefficients[:, 0], strict=True))
    for name, value in (("whole", 1.0), ("half", 1.0), ("flag", 2.0), ("price", 1.0)):
        assert found[name] == pytest.approx(value, abs=0.01)  # noise of 0.01 over hundreds of rows
    by_colour = ps.fit(data, "y", ["whole", "flag", "price"], method="average", partition_by="colour")
    assert by_colour.record.row_count == count
    assert len(model.predict(data, missing="drop")) == model.record.row_count


def test_missing_values_are_refused_by_name() -> None:
    with pytest.raises(ps.InputError, match="'a'"):
        ps.fit(pa.table({"a": [1.0, None, 3.0, 4.0], "y": [1.0, 2.0, 3.0, 5.0]}), "y", method="exact")


def test_the_estimator_in_scikit_learn() -> None:
    X, y = matrix()[:, :-1], matrix()[:, -1]
    model = make_pipeline(StandardScaler(), ps.SketchedRegression("exact")).fit(X, y)
    expected = np.column_stack([np.ones(len(X)), X]) @ exact_coefficients()
    np.testing.assert_allclose(model.predict(X), expected, rtol=0, atol=1e-11)
    search = GridSearchCV(ps.SketchedRegression("stack", random_state=0), {"n_partitions": [2, 4]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.5
    batches = ps.SketchedRegression("exact")
    for start in range(0, len(X), 1000):
        batches.partial_fit(X[start : start + 1000], y[start : start + 1000])
    np.testing.assert_allclose(batches.coef_, exact_coefficients()[1:], rtol=0, atol=1e-12)


def test_a_checkpoint_goes_on(tmp_path: Path) -> None:
    options: dict[str, Any] = {"method": "stack", "n_partitions": 3, "random_state": 0}
    path = KINDS["Parquet"](tmp_path)
    first = ps.fit(path, TARGET, checkpoint=tmp_path / "checkpoint", **options)
    again = ps.fit(path, TARGET, checkpoint=tmp_path / "checkpoint", **options)
    assert np.array_equal(first.coefficients, again.coefficients)
