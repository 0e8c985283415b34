"""The walk from a source to a model: options, bad input, partitions, the record."""

from __future__ import annotations

import re
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

import partsketch as ps
from partsketch import InputError, LocalEngine, Model, PartsketchWarning, SketchedRegression
from partsketch.fitting import choose_sketch_size, fit_source
from partsketch.gathering import make_tasks
from partsketch.options import FitOptions, seed_from
from partsketch.partitions import order_partitions
from partsketch.sources import array_source
from partsketch.summarise import SEGMENT_ROWS

FloatArray = NDArray[np.float64]

METHODS = ["exact", "average", "partition", "stack", "whole"]


def data(rows: int = 300, columns: int = 3, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(rows, columns))
    return X, X.sum(axis=1) + generator.normal(size=rows)


def quiet(method: str = "partition", **options: Any) -> Any:
    """A fit whose warnings do not matter here."""

    def fit(X: Any, y: Any, weights: Any = None) -> SketchedRegression:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PartsketchWarning)
            return SketchedRegression(method, **options).fit(X, y, weights)

    return fit


# Options


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("method", "magic", "'magic'.*'exact', 'average', 'partition', 'stack', 'whole'"),
        ("n_partitions", 0, "n_partitions is 0"),
        ("n_partitions", 2.5, "n_partitions is 2.5"),
        ("n_partitions", "8", "n_partitions is '8'"),
        ("n_partitions", True, "n_partitions is True"),
        ("partition_by", "", "partition_by"),
        ("partition_by", None, "partition_by"),
        ("partition_by", "site", "data frame"),
        ("remainder", "keep", "'spread' or 'drop'"),
        ("sketch", "magic", "sketch is 'magic'.*'gaussian'"),
        ("sketch", "triangular", "sketch is 'triangular'"),
        ("sketch_size", 0, "sketch_size"),
        ("sketch_size", 10.0, "sketch_size"),
        ("engine", "abacus", "'abacus'"),
        ("engine", 7, "engine"),
        ("random_state", -1, "random_state is -1"),
        ("random_state", 2**64, "random_state"),
        ("random_state", "lucky", "random_state"),
    ],
)
def test_unknown_options_are_refused_by_name(option: str, value: Any, message: str) -> None:
    X, y = data()
    with pytest.raises(InputError, match=message):
        SketchedRegression(**{option: value}).fit(X, y)
    if option != "partition_by":
        with pytest.raises(InputError, match=message):
            ps.fit(np.column_stack([X, y]), target="x3", **{option: value})


def test_options_that_do_not_go_together() -> None:
    X, y = data()
    with pytest.raises(InputError, match="needs files"):
        SketchedRegression(partition_by="file").fit(X, y)
    with pytest.raises(InputError, match="remainder='drop'"):
        SketchedRegression(partition_by="shuffle", remainder="drop").fit(X, y)


@pytest.mark.parametrize("kind", ["int", "numpy int", "Generator", "RandomState", "largest"])
def test_seeds(kind: str) -> None:
    make: dict[str, Any] = {
        "int": lambda: 5,
        "numpy int": lambda: np.uint8(5),
        "Generator": lambda: np.random.default_rng(5),
        "RandomState": lambda: np.random.RandomState(5),
        "largest": lambda: 2**64 - 1,
    }
    X, y = data()
    first, second = (quiet(random_state=make[kind]())(X, y) for _ in range(2))
    assert np.array_equal(first.coef_, second.coef_)
    again = quiet(random_state=first.model_.record.seed)(X, y)
    assert np.array_equal(first.coef_, again.coef_), "the recorded seed repeats the fit"


def test_a_generator_moves_on_and_none_is_fresh_but_recorded() -> None:
    generator = np.random.default_rng(0)
    assert seed_from(generator) != seed_from(generator)
    assert seed_from(None) != seed_from(None)
    X, y = data()
    model = quiet()(X, y)
    assert np.array_equal(quiet(random_state=model.model_.record.seed)(X, y).coef_, model.coef_)


