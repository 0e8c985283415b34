"""partial_fit: what must equal a single fit, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from partsketch import InputError, SketchedRegression

FloatArray = NDArray[np.float64]


def problem(rows: int, features: int = 4, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    features_matrix = rng.normal(size=(rows, features)) + 3.0
    return features_matrix, features_matrix @ np.arange(1.0, features + 1) + rng.normal(size=rows)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(8, 60), min_size=1, max_size=5))
def test_exact_batches_of_any_size_equal_one_fit_up_to_rounding(sizes: list[int]) -> None:
    X, y = problem(sum(sizes))
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    batched = SketchedRegression("exact")
    for start, stop in zip(np.cumsum([0, *sizes[:-1]]), np.cumsum(sizes), strict=True):
        batched.partial_fit(X[start:stop], y[start:stop], weights[start:stop])
    whole = SketchedRegression("exact").fit(X, y, weights)
    # The factors are those of the same rows up to the rounding of one more QR decomposition per batch.
    np.testing.assert_allclose(batched.coef_, whole.coef_, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(batched.conf_int(), whole.conf_int(), rtol=1e-10, atol=1e-11)
    assert batched.model_.record.row_count == len(y)
    assert batched.model_.inferences[0].r_squared == pytest.approx(whole.model_.inferences[0].r_squared, rel=1e-12)


@pytest.mark.parametrize("method", ["partition", "stack", "average"])
@pytest.mark.parametrize("sketch", ["gaussian", "sparse_sign", "srht"])
def test_batches_are_the_partitions_of_a_single_fit_bit_by_bit(method: str, sketch: str) -> None:
    X, y = problem(300)
    options: dict[str, Any] = {"sketch": sketch, "sketch_size": 24, "random_state": 7}
    whole = SketchedRegression(method, n_partitions=3, **options).fit(X, y)
    batched = SketchedRegression(method, **options)
    for start in (0, 100, 200):
        batched.partial_fit(X[start : start + 100], y[start : start + 100])
    for ours, theirs in zip(batched.summaries_, whole.summaries_, strict=True):
        np.testing.assert_array_equal(ours.matrix, theirs.matrix)
        assert ours.parts == theirs.parts
    np.testing.assert_array_equal(batched.coef_, whole.coef_)
    assert batched.certificate_.excess_loss == whole.certificate_.excess_loss
    assert [part.row_count for part in batched.model_.record.partitions] == [100, 100, 100]


@pytest.mark.parametrize("sketch", ["gaussian", "sparse_sign", "count_sketch"])
def test_a_batch_may_add_to_the_last_partition(sketch: str) -> None:
    X, y = problem(300)
    options: dict[str, Any] = {"sketch": sketch, "sketch_size": 40, "random_state": 7}
    whole = SketchedRegression("stack", n_partitions=2, **options).fit(X, y)
    batched = SketchedRegression("stack", **options).partial_fit(X[:150], y[:150])
    batched.partial_fit(X[150:200], y[150:200])
    # Fewer rows than columns are enough to add to a partition.
    batched.partial_fit(X[200:203], y[200:203], new_partition=False)
    batched.partial_fit(X[203:], y[203:], new_partition=False)
    for ours, theirs in zip(batched.summaries_, whole.summaries_, strict=True):
        np.testing.assert_allclose(ours.matrix, theirs.matrix, rtol=1e-12, atol=1e-12)
        assert (ours.parts, ours.row_count) == (theirs.parts, theirs.row_count)


def test_partial_fit_goes_on_after_fit() -> None:
    X, y = problem(400)
    begun = SketchedRegression("stack", n_partitions=3, sketch_size=24, random_state=7).fit(X[:300], y[:300])
    begun.partial_fit(X[300:], y[300:])
    whole = SketchedRegression("stack", n_partitions=4, sketch_size=24, random_state=7).fit(X, y)
    np.testing.assert_array_equal(begun.coef_, whole.coef_)
    exact = SketchedRegression("exact").fit(X[:300], y[:300]).partial_fit(X[300:], y[300:])
    np.testing.assert_allclose(exact.coef_, SketchedRegression("exact").fit(X, y).coef_, rtol=1e-11)


def test_a_fresh_seed_lasts_over_all_batches_and_fit_starts_anew() -> None:
    X, y = problem(200)
    model = SketchedRegression("stack", sketch_size=24).partial_fit(X[:100], y[:100]).partial_fit(X[100:], y[100:])
    assert {part.seed for summary in model.summaries_ for part in summary.parts} == {model.model_.record.seed}
    assert [part.stream for summary in model.summaries_ for part in summary.parts] == [0, 1]
    model.fit(X, y)
    assert model.model_.record.row_count == 200


def test_several_targets_and_sparse_batches() -> None:
    from scipy.sparse import csr_array

    X, y = problem(200)
    Y = np.column_stack([y, -2 * y + X[:, 0]])
    model = SketchedRegression("exact").partial_fit(csr_array(X[:90]), Y[:90]).partial_fit(csr_array(X[90:]), Y[90:])
    np.testing.assert_allclose(model.coef_, SketchedRegression("exact").fit(X, Y).coef_, rtol=1e-10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "stack", "partition_by": "shuffle"}, "makes partitions of batches"),
        ({"method": "stack", "remainder": "drop"}, "goes with remainder='spread'"),
        ({"method": "exact", "route": "iterate"}, "any route but 'iterate'"),
    ],
)
def test_what_cannot_go_on_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SketchedRegression(**options).partial_fit(*problem(100))


def test_sketches_of_the_whole_have_no_partial_fit() -> None:
    model = SketchedRegression("whole")
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError) as caught:
        _ = model.partial_fit
    assert "makes every sketch of all rows" in str(caught.value.__cause__)


def test_bad_batches_are_refused_and_change_nothing() -> None:
    X, y = problem(200)
    model = SketchedRegression("stack", sketch_size=24, random_state=7).partial_fit(X[:100], y[:100])
    before = model.coef_.copy()
    with pytest.raises(InputError, match=r"This batch has 5 rows.*new_partition=False"):
        model.partial_fit(X[100:105], y[100:105])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[100:, :2], y[100:])
    with pytest.raises(InputError, match="targets"):
        model.partial_fit(X[100:], np.column_stack([y[100:], y[100:]]))
    bad = X[100:].copy()
    bad[7, 1] = np.nan
    with pytest.raises(InputError, match="row 107"):
        model.partial_fit(bad, y[100:])
    with pytest.raises(ValueError, match="at least one non-zero number"):
        model.partial_fit(X[100:], y[100:], np.zeros(100))
    model.set_params(method="partition")
    with pytest.raises(InputError, match="cannot go on from 'stack'"):
        model.partial_fit(X[100:], y[100:])
    np.testing.assert_array_equal(model.coef_, before)
    srht = SketchedRegression("stack", sketch="srht", sketch_size=24, random_state=7).partial_fit(X[:100], y[:100])
    with pytest.raises(InputError, match="cannot grow"):
        srht.partial_fit(X[100:], y[100:], new_partition=False)


def test_batches_without_a_method_are_exact() -> None:
    X, y = problem(300)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 300)
    batched = SketchedRegression()
    for start in (0, 100, 200):
        stop = start + 100
        batched.partial_fit(X[start:stop], y[start:stop], weights[start:stop])
    np.testing.assert_allclose(batched.coef_, SketchedRegression().fit(X, y, weights).coef_, rtol=1e-11)
    assert batched.model_.method == "exact"
    assert batched.model_.record.reasons["method"].startswith("method='auto' chose exact")
    begun = SketchedRegression().fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
    np.testing.assert_allclose(begun.coef_, SketchedRegression().fit(X, y).coef_, rtol=1e-11)
    assert begun.model_.record.row_count == 300


def test_batches_go_on_with_what_auto_chose(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kind and size of the sketch come from the fit before, not from parameters that it did not use."""
    X, y = problem(400)

    def choose(source: Any, options: Any, engine: str) -> Any:
        chosen = {"method": method, "sketch": "sparse_sign", "sketch_size": 30, "limits": None}
        return replace(options, **chosen), {"method": "method='auto' chose it."}

    monkeypatch.setattr("partsketch.planner.auto.choose_options", choose)
    method = "stack"
    model = SketchedRegression(limits={"seconds": 9}, n_partitions=3, random_state=7).fit(X[:300], y[:300])
    model.partial_fit(X[300:], y[300:])
    named = SketchedRegression("stack", sketch="sparse_sign", sketch_size=30, n_partitions=4, random_state=7).fit(X, y)
    assert {summary.kind for summary in model.summaries_} == {"sparse_sign"}
    np.testing.assert_array_equal(model.coef_, named.coef_)
    method = "whole"
    model.fit(X, y)
    with pytest.raises(InputError, match="chose 'whole'"):
        model.partial_fit(X, y)


