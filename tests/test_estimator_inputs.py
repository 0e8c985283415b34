"""What the estimator takes: frames, sparse matrices, number types, partition columns and weights."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from partsketch import InputError, SketchedRegression
from tests.estimators import METHODS, data, small


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


@pytest.mark.filterwarnings("ignore:104 rows with missing values or of weight zero were dropped")
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


def test_masked_values_are_never_taken_for_numbers() -> None:
    """NumPy and scikit-learn forget the mask: what lies under it would be part of the fit."""
    X = np.random.default_rng(3).normal(size=(40, 2))
    y = X.sum(axis=1)
    masked: Any = np.ma.MaskedArray(X, mask=X > 2)
    target: Any = np.ma.MaskedArray(y, mask=y > 2)
    weights: Any = np.ma.MaskedArray(np.ones(40), mask=y > 2)
    fitted = SketchedRegression("exact").fit(X, y)
    calls: dict[str, Callable[[], Any]] = {
        "X": lambda: SketchedRegression().fit(masked, y),
        "y": lambda: SketchedRegression().fit(X, target),
        "sample_weight": lambda: SketchedRegression().fit(X, y, weights),
        "X in a batch": lambda: SketchedRegression("exact").partial_fit(masked, y),
        "X of predictions": lambda: fitted.predict(masked),
    }
    for name, call in calls.items():
        with pytest.raises(InputError, match=f"^{name.split()[0]} is a masked array: fill its missing values"):
            call()


@pytest.mark.parametrize("given", ["no", 2, None])
def test_an_intercept_is_asked_for_in_so_many_words(given: Any) -> None:
    X, y = data()
    with pytest.raises(InputError, match=r"fit_intercept is .*: give True or False"):
        SketchedRegression(fit_intercept=given).fit(X, y)