# Sketch sizes


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("method", ["partition", "stack", "whole"])
def test_sketch_sizes_without_mean_are_refused_and_without_variance_warned_of(method: str, intercept: bool) -> None:
    """d counts the intercept: m ≤ d + 1 has no mean, m ≤ d + 3 no variance."""
    X, y = data(columns=4)
    d = 4 + intercept
    for size in (1, d, d + 1):
        with pytest.raises(InputError, match=rf"sketch_size={size} is too small.*at least {d + 2}\b.*{d + 4}\b"):
            SketchedRegression(method, sketch_size=size, fit_intercept=intercept).fit(X, y)
    for size in (d + 2, d + 3):
        with pytest.warns(PartsketchWarning, match=rf"infinite variance.*at least {d + 4}\b"):
            SketchedRegression(method, sketch_size=size, fit_intercept=intercept).fit(X, y)
    model = SketchedRegression(method, sketch_size=d + 4, fit_intercept=intercept).fit(X, y)
    assert model.sketch_size_ == d + 4


def test_exact_methods_have_no_sketch_size() -> None:
    X, y = data()
    for method in ("exact", "average"):
        assert SketchedRegression(method, sketch_size=1).fit(X, y).sketch_size_ is None


@given(columns=st.integers(1, 200), smallest=st.one_of(st.none(), st.integers(1, 2000)))
def test_the_size_chosen_is_clear_of_heavy_tails(columns: int, smallest: int | None) -> None:
    size, reason = choose_sketch_size(None, columns, smallest)
    assert size >= columns + 4
    assert reason
    if smallest is not None and smallest >= columns + 4:
        assert size <= max(smallest, columns + 4)
    if smallest is None or smallest >= 4 * columns + 16:
        assert size == max(4 * columns, columns + 16)


def test_the_size_chosen_is_recorded_with_its_reason() -> None:
    X, y = data(1000)
    model = SketchedRegression(n_partitions=2, random_state=0).fit(X, y)
    assert model.sketch_size_ == 20
    assert "sketch_size" in model.model_.record.reasons
    assert model.summaries_[0].matrix.shape == (20, 5)


# Numbers of partitions


def largest_named(error: pytest.ExceptionInfo[InputError]) -> int | None:
    found = re.search(r"largest possible number of partitions is (\d+)|give at most (\d+)", str(error.value))
    return None if found is None else int(found.group(1) or found.group(2))


def check_largest(rows: int, columns: int, k: int, method: str, remainder: str) -> None:
    """If k is refused, the number that the message names works, and one more does not."""
    X, y = data(rows, columns)
    fit = quiet(method, n_partitions=k, remainder=remainder, random_state=0)
    if rows // k >= columns + 3:
        fit(X, y)
        return
    with pytest.raises(InputError) as refusal:
        fit(X, y)
    largest = largest_named(refusal)
    if largest is None:
        assert rows < columns + 3
        assert "Too few rows" in str(refusal.value)
        return
    quiet(method, n_partitions=largest, remainder=remainder, random_state=0)(X, y)
    with pytest.raises(InputError):
        quiet(method, n_partitions=largest + 1, remainder=remainder, random_state=0)(X, y)


@settings(max_examples=30)
@given(
    data=st.data(), rows=st.integers(2, 60), columns=st.integers(1, 6), method=st.sampled_from(["partition", "stack"])
)
def test_the_largest_number_of_partitions(data: st.DataObject, rows: int, columns: int, method: str) -> None:
    check_largest(rows, columns, data.draw(st.integers(1, rows)), method, "spread")


def test_the_largest_number_of_partitions_when_dropping() -> None:
    """29 rows, least 5 per partition: 5 partitions of 5 rows work, the message says 4."""
    check_largest(29, 2, 10, "partition", "drop")


def test_the_largest_number_of_partitions_with_more_partitions_than_rows() -> None:
    check_largest(29, 2, 50, "partition", "spread")


@pytest.mark.parametrize("method", ["exact", "whole"])
def test_dropping_everything_is_refused_in_words(method: str) -> None:
    """Fewer rows than partitions with remainder='drop': no row is left."""
    X, y = data(5)
    with pytest.raises(InputError):
        quiet(method, n_partitions=8, remainder="drop")(X, y)