def test_limits_cannot_be_kept_by_batches() -> None:
    with pytest.raises(InputError, match="name a method for partial_fit"):
        SketchedRegression(limits={"seconds": 9}).partial_fit(*problem(100))


def test_a_batch_has_two_rows_more_than_columns_or_is_refused() -> None:
    """Four features and an intercept: seven rows make a partition, six do not; a ridge penalty makes do with any."""
    X, y = problem(200)
    model = SketchedRegression("stack", sketch_size=24, random_state=7).partial_fit(X[:100], y[:100])
    with pytest.raises(InputError, match="This batch has 6 rows, and a partition of its own needs at least 7"):
        model.partial_fit(X[100:106], y[100:106])
    model.partial_fit(X[100:107], y[100:107])
    assert model.model_.record.row_count == 107
    ridge = SketchedRegression("stack", sketch_size=24, random_state=7, alpha=1.0).partial_fit(X[:100], y[:100])
    assert ridge.partial_fit(X[100:103], y[100:103]).model_.record.row_count == 103


@pytest.mark.parametrize("sketch", ["gaussian", "orthogonal"])
def test_short_sketches_begin_with_fit_and_go_on_with_batches(sketch: str) -> None:
    """Sketches of fewer rows than columns: the first batch alone is refused, a fit of several goes on bit by bit."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(300, 7)), rng.normal(size=300)
    asked: dict[str, Any] = {"method": "stack", "sketch": sketch, "sketch_size": 5, "random_state": 0}
    with pytest.raises(InputError, match=r"begin with fit and n_partitions=2 or more, .* or give at least 10\.$"):
        SketchedRegression(**asked).partial_fit(X[:50], y[:50])
    model = SketchedRegression(n_partitions=4, **asked).fit(X[:200], y[:200])
    for start in range(200, 300, 50):
        model.partial_fit(X[start : start + 50], y[start : start + 50])
    once = SketchedRegression(n_partitions=6, **asked).fit(X, y)
    np.testing.assert_array_equal(model.coef_, once.coef_)
    assert model.certificate_.excess_loss == once.certificate_.excess_loss
