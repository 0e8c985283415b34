"""Partitions that cannot be read are left out when asked, and everything said is of the others alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import partsketch as ps
from partsketch import InputError, PartsketchWarning, SketchedRegression
from tests import damage
from tests.damage import write_files

Damage = Callable[[Path], None]

METHODS: list[dict[str, Any]] = [
    {"method": "average"},
    {"method": "average", "averaging": "inverse_variance"},
    {"method": "partition", "sketch_size": 60},
    {"method": "partition", "sketch_size": 60, "averaging": "inverse_variance"},
    {"method": "stack", "sketch_size": 60},
    {"method": "partition", "sketch_size": 60, "alpha": 5.0},
]


def fit(data: Any, **options: Any) -> ps.Model:
    given = {"target": "y", "method": "partition", "partition_by": "file", "weights": "w", "random_state": 3, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PartsketchWarning)
        return ps.fit([str(path) for path in data], **given)


def assert_same_model(one: ps.Model, other: ps.Model) -> None:
    """Everything a model says, except what was asked, left out and warned of, is the same to the last bit."""
    assert np.array_equal(one.coefficients, other.coefficients)
    assert np.array_equal(one.intercept, other.intercept)
    assert np.array_equal(one.partition_coefficients, other.partition_coefficients)
    assert one.certificates == other.certificates
    if one.record.options["alpha"] == 0:
        assert np.array_equal(one.conf_int(), other.conf_int())
    for name in ("row_count", "weight_sum", "rows_dropped", "rank", "condition", "partitions", "sketch_size"):
        assert getattr(one.record, name) == getattr(other.record, name), name


@pytest.mark.parametrize("harm", [damage.no_footer, damage.nothing, damage.noise, damage.gone, damage.hole])
@pytest.mark.parametrize("options", METHODS, ids=str)
def test_the_model_is_that_of_the_other_files(tmp_path: Path, harm: Damage, options: dict[str, Any]) -> None:
    """The last file is damaged, so that the others keep their numbers and so their random numbers."""
    paths = write_files(tmp_path)
    harm(paths[-1])
    with pytest.raises(InputError, match=r"part-3\.parquet"):
        fit(paths, **options)
    model = fit(paths, on_partition_error="drop", **options)
    assert_same_model(model, fit(paths[:-1], **options))
    (left_out,) = model.record.partitions_left_out
    assert left_out.name == "part-3.parquet"
    assert "part-3.parquet" in left_out.reason
    assert left_out.row_count == (damage.ROWS if harm is damage.hole else None)


@pytest.mark.parametrize("harm", [damage.no_footer, damage.hole])
def test_exact_summaries_do_not_depend_on_which_file_is_damaged(tmp_path: Path, harm: Damage) -> None:
    paths = write_files(tmp_path)
    harm(paths[0])
    harm(paths[2])
    model = fit(paths, method="average", on_partition_error="drop")
    assert_same_model(model, fit([paths[1], paths[3]], method="average"))
    assert [part.name for part in model.record.partitions_left_out] == ["part-0.parquet", "part-2.parquet"]


@pytest.mark.parametrize("extension", ["csv", "feather", "npy"])
@pytest.mark.parametrize("harm", [damage.half, damage.nothing, damage.noise, damage.gone])
def test_every_format(tmp_path: Path, extension: str, harm: Damage) -> None:
    """Half a CSV file may be one whose last row is whole; here it is not."""
    paths = write_files(tmp_path, extension)
    harm(paths[1])
    names = {"target": "x2", "weights": "x3"} if extension == "npy" else {}
    model = fit(paths, method="average", on_partition_error="drop", **names)
    assert_same_model(model, fit([paths[0], *paths[2:]], method="average", **names))
    assert [part.name for part in model.record.partitions_left_out] == [f"part-1.{extension}"]


def test_a_folder_and_a_glob(tmp_path: Path) -> None:
    paths = write_files(tmp_path)
    damage.nothing(paths[1])
    expected = fit([paths[0], *paths[2:]], method="average")
    for data in (tmp_path, tmp_path / "*.parquet"):
        assert_same_model(fit([data], method="average", on_partition_error="drop"), expected)


def test_a_pass_before_the_fit_meets_the_damage_too(tmp_path: Path) -> None:
    """Looking for the levels of a text column reads every file to its end."""
    paths = write_files(tmp_path)
    for number, path in enumerate(paths):
        colours = pa.array(np.array(["red", "green", "blue"])[np.arange(damage.ROWS) % 3])
        damage.write(path, damage.table(number).append_column("colour", colours))
    damage.hole(paths[2])
    model = fit(paths, method="average", encode=True, on_partition_error="drop")
    assert_same_model(model, fit([*paths[:2], paths[3]], method="average", encode=True))


def test_rows_with_missing_values_are_counted_for_what_remains(tmp_path: Path) -> None:
    paths = write_files(tmp_path)
    for number in (1, 3):
        rows = damage.table(number)
        values = rows["a"].to_numpy().copy()
        values[: 10 * number] = np.nan
        damage.write(paths[number], rows.set_column(0, "a", pa.array(values)))
    damage.hole(paths[3])
    model = fit(paths, method="average", missing="drop", on_partition_error="drop")
    assert model.record.rows_dropped == 10
    assert_same_model(model, fit(paths[:3], method="average", missing="drop"))


def test_what_is_not_damage_is_refused_as_ever(tmp_path: Path) -> None:
    paths = write_files(tmp_path)
    damage.write(paths[1], damage.table(1).drop_columns(["b"]))
    with pytest.raises(InputError, match=r"part-1\.parquet lacks 'b'"):
        fit(paths, on_partition_error="drop")
    with pytest.raises(InputError, match="no target column"):
        fit(paths[2:], on_partition_error="drop", target="z")


def test_nothing_left_is_an_error(tmp_path: Path) -> None:
    for harm in (damage.no_footer, damage.hole):
        paths = write_files(tmp_path)
        for path in paths:
            harm(path)
        with pytest.raises(InputError, match=r"part-0\.parquet cannot be read"):
            fit(paths, on_partition_error="drop")


def test_too_little_left_is_an_error(tmp_path: Path) -> None:
    paths = write_files(tmp_path)
    damage.no_footer(paths[1])
    with pytest.raises(InputError, match="Only 3 of 4 files could be opened, fewer than min_partitions=4"):
        fit(paths, on_partition_error="drop", min_partitions=4)
    damage.hole(paths[2])
    with pytest.raises(InputError, match=r"Only 2 of 3 partitions arrived \(1 could not be read\), fewer than min"):
        fit(paths, on_partition_error="drop", min_partitions=3)
    assert fit(paths, on_partition_error="drop", min_partitions=2).record.row_count == 2 * damage.ROWS
    with pytest.raises(InputError, match="larger than the number of partitions, 2"):
        fit([paths[0], paths[3]], on_partition_error="drop", min_partitions=3)


def test_the_warning_and_the_file_of_the_model_name_it(tmp_path: Path) -> None:
    paths = write_files(tmp_path, count=6)
    for path in paths[1:]:
        damage.no_footer(path)
    with pytest.warns(PartsketchWarning, match=r"5 of 6 partitions were left out: 'part-1\.parquet' \(.*2 more"):
        model = ps.fit(
            [str(path) for path in paths], "y", method="partition", partition_by="file", on_partition_error="drop"
        )
    assert "certificate and its intervals are of the others alone" in "".join(model.record.warnings)
    model.save(tmp_path / "model.json")
    assert ps.load(tmp_path / "model.json").record == model.record


def test_rows_of_a_partition_by_order_that_cannot_be_used() -> None:
    """One value of the third of four partitions is not a number; the estimator is told to leave it out."""
    X = np.random.default_rng(0).normal(size=(400, 3))
    y = X @ [1.0, 2.0, 3.0] + np.random.default_rng(1).normal(size=400)
    spoilt = X.copy()
    spoilt[250, 1] = np.nan
    model = SketchedRegression("average", n_partitions=4)
    with pytest.raises(InputError, match="row 250"):
        model.fit(spoilt, y)
    model.set_params(on_partition_error="drop")
    with pytest.warns(PartsketchWarning, match=r"1 of 4 partitions was left out: '2' \(.*NaN.*row 250"):
        model.fit(spoilt, y)
    kept = np.r_[0:200, 300:400]
    other = SketchedRegression("average", n_partitions=3).fit(X[kept], y[kept])
    assert np.array_equal(model.coef_, other.coef_)
    assert model.certificate_ == other.certificate_
    assert model.model_.record.row_count == 300
    assert [part.name for part in model.model_.record.partitions] == ["0", "1", "3"]


@pytest.mark.parametrize("asked", [{"on_partition_error": "drop"}, {"deadline": 5}])
def test_only_partitions_that_lie_together_can_be_left_out(asked: dict[str, Any]) -> None:
    X = np.ones((100, 2))
    for method in ("exact", "whole"):
        with pytest.raises(InputError, match=f"method='{method}' has none"):
            SketchedRegression(method, **asked).fit(X, X[:, 0])
    with pytest.raises(InputError, match="partition_by='shuffle'"):
        SketchedRegression("average", partition_by="shuffle", **asked).fit(X, X[:, 0])
    with pytest.raises(InputError, match="partition_by='hospital'"):
        ps.fit("nowhere.csv", "y", method="stack", partition_by="hospital", **asked)
    with pytest.raises(InputError, match="name it instead of 'auto'"):
        ps.fit("nowhere.csv", "y", **asked)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"on_partition_error": "ignore"}, "choose 'raise' or 'drop'"),
        ({"deadline": 0}, "deadline is 0"),
        ({"deadline": -1.5}, "deadline is -1.5"),
        ({"deadline": float("nan")}, "deadline is nan"),
        ({"deadline": "soon"}, "deadline is 'soon'"),
        ({"min_partitions": 2}, "goes with deadline or with on_partition_error"),
        ({"min_partitions": 0, "deadline": 3}, "min_partitions is 0"),
        ({"min_partitions": 9, "deadline": 3}, "larger than the number of partitions, 8"),
    ],
)
def test_settings_that_make_no_sense(asked: dict[str, Any], sentence: str) -> None:
    X = np.ones((100, 2))
    with pytest.raises(InputError, match=sentence):
        SketchedRegression("average", **asked).fit(X, X[:, 0])


@pytest.mark.parametrize("asked", [{"on_partition_error": "drop"}, {"deadline": 5.0}])
def test_a_sketch_of_two_passes_lets_nothing_be_left_out(asked: dict[str, Any]) -> None:
    rows = np.random.default_rng(0).normal(size=(400, 4))
    with pytest.raises(InputError, match=r"reads the rows twice.*go with the other sketches"):
        ps.fit(rows, target="x3", method="partition", n_partitions=2, sketch="leverage_sample", **asked)