def test_shuffled_partitions_that_are_too_small_are_refused() -> None:
    X, y = data(60, 3)
    with pytest.raises(InputError, match="fewer when shuffled"):
        quiet(n_partitions=12, partition_by="shuffle", random_state=0)(X, y)


def test_too_few_rows_for_a_sketch_point_to_the_exact_method() -> None:
    X, y = data(4, 3)
    with pytest.raises(InputError, match="method='exact'"):
        quiet(n_partitions=1)(X, y)


@pytest.mark.parametrize(("rows", "k"), [(100, 3), (101, 3), (102, 3), (200, 7)])
@pytest.mark.parametrize("method", ["average", "partition", "stack"])
def test_sizes_and_remainders(rows: int, k: int, method: str) -> None:
    X, y = data(rows)
    spread = quiet(method, n_partitions=k, random_state=0)(X, y).model_.record
    sizes = [entry.row_count for entry in spread.partitions]
    assert sum(sizes) == rows
    assert max(sizes) - min(sizes) <= 1
    assert spread.rows_left_out == 0
    drop = quiet(method, n_partitions=k, remainder="drop", random_state=0)(X, y)
    assert {entry.row_count for entry in drop.model_.record.partitions} == {rows // k}
    assert drop.model_.record.rows_left_out == rows % k
    shorter = quiet(method, n_partitions=k, random_state=0)(X[: rows - rows % k], y[: rows - rows % k])
    assert np.array_equal(drop.coef_, shorter.coef_)
    if rows % k:
        with pytest.warns(PartsketchWarning, match=f"last {rows % k} rows were left out"):
            SketchedRegression(method, n_partitions=k, remainder="drop", sketch_size=12).fit(X, y)


def test_rows_left_out_are_not_looked_at() -> None:
    X, y = data(101)
    X[100] = np.nan
    assert np.isfinite(quiet("average", n_partitions=2, remainder="drop")(X, y).coef_).all()


def test_shuffle_is_seeded_and_about_even() -> None:
    X, y = data(4000)
    fits = [quiet("average", partition_by="shuffle", random_state=seed)(X, y) for seed in (0, 0, 1)]
    assert np.array_equal(fits[0].partition_coef_, fits[1].partition_coef_)
    assert not np.array_equal(fits[0].partition_coef_, fits[2].partition_coef_)
    # Binomial with p = 1/8: five standard deviations.
    sizes = np.array([entry.row_count for entry in fits[0].model_.record.partitions])
    assert sizes.sum() == 4000
    assert np.abs(sizes - 500).max() < 5 * np.sqrt(4000 / 8 * 7 / 8)


# Values that are not finite


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("bad", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
@pytest.mark.parametrize("block_rows", [1000, 70_000])
def test_the_first_bad_value_is_named(method: str, bad: float, word: str, block_rows: int) -> None:
    """Bad values in many rows and in later segments that other threads read first: the lowest row is named."""
    X, y = data(3 * SEGMENT_ROWS)
    X[[5001, 5003, 70_000, 140_000, 196_607], 1] = bad
    X[5002, 0] = bad
    engine = LocalEngine(3, block_rows)
    with pytest.raises(InputError, match=rf"{word}: column 'x1', row 5001 "):
        SketchedRegression(method, n_partitions=2, engine=engine).fit(X, y)


@pytest.mark.parametrize("block_rows", [64, 10_000])
def test_the_first_bad_value_is_named_when_shuffled(block_rows: int) -> None:
    X, y = data(1000)
    X[10:40, 1] = np.nan
    for seed in range(3):
        with pytest.raises(InputError, match="row 10 "):
            quiet(
                "average", n_partitions=3, partition_by="shuffle", random_state=seed, engine=LocalEngine(1, block_rows)
            )(X, y)


def test_bad_values_in_sparse_rows_targets_and_files(tmp_path: Path) -> None:
    X, y = data(500)
    X[:, 1] = 0.0
    X[300, 1] = np.nan
    with pytest.raises(InputError, match="'x1', row 300"):
        quiet("exact")(sparse.csr_array(X), y)
    table = pa.table({"a": y, "b": np.where(np.arange(500) == 77, np.inf, y)})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"'?b'?.*77"):
        ps.fit(tmp_path / "a.parquet", target="b", method="exact")
    with pytest.raises(ValueError, match="NaN"):
        quiet("exact")(np.ones((3, 1)), [1.0, np.nan, 2.0])


def test_overflow_is_told_from_infinity() -> None:
    X, y = data()
    with pytest.raises(InputError, match="too large"):
        quiet("exact")(X * 1e200, y)


# Weights, empty input, constant targets


@pytest.mark.parametrize("method", METHODS)
def test_weights_that_make_no_sense(method: str) -> None:
    X, y = data()
    weights = np.ones(300)
    with pytest.raises(ValueError, match="non-zero"):
        quiet(method, n_partitions=2)(X, y, 0 * weights)
    with pytest.raises(InputError, match="All sample weights are zero"):
        ps.fit(np.column_stack([X, y, 0 * y]), target="x3", weights="x4", method=method, n_partitions=2)
    weights[[7, 9]] = -1.0
    with pytest.raises(InputError, match=r"-1\.0 in row 7"):
        quiet(method)(X, y, weights)
    weights[[7, 9]] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        quiet(method)(X, y, weights)
    with pytest.raises(ValueError, match="shape"):
        quiet(method)(X, y, np.ones(299))


@pytest.mark.parametrize("method", METHODS)
def test_weights_of_one_change_nothing_and_scale_does_not_matter(method: str) -> None:
    X, y = data()
    plain = quiet(method, n_partitions=2, random_state=0)(X, y)
    ones = quiet(method, n_partitions=2, random_state=0)(X, y, np.ones(300))
    assert np.array_equal(plain.coef_, ones.coef_)
    fours = quiet(method, n_partitions=2, random_state=0)(X, y, np.full(300, 4.0))
    np.testing.assert_allclose(fours.coef_, plain.coef_, rtol=1e-12)


@pytest.mark.parametrize("method", ["average", "partition"])
def test_a_partition_without_weight_is_refused(method: str) -> None:
    X, y = data()
    weights = np.ones(300)
    weights[:150] = 0.0
    with pytest.raises(InputError, match="weight"):
        quiet(method, n_partitions=2)(X, y, weights)


def test_empty_input(tmp_path: Path) -> None:
    for rows in (np.empty((0, 3)), pa.table({"a": pa.array([], pa.float64()), "x2": pa.array([], pa.float64())})):
        with pytest.raises(InputError, match="no rows"):
            ps.fit(rows, target="x2", method="exact")
    options = FitOptions("exact", 1, "order", "spread", "gaussian", None, True, 0)
    with pytest.raises(InputError, match="no rows"):
        fit_source(array_source(np.empty((0, 2)), np.empty(0)), options, LocalEngine())
    with pytest.raises(InputError, match="no target"):
        fit_source(array_source(np.ones((3, 2)), None), options, LocalEngine())
    nothing = FitOptions("exact", 1, "order", "spread", "gaussian", None, False, 0)
    with pytest.raises(InputError, match="nothing to fit"):
        fit_source(array_source(np.empty((3, 0)), np.ones(3)), nothing, LocalEngine())
    table = pa.table({"a": [None, None], "b": [1.0, 2.0]})
    with pytest.raises(InputError, match="2 rows have missing values"):
        ps.fit(table, target="b", method="exact", missing="drop")


@pytest.mark.parametrize("method", METHODS)
def test_a_constant_target_works_and_is_said(method: str) -> None:
    X, _ = data()
    with pytest.warns(PartsketchWarning, match="'y' is constant"):
        model = SketchedRegression(method, n_partitions=2, random_state=0).fit(X, np.full(300, 2.5))
    np.testing.assert_allclose(model.predict(X), 2.5, rtol=1e-12)
    np.testing.assert_allclose(model.coef_, 0.0, atol=1e-13)


def test_dropped_rows_are_counted_and_said() -> None:
    table = pa.table({"a": [1.0, None, 3.0, 4.0, 7.0], "b": [1.0, 2.0, None, 4.5, 7.0]})
    with pytest.warns(PartsketchWarning, match="2 rows with missing values"):
        model = ps.fit(table, target="b", method="exact", missing="drop")
    assert model.record.rows_dropped == 2
    assert model.record.row_count == 3
    with pytest.raises(InputError, match="missing"):
        ps.fit(table, target="b", method="exact")


def test_partitions_by_file(tmp_path: Path) -> None:
    X, y = data(300)
    for name, rows in [("b", slice(100, 300)), ("a", slice(0, 100))]:
        pq.write_table(pa.table({"u": X[rows, 0], "v": X[rows, 1], "y": y[rows]}), tmp_path / f"{name}.parquet")
    model = ps.fit(str(tmp_path / "*.parquet"), target="y", method="average", partition_by="file")
    assert [entry.row_count for entry in model.record.partitions] == [100, 200]
    for number, rows in enumerate([slice(0, 100), slice(100, 300)]):
        alone = SketchedRegression("exact").fit(X[rows, :2], y[rows])
        np.testing.assert_allclose(model.partition_coefficients[number, :, 0], alone.coef_, rtol=1e-12)


def test_partitions_by_column(tmp_path: Path) -> None:
    X, y = data(300)
    site = np.array(["south", "north", "east"])[np.arange(300) % 3]
    pq.write_table(pa.table({"u": X[:, 0], "v": X[:, 1], "site": site, "y": y}), tmp_path / "a.parquet")
    model = ps.fit(tmp_path / "a.parquet", target="y", method="average", partition_by="site")
    assert [entry.name for entry in model.record.partitions] == ["east", "north", "south"]
    assert model.feature_names == ("u", "v")
    alone = SketchedRegression("exact").fit(X[site == "north", :2], y[site == "north"])
    np.testing.assert_allclose(model.partition_coefficients[1, :, 0], alone.coef_, rtol=1e-12)


# Tasks and record


@given(rows=st.integers(1, 10 * SEGMENT_ROWS), k=st.integers(1, 5))
def test_tasks_cover_every_row_once(rows: int, k: int) -> None:
    class Rows:
        random_access = True
        row_count = rows
        boundaries = ()

    partitioning = order_partitions(rows, min(k, rows), "spread")
    tasks = make_tasks(Rows(), partitioning)  # type: ignore[arg-type]
    assert tasks[0].start == 0
    assert tasks[-1].stop == rows
    assert all(before.stop == after.start for before, after in pairwise(tasks))
    starts = {task.start for task in tasks}
    assert set((partitioning.bounds or ())[:-1]) <= starts, "no task holds rows of two partitions"


@pytest.mark.parametrize("method", METHODS)
def test_the_record_repeats_the_fit(method: str) -> None:
    X, y = data()
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "y": y})
    model = ps.fit(table, target="y", method=method, n_partitions=3)
    assert isinstance(model, Model)
    record = model.record
    options = {name: value for name, value in record.options.items() if name != "seed"}
    again = ps.fit(table, target="y", random_state=record.seed, **options)
    assert np.array_equal(model.coefficients, again.coefficients)
    assert record.row_count == 300
    assert record.reasons["method"]
    assert record.versions["numpy"] == np.__version__
    assert len(record.partitions) == {"exact": 1}.get(method, 3)


def test_rank_and_dependent_columns_of_partitions_are_recorded() -> None:
    X, y = data(400)
    X[:200, 1] = X[:200, 0]
    with pytest.warns(PartsketchWarning, match=r"1 of 2 fits have dependent columns \(rank 3 of 4\): 'x1'"):
        model = SketchedRegression("average", n_partitions=2).fit(X, y)
    assert [entry.rank for entry in model.model_.record.partitions] == [3, 4]
    assert model.rank_ == 3
    assert model.model_.record.aliased == (), "not aliased in every partition"


def test_condition_number_of_the_worst_fit() -> None:
    X, y = data(400)
    X[200:, 2] = X[200:, 1] + 1e-4 * X[200:, 2]
    ones = np.ones((200, 1))
    model = SketchedRegression("average", n_partitions=2).fit(X, y)
    conditions = []
    for half in (X[:200], X[200:]):
        matrix = np.column_stack([ones, half])
        conditions.append(float(np.linalg.cond(matrix / np.linalg.norm(matrix, axis=0))))
    assert model.model_.record.condition == pytest.approx(max(conditions), rel=1e-6)
