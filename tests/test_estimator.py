"""The scikit-learn front: tools, frames, shapes, weights, and refitting."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from partsketch import InputError, LocalEngine, PartsketchWarning, SketchedRegression
from tests.estimators import METHODS, data, small


@pytest.mark.parametrize("method", METHODS)
def test_pipeline_with_named_columns(method: str) -> None:
    X, y = data()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    scaler = StandardScaler().set_output(transform="pandas")
    pipeline = make_pipeline(scaler, small(method)).fit(frame, y)
    assert pipeline[-1].feature_names_in_.tolist() == ["a", "b", "c"]
    assert pipeline.score(frame, y) > 0.99
    polars = make_pipeline(StandardScaler().set_output(transform="polars"), small(method)).fit(pl.DataFrame(frame), y)
    np.testing.assert_array_equal(polars.predict(pl.DataFrame(frame)), pipeline.predict(frame))


def test_grid_search_and_cross_validation() -> None:
    X, y = data()
    search = GridSearchCV(small(), {"method": METHODS, "n_partitions": [1, 2]}, cv=3, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.98
    assert cross_val_score(small("exact"), X, y, cv=3).min() > 0.98


def test_grid_search_in_processes() -> None:
    X, y = data()
    search = GridSearchCV(small(), {"n_partitions": [1, 2]}, cv=2, n_jobs=2, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.98


@pytest.mark.parametrize("method", METHODS)
def test_clone_and_parameters(method: str) -> None:
    engine = LocalEngine(1)
    model = SketchedRegression(
        method, n_partitions=3, partition_by="shuffle", remainder="drop", sketch_size=30, fit_intercept=False,
        engine=engine, random_state=7,
    )  # fmt: skip
    copy = clone(model)
    assert {**copy.get_params(), "engine": None} == {**model.get_params(), "engine": None}
    assert not hasattr(copy, "coef_")
    X, y = data()
    again = clone(small(method).fit(X, y)).fit(X, y)
    assert np.array_equal(again.coef_, small(method).fit(X, y).coef_)


@pytest.mark.parametrize("method", METHODS)
def test_pickle(method: str) -> None:
    X, y = data()
    model = small(method).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert again.predict(X).tobytes() == model.predict(X).tobytes()
    assert again.summaries_ == model.summaries_
    assert again.model_.record == model.model_.record


def test_metadata_routing_of_weights() -> None:
    X, y = data()
    weights = np.random.default_rng(1).random(400)
    with sklearn.config_context(enable_metadata_routing=True):
        asking = small("exact").set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), asking)
        pipeline.fit(X, y, sample_weight=weights)
        result = cross_validate(asking, X, y, params={"sample_weight": weights}, cv=2, return_estimator=True)
    scaled = StandardScaler().fit_transform(X)
    assert np.array_equal(pipeline[-1].coef_, small("exact").fit(scaled, y, weights).coef_)
    assert not np.array_equal(pipeline[-1].coef_, small("exact").fit(scaled, y).coef_)
    first = small("exact").fit(X[200:], y[200:], weights[200:])
    assert np.array_equal(result["estimator"][0].coef_, first.coef_)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("targets", [None, 1, 3])
def test_shapes_are_those_of_linear_regression(method: str, targets: int | None) -> None:
    X, y = data()
    Y = y if targets is None else np.column_stack([y + i for i in range(targets)])
    model, reference = small(method).fit(X, Y), LinearRegression().fit(X, Y)
    assert model.coef_.shape == reference.coef_.shape
    assert np.shape(model.intercept_) == np.shape(reference.intercept_)
    assert model.predict(X).shape == reference.predict(X).shape
    assert model.partition_coef_.shape[1:] == model.coef_.shape
    if method in ("average", "partition", "whole"):
        assert model.partition_coef_.shape[0] == 2
        np.testing.assert_allclose(model.partition_coef_.mean(axis=0), model.coef_, rtol=1e-12)
    np.testing.assert_allclose(model.score(X, Y), reference.score(X, Y), atol=0.02)
    without = small(method, fit_intercept=False).fit(X, Y)
    np.testing.assert_array_equal(without.intercept_, 0.0)
    assert without.predict(np.zeros((2, 3))).tolist() == np.zeros_like(reference.predict(X[:2])).tolist()


@pytest.mark.parametrize("method", METHODS)
def test_predict_is_the_linear_function(method: str) -> None:
    X, y = data()
    model = small(method).fit(X, y)
    np.testing.assert_allclose(model.predict(X), X @ model.coef_ + model.intercept_, rtol=0, atol=1e-13)
    np.testing.assert_allclose(model.predict(X), model.model_.predict(X), rtol=0, atol=1e-13)


def test_refitting_forgets() -> None:
    X, y = data()
    model = small().fit(pd.DataFrame(X, columns=["a", "b", "c"]), np.column_stack([y, y]))
    model.set_params(method="exact").fit(X[:, :2], y)
    fresh = small("exact").fit(X[:, :2], y)
    assert np.array_equal(model.coef_, fresh.coef_)
    assert model.n_features_in_ == 2
    assert not hasattr(model, "feature_names_in_")
    assert model.sketch_size_ is None


def test_a_failed_refit_leaves_parameters_alone() -> None:
    X, y = data()
    model = small().fit(X, y)
    before = model.get_params()
    with pytest.raises(InputError):
        model.set_params(sketch_size=2).fit(X, y)
    assert {**model.get_params(), "sketch_size": None} == before


def test_random_states() -> None:
    X, y = data()
    assert np.array_equal(small().fit(X, y).coef_, small().fit(X, y).coef_)
    generator = np.random.default_rng(0)
    moving = SketchedRegression("partition", n_partitions=2, random_state=generator)
    first = moving.fit(X, y).coef_.copy()
    assert not np.array_equal(first, moving.fit(X, y).coef_), "a generator moves on"
    fresh = SketchedRegression("partition", n_partitions=2)
    assert not np.array_equal(fresh.fit(X, y).coef_, fresh.fit(X, y).coef_)


def test_not_fitted() -> None:
    with pytest.raises(NotFittedError):
        small().predict(np.zeros((2, 3)))


def test_warnings_are_raised_and_recorded() -> None:
    X, y = data()
    X[:, 2] = X[:, 1]
    with pytest.warns(PartsketchWarning, match="'x2' is aliased with 'x1'") as caught:
        model = small("exact").fit(X, y)
    assert [str(warning.message) for warning in caught] == list(model.model_.record.warnings)
    assert caught[0].filename == __file__, "the warning points at the caller"


def test_the_default_is_exact_for_every_kind_of_input() -> None:
    X, y = data()
    X = X * (np.random.default_rng(2).random(X.shape) < 0.5)
    Y, weights = np.column_stack([y, -y]), np.random.default_rng(3).random(400)
    for rows in (X, sparse.csr_array(X), sparse.csc_array(X), pd.DataFrame(X), X.tolist()):
        for target in (y, Y):
            for given in (None, weights):
                model = SketchedRegression().fit(rows, target, given)
                exact = SketchedRegression("exact").fit(rows, target, given)
                reference = LinearRegression().fit(X, target, given)
                assert np.array_equal(model.coef_, exact.coef_)
                # Both solve well-conditioned problems of a few hundred rows: ten digits agree.
                np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-10, atol=1e-12)
                np.testing.assert_allclose(model.intercept_, reference.intercept_, rtol=1e-10, atol=1e-12)
                assert model.model_.method == "exact"
                assert model.sketch_size_ is None
    without = SketchedRegression(fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(without.coef_, LinearRegression(fit_intercept=False).fit(X, y).coef_, rtol=1e-10)


def test_the_default_gives_the_same_answer_every_time() -> None:
    """Random numbers are for those who ask: no seed is given here."""
    X, y = data()
    first, second = SketchedRegression().fit(X, y), SketchedRegression().fit(X, y)
    assert np.array_equal(first.coef_, second.coef_)
    assert first.certificate_.kind == "exact"
    assert first.certificate_.excess_loss == 0
    assert not np.array_equal(SketchedRegression("stack").fit(X, y).coef_, first.coef_)


def test_parameters_of_the_default() -> None:
    model = SketchedRegression()
    assert model.get_params()["method"] == "auto"
    assert repr(model) == "SketchedRegression()"
    assert repr(SketchedRegression("stack")) == "SketchedRegression(method='stack')"
    assert clone(model).get_params() == model.get_params()
    X, y = data()
    assert clone(model.fit(X, y)).get_params() == model.get_params(), "fitting chooses a method, and sets none"
    assert model.method == "auto"
