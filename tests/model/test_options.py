"""Save, load and predict under every option of a fit: the same model, the same predictions, by hand as well."""

from __future__ import annotations

import csv
import warnings
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import partsketch as ps
from partsketch import InputError, Model, PartsketchWarning
from partsketch.model.predict import write_predictions
from tests.by_hand import judged

ROWS = 240
LEVELS = {"kind": ("blå", "green", "red"), "size": ("large", "small")}


@cache
def table() -> pa.Table:
    draw = np.random.default_rng(12)
    a, b = draw.normal(size=(2, ROWS))
    kind = np.array(LEVELS["kind"])[np.arange(ROWS) % 3]
    size = np.array(LEVELS["size"])[np.arange(ROWS) // 2 % 2]
    y = a - 2 * b + (kind == "red") + 3 * (size == "small") + 5 + draw.normal(size=ROWS)
    site = np.array(["n", "s"])[np.arange(ROWS) // 120]
    weights = draw.uniform(0.5, 2, ROWS)
    return pa.table(
        {"a": a, "kind": kind, "b": b, "size": size, "y": y, "z": y**2 - a, "w": weights, "site": site}
    )  # fmt: skip


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "no intercept": {"fit_intercept": False},
    "text": {"features": ["a", "kind", "b", "size"], "encode": True},
    "text, no intercept": {"features": ["a", "kind", "b"], "encode": True, "fit_intercept": False},
    "several targets": {"target": ["y", "z"]},
    "several targets, text, no intercept": {
        "target": ["y", "z"], "features": ["size", "a"], "encode": True, "fit_intercept": False,
    },
    "weights": {"weights": "w"},
    "ridge": {"alpha": 3.0},
    "ridge, weights, no intercept": {"alpha": 3.0, "weights": "w", "fit_intercept": False},
    "by column": {"partition_by": "site"},
    "by shuffle": {"partition_by": "shuffle"},
    "remainder": {"remainder": "drop", "n_partitions": 7},
    "one column": {"features": ["b"]},
}  # fmt: skip
METHODS: dict[str, dict[str, Any]] = {
    "exact": {"method": "exact"},
    "average": {"method": "average"},
    "inverse variance": {"method": "average", "averaging": "inverse_variance"},
    "partition": {"method": "partition"},
    "stack": {"method": "stack", "sketch": "sparse_sign", "sparsity": 3},
    "whole": {"method": "whole", "sketch": "srht"},
}


def fitted(chosen: dict[str, Any]) -> Model:
    values: dict[str, Any] = {
        "target": "y", "features": ["a", "b"], "n_partitions": 2, "random_state": 2**64 - 1, **chosen,
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PartsketchWarning)
        return ps.fit(table(), **values)


def by_hand(model: Model, data: pa.Table, features: list[str], drop_first: bool) -> Any:
    """Predictions from the coefficients and the levels, one indicator after the other."""
    columns = []
    for name in features:
        if name in LEVELS:
            columns += [
                (np.array(data[name].to_pylist()) == level).astype(float) for level in LEVELS[name][int(drop_first) :]
            ]
        else:
            columns.append(data[name].to_numpy())
    return np.column_stack(columns) @ model.coefficients + model.intercept


def cases() -> list[tuple[str, str]]:
    excluded = {"ridge", "ridge, weights, no intercept"}
    return [(m, o) for m, o in product(METHODS, OPTIONS) if not (m == "inverse variance" and o in excluded)]


@pytest.mark.parametrize(("method", "options"), cases())
def test_a_model_that_is_loaded_is_the_model_that_was_saved(method: str, options: str, tmp_path: Path) -> None:
    chosen = {**METHODS[method], **OPTIONS[options]}
    model = fitted(chosen)
    model.save(tmp_path / "model.json")
    again = ps.load(tmp_path / "model.json")
    assert again.record == model.record
    assert again.encoding == model.encoding
    assert again.certificates == model.certificates
    assert again.to_dict() == model.to_dict()
    for name in ("coefficients", "intercept", "partition_coefficients", "partition_intercepts"):
        assert np.array_equal(getattr(again, name), getattr(model, name))
        assert getattr(again, name).shape == getattr(model, name).shape
    intercept = chosen.get("fit_intercept", True)
    assert again.column_names == (("(intercept)",) if intercept else ()) + again.feature_names
    if not intercept:
        assert not again.intercept.any()
    expected = by_hand(model, table(), chosen.get("features", ["a", "b"]), intercept)
    predictions = again.predict(table()).reshape(ROWS, -1)
    assert np.array_equal(predictions, model.predict(table()).reshape(ROWS, -1))
    np.testing.assert_allclose(predictions, expected, rtol=0, atol=1e-12)
    assert again.predict(table()).ndim == (2 if len(again.target_names) == 2 else 1)


def test_text_columns_with_and_without_an_intercept_fit_what_indicators_fit() -> None:
    """Beside an intercept the first level is the reference; without one every level has its indicator."""
    kinds = np.array(table()["kind"].to_pylist())
    a, y = table()["a"].to_numpy(), table()["y"].to_numpy()
    for intercept in (True, False):
        levels = LEVELS["kind"][int(intercept) :]
        model = fitted({"method": "exact", "features": ["a", "kind"], "encode": True, "fit_intercept": intercept})
        assert model.encoding.drop_first is intercept
        assert model.feature_names == ("a", *(f"kind={level}" for level in levels))
        X = np.column_stack([a, *[(kinds == level) for level in levels]]).astype(float)
        expected = judged(X, y, intercept=intercept).coefficients
        np.testing.assert_allclose(model.column_coefficients[:, 0], expected, rtol=1e-9)


def test_the_record_tells_what_was_asked(tmp_path: Path) -> None:
    model = fitted({"method": "partition", "sketch": "sparse_sign", "sparsity": 2, "sketch_size": 30, "weights": "w",
                    "averaging": "inverse_variance", "partition_by": "site"})  # fmt: skip
    record = model.record
    asked = {
        "method": "partition", "sketch": "sparse_sign", "sparsity": 2, "sketch_size": 30, "fit_intercept": True,
        "averaging": "inverse_variance", "partition_by": "site", "alpha": 0.0, "engine": "local",
    }  # fmt: skip
    assert {name: record.options[name] for name in asked} == asked
    assert (record.seed, record.sketch_size, record.row_count) == (2**64 - 1, 30, ROWS)
    assert record.weight_sum == pytest.approx(float(np.sum(table()["w"].to_numpy())))
    assert [(part.name, part.row_count) for part in record.partitions] == [("n", 120), ("s", 120)]
    dropped = fitted({"method": "average", "n_partitions": 7, "remainder": "drop"}).record
    assert (dropped.rows_left_out, dropped.row_count) == (ROWS % 7, ROWS - ROWS % 7)
    assert dropped.rows_dropped == 0


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".feather"])
def test_predictions_in_files_have_the_numbers_of_their_rows(ending: str, tmp_path: Path) -> None:
    """Two files of 40,000 rows and a bit: blocks begin at many rows, and holes are in most of them."""
    model = fitted({"method": "exact", "features": ["a", "b"]})
    draw = np.random.default_rng(0)
    rows = 80_003
    a, b = draw.normal(size=(2, rows))
    gone = np.zeros(rows, dtype=bool)
    gone[[0, 7, 39_999, 40_000, 65_535, 65_536, 70_000, rows - 1]] = True
    data = pa.table({"a": pa.array(a, mask=gone), "b": b})
    pq.write_table(data.slice(0, 40_000), tmp_path / "1.parquet")
    pq.write_table(data.slice(40_000), tmp_path / "2.parquet", row_group_size=9_000)
    paths = [str(tmp_path / "1.parquet"), str(tmp_path / "2.parquet")]
    output = tmp_path / f"out{ending}"
    assert write_predictions(model, paths, output, missing="drop") == rows - 8
    readers = {".parquet": pq.read_table, ".csv": pyarrow.csv.read_csv, ".feather": pyarrow.feather.read_table}
    found = readers[ending](output)
    assert found.column_names == ["row", "prediction"]
    assert found["row"].to_numpy().tolist() == np.flatnonzero(~gone).tolist()
    expected = np.column_stack([a, b])[~gone] @ model.coefficients[:, 0] + model.intercept[0]
    np.testing.assert_allclose(found["prediction"].to_numpy(), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.predict(data, missing="drop"), expected, rtol=0, atol=1e-12)


