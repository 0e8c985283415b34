"""The scikit-learn front: tools, frames, shapes, weights, and refitting."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from partsketch import InputError, LocalEngine, PartsketchWarning, SketchedRegression

FloatArray = NDArray[np.float64]

METHODS = ["auto", "exact", "average", "partition", "stack", "whole"]


def data(rows: int = 400, columns: int = 3) -> tuple[FloatArray, FloatArray]:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(rows, columns))
    return X, X @ np.arange(1.0, columns + 1) + 1.0 + 0.1 * generator.normal(size=rows)


def small(method: str = "partition", **options: Any) -> SketchedRegression:
    return SketchedRegression(method, n_partitions=2, random_state=0, **options)


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
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_equal_arrays(method: str, library: str) -> None:
    X, y = data()
    make: Any = {"pandas": pd.DataFrame, "polars": pl.DataFrame}[library]
    names = ["b", "a", "intercept"]
    frame = make(dict(zip(names, X.T, strict=True)))
    model = small(method).fit(frame, y)
    assert model.feature_names_in_.tolist() == names
    assert model.model_.feature_names == tuple(names)
    assert model.n_features_in_ == 3
    assert np.array_equal(model.coef_, small(method).fit(X, y).coef_)
    assert np.array_equal(model.predict(frame), model.predict(frame[names]))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[names[::-1]])
    assert not hasattr(small(method).fit(X, y), "feature_names_in_")


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("method", METHODS)
def test_partitions_by_a_column_of_a_frame(library: str, method: str) -> None:
    X, y = data()
    make: Any = {"pandas": pd.DataFrame, "polars": pl.DataFrame}[library]
    site = np.array(["west", "east"])[np.arange(400) // 3 % 2]
    frame = make({"a": X[:, 0], "site": site, "b": X[:, 1]})
    model = small(method, partition_by="site").fit(frame, y)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert model.n_features_in_ == 2
    if method in ("average", "partition", "stack"):
        assert [entry.name for entry in model.model_.record.partitions] == ["east", "west"]
    if method == "average":
        east = SketchedRegression("exact").fit(X[site == "east", :2], y[site == "east"])
        np.testing.assert_allclose(model.partition_coef_[0], east.coef_, rtol=1e-12)
    assert np.array_equal(model.predict(frame), model.predict(frame[["a", "b"]]))


def test_partition_values_in_increasing_order_of_numbers() -> None:
    X, y = data()
    frame = pd.DataFrame({"a": X[:, 0], "site": np.array([10, 9, 2])[np.arange(400) % 3]})
    model = small("average", partition_by="site").fit(frame, y)
    assert [entry.name for entry in model.model_.record.partitions] == ["2", "9", "10"]


def test_a_partition_column_that_is_not_there() -> None:
    X, y = data()
    with pytest.raises(InputError, match="data frame"):
        small(partition_by="site").fit(X, y)
    with pytest.raises(InputError, match="'site'"):
        small(partition_by="site").fit(pd.DataFrame(X), y)


def _missing_sites() -> list[Any]:
    texts = np.array(["north", "south"] * 50, dtype=object)
    with_none, with_nan = texts.copy(), texts.copy()
    with_none[7], with_nan[7] = None, np.nan
    numbers = np.arange(100) % 2 + 0.0
    numbers[7] = np.nan
    nullable = pd.array([1, 2] * 50, dtype="Int64")
    nullable[7] = pd.NA
    return [
        pytest.param(with_none, id="None"),
        pytest.param(with_nan, id="nan among texts"),
        pytest.param(numbers, id="nan among numbers"),
        pytest.param(nullable, id="NA"),
        pytest.param(pd.Categorical(with_none), id="category"),
    ]


@pytest.mark.parametrize("site", _missing_sites())
def test_missing_values_in_the_partition_column(site: Any) -> None:
    X, y = data(100)
    frame = pd.DataFrame({"a": X[:, 0]})
    frame["site"] = site
    with pytest.raises(InputError, match="missing value in row 7"):
        small("average", partition_by="site").fit(frame, y)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("name", ["order", "shuffle"])
def test_a_feature_may_be_called_like_a_way_to_partition(name: str) -> None:
    X, y = data()
    frame = pd.DataFrame(X, columns=["a", name, "c"])
    model = small("exact", partition_by=name).fit(frame, y)
    assert np.array_equal(model.coef_, small("exact").fit(X, y).coef_)
    # Frames and arrays have other memory orders, and so other last bits in a product.
    np.testing.assert_allclose(model.predict(frame), model.predict(frame.to_numpy()), rtol=1e-12, atol=1e-12)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_a_feature_may_be_called_like_the_target() -> None:
    X, y = data()
    frame = pd.DataFrame(X, columns=["a", "y", "c"])
    assert np.array_equal(small("exact").fit(frame, y).coef_, small("exact").fit(X, y).coef_)


def test_a_feature_called_like_the_intercept_is_refused() -> None:
    X, y = data()
    with pytest.raises(InputError, match="rename it"):
        small("exact").fit(pd.DataFrame(X, columns=["a", "(intercept)", "c"]), y)


def test_targets_keep_their_names() -> None:
    X, y = data()
    assert small("exact").fit(X, pd.Series(y, name="price")).model_.target_names == ("price",)
    both = pd.DataFrame({"price": y, "rent": -y})
    assert small("exact").fit(X, both).model_.target_names == ("price", "rent")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix, sparse.csc_matrix])
def test_sparse_equals_dense(method: str, make: Any) -> None:
    X, y = data()
    X = X * (np.random.default_rng(2).random(X.shape) < 0.3)
    model = small(method).fit(make(X), y)
    dense = small(method).fit(X, y)
    assert np.array_equal(model.coef_, dense.coef_)
    np.testing.assert_allclose(model.predict(make(X)), dense.predict(X), rtol=1e-12)


def test_sparse_with_repeated_entries_is_summed_and_left_alone() -> None:
    X = sparse.csr_array((np.array([1.0, 2.0, 5.0, 1.0]), np.array([0, 0, 1, 0]), np.array([0, 2, 3, 4])), shape=(3, 2))
    model = small("exact", fit_intercept=False).fit(X, np.array([3.0, 5.0, 1.0]))
    np.testing.assert_allclose(model.coef_, [1.0, 1.0], rtol=1e-12)
    assert X.nnz == 4


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


def test_the_users_arrays_are_left_alone() -> None:
    X, y = data()
    weights = np.random.default_rng(3).random(400)
    copies = X.copy(), y.copy(), weights.copy()
    for method in METHODS:
        small(method).fit(X, y, weights)
    assert all(np.array_equal(a, b) for a, b in zip(copies, (X, y, weights), strict=True))
    X.flags.writeable = y.flags.writeable = weights.flags.writeable = False
    small().fit(X, y, weights)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.uint64, np.bool_])
def test_number_types(dtype: Any) -> None:
    generator = np.random.default_rng(4)
    X = generator.integers(0, 2, size=(300, 3)).astype(dtype)
    y = X.astype(np.float64) @ [1.0, 2.0, 3.0] + generator.normal(size=300)
    model = small("exact").fit(X, y)
    assert np.array_equal(model.coef_, small("exact").fit(X.astype(np.float64), y).coef_)
    assert model.predict(X).dtype == np.float64


def test_lists_and_strided_views() -> None:
    X, y = data(40)
    assert np.array_equal(small("exact").fit(X.tolist(), y.tolist()).coef_, small("exact").fit(X, y).coef_)
    wide = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]
    assert np.array_equal(
        small("exact").fit(wide[::-1], y[::-1]).coef_, small("exact").fit(X[::-1].copy(), y[::-1]).coef_
    )


@pytest.mark.parametrize("method", METHODS)
def test_integer_weights_of_the_estimator(method: str) -> None:
    X, y = data()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lists = small(method).fit(X, y, sample_weight=[2] * 400)
    np.testing.assert_allclose(lists.coef_, small(method).fit(X, y).coef_, rtol=1e-10)


def test_weights_are_repeated_rows_of_their_partition() -> None:
    """scikit-learn's check of the same moves the border between partitions by order; those by a column stay."""
    X, y = data()
    site = np.arange(400) % 2
    times = np.random.default_rng(5).integers(0, 4, 400)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "site": site})
    weighted = small("average", partition_by="site").fit(frame, y, sample_weight=times)
    rows = np.repeat(np.arange(400), times)
    repeated = small("average", partition_by="site").fit(frame.iloc[rows], y[rows])
    np.testing.assert_allclose(weighted.partition_coef_, repeated.partition_coef_, rtol=1e-10)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-10)
    assert not np.allclose(weighted.coef_, small("average", partition_by="site").fit(frame, y).coef_, rtol=1e-4)


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