def test_blocks_of_predictions_go_on_counting() -> None:
    model = fitted({"method": "exact"})
    parts = list(model.predict_blocks(model.open_for_prediction(table()), block_rows=64))
    assert [int(numbers[0]) for numbers, _ in parts] == [0, 64, 128, 192]
    assert np.concatenate([numbers for numbers, _ in parts]).tolist() == list(range(ROWS))


def test_predictions_of_several_targets_are_named(tmp_path: Path) -> None:
    model = fitted({"method": "exact", "target": ["y", "z"]})
    write_predictions(model, table(), tmp_path / "out.csv")
    with (tmp_path / "out.csv").open() as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["prediction_y", "prediction_z"]
    np.testing.assert_allclose(np.array(rows[1:], dtype=float), model.predict(table()), rtol=1e-12)


def test_models_of_another_encoding_are_refused(tmp_path: Path) -> None:
    """A level that the model does not know, and a column that is not there."""
    model = fitted({"method": "exact", "features": ["a", "kind"], "encode": True})
    model.save(tmp_path / "model.json")
    again = ps.load(tmp_path / "model.json")
    with pytest.raises(InputError, match="purple"):
        again.predict(pa.table({"a": [1.0], "kind": ["purple"]}))
    with pytest.raises(InputError, match="kind"):
        again.predict(pa.table({"a": [1.0]}))
    one = again.predict(pa.table({"a": [2.0, 2.0], "kind": ["blå", "red"]}))
    np.testing.assert_allclose(one[0], 2 * model.coefficients[0, 0] + model.intercept[0])
    np.testing.assert_allclose(one[1] - one[0], model.coefficients[2, 0])


def test_aliased_columns_and_partitions_left_out_survive_the_file(tmp_path: Path) -> None:
    twice = table().append_column("b2", table()["b"])
    with pytest.warns(PartsketchWarning, match="'b2' is aliased"):
        model = ps.fit(twice, target="y", features=["a", "b", "b2"], method="exact")
    assert model.record.aliased == (("b2", ("b",)),)
    model.save(tmp_path / "model.json")
    assert ps.load(tmp_path / "model.json").record == model.record
    for number in range(3):
        pq.write_table(table().slice(80 * number, 80), tmp_path / f"{number}.parquet")
    (tmp_path / "1.parquet").write_bytes(b"PAR1 nothing")
    with pytest.warns(PartsketchWarning, match="1.parquet"):
        model = ps.fit(str(tmp_path / "*.parquet"), target="y", features=["a", "b"], method="average",
                       partition_by="file", on_partition_error="drop")  # fmt: skip
    assert [part.name for part in model.record.partitions_left_out] == ["1.parquet"]
    assert [part.name for part in model.record.partitions] == ["0.parquet", "2.parquet"]
    model.save(tmp_path / "model.json")
    assert ps.load(tmp_path / "model.json").record == model.record
