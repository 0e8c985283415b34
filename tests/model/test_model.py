"""The fitted model: its file, its predictions, its words when something is wrong."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

import partsketch as ps
from partsketch import InputError, Model
from partsketch.model.file import FILE_VERSION

METHODS = ["exact", "average", "partition", "stack", "whole"]


def table(rows: int = 200) -> Any:
    generator = np.random.default_rng(0)
    a, b = generator.normal(size=(2, rows))
    kind = np.array(["red", "green", "blå"])[np.arange(rows) % 3]
    y = a - 2 * b + (kind == "red") + generator.normal(size=rows)
    return pa.table({"a": a, "größe": b, "kind": kind, "y": y, "z": y**2})


def model(method: str = "partition", **options: Any) -> Model:
    values: dict[str, Any] = {"n_partitions": 2, "random_state": 2**64 - 1, **options}
    return ps.fit(table().drop_columns(["kind", "z"]), target="y", method=method, **values)


def assert_same(first: Model, second: Model) -> None:
    assert first.to_dict() == second.to_dict()
    for name in ("coefficients", "intercept", "partition_coefficients", "partition_intercepts"):
        mine, theirs = getattr(first, name), getattr(second, name)
        assert mine.dtype == theirs.dtype == np.float64
        assert mine.shape == theirs.shape
        assert mine.tobytes() == theirs.tobytes()
    assert first.record == second.record
    assert first.encoding == second.encoding


@pytest.mark.parametrize("method", METHODS)
def test_round_trip_is_bitwise(tmp_path: Path, method: str) -> None:
    first = model(method)
    first.save(tmp_path / "model.json")
    second = ps.load(tmp_path / "model.json")
    assert_same(first, second)
    second.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "model.json").read_bytes()
    assert json.loads((tmp_path / "model.json").read_text("utf-8"))["format"] == "partsketch model"


def test_round_trip_with_text_columns_and_several_targets(tmp_path: Path) -> None:
    first = ps.fit(table(), target=["y", "z"], encode=True, method="average", n_partitions=2)
    first.save(tmp_path / "model.json")
    second = ps.load(tmp_path / "model.json")
    assert_same(first, second)
    expected = first.predict(table())
    assert expected.shape == (200, 2)
    assert second.predict(table()).tobytes() == expected.tobytes()
    with pytest.raises(InputError, match="purple"):
        second.predict(pa.table({"a": [1.0], "größe": [1.0], "kind": ["purple"]}))


def test_odd_numbers_survive(tmp_path: Path) -> None:
    """Subnormal numbers, negative zero, the largest double: what JSON writes, JSON reads."""
    from dataclasses import replace

    odd, largest = np.array([[5e-324], [-0.0]]), np.array([1.7976931348623157e308])
    first = replace(
        model("exact"),
        coefficients=odd,
        intercept=largest,
        level=largest,
        partition_coefficients=odd[None],
        partition_intercepts=largest[None],
    )
    first.save(tmp_path / "model.json")
    assert_same(first, ps.load(tmp_path / "model.json"))


def test_every_changed_digit_is_noticed(tmp_path: Path) -> None:
    """Each digit of the file in turn, raised by one: an error, never another model.

    Two decimals may stand for one double when they differ in the seventeenth digit: then the model is the same.
    """
    path = tmp_path / "model.json"
    first = model("exact")
    first.save(path)
    text = path.read_bytes()
    positions = [i for i, byte in enumerate(text) if chr(byte).isdigit()]
    assert len(positions) > 200
    refused = 0
    for position in positions:
        changed = bytearray(text)
        changed[position] = ord("0") + (changed[position] - ord("0") + 1) % 10
        path.write_bytes(bytes(changed))
        if json.loads(changed) != json.loads(text):
            refused += 1
            with pytest.raises(InputError):
                ps.load(path)
        else:
            assert_same(first, ps.load(path))
    # How many seventeenth digits change nothing hangs on the coefficients, whose last bits hang on the processor.
    assert refused > 0.9 * len(positions)


def test_every_flipped_byte_gives_the_same_model_or_an_error(tmp_path: Path) -> None:
    """White space may change without harm; nothing else may."""
    path = tmp_path / "model.json"
    first = model("exact")
    first.save(path)
    text = path.read_bytes()
    survivors = 0
    for position in range(0, len(text), 5):
        changed = bytearray(text)
        changed[position] ^= 0x04
        path.write_bytes(bytes(changed))
        try:
            second = ps.load(path)
        except InputError:
            continue
        survivors += 1
        assert_same(first, second)
    assert survivors < len(text) / 4


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not JSON"),
        (b"\x00\xff\xfe", "not JSON"),
        (b"[1, 2", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[1, 2]", "not a partsketch model"),
        (b'{"format": "something else"}', "not a partsketch model"),
        (b'{"format": "partsketch model", "version": 99}', "model version 99.*update"),
        (b'{"format": "partsketch model"}', "'version' is not a whole number"),
        (b'{"format": "partsketch model", "version": "1"}', "'version' is not a whole number"),
        (b'{"format": "partsketch model", "version": 1}', "model version 1.*fit the model again"),
        (b'{"format": "partsketch model", "version": %d}' % FILE_VERSION, "damaged"),
    ],
)
def test_files_that_are_not_models(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "model.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        ps.load(path)


def test_truncated_files(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    model().save(path)
    text = path.read_bytes()
    for length in range(0, len(text) - 2, 37):
        path.write_bytes(text[:length])
        with pytest.raises(InputError):
            ps.load(path)


def test_a_right_checksum_around_wrong_contents(tmp_path: Path) -> None:
    changes: list[dict[str, Any]] = [
        {"coefficients": [[1.0]]},
        {"record": {}},
        {"record": None},
        {"encoding": 7},
        {"target_names": None},
        {"intercept": ["a"]},
    ]
    path = tmp_path / "model.json"
    for change in changes:
        values = {**model("exact").to_dict(), **change}
        canonical = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        values["checksum"] = hashlib.sha256(canonical.encode()).hexdigest()
        path.write_text(json.dumps(values), "utf-8")
        with pytest.raises(InputError, match="damaged"):
            ps.load(path)


def test_nothing_is_written_when_it_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="no folder"):
        model().save(tmp_path / "nowhere" / "model.json")
    with pytest.raises(InputError, match="is a folder"):
        model().save(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="Cannot read"):
        ps.load(tmp_path / "model.json")
    path = tmp_path / "model.json"
    model("exact").save(path)
    before = path.read_bytes()
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises((OSError, InputError)):
        model("average").save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.json"]


@pytest.mark.parametrize("method", METHODS)
def test_predictions_of_arrays_frames_and_files(tmp_path: Path, method: str) -> None:
    fitted = model(method)
    data = table()
    a, b = data["a"].to_numpy(), data["größe"].to_numpy()
    expected = fitted.intercept[0] + a * fitted.coefficients[0, 0] + b * fitted.coefficients[1, 0]
    pq.write_table(data, tmp_path / "rows.parquet")
    frame = data.to_pandas()
    forms = [
        data,
        frame,
        frame[["größe", "y", "a"]],  # another order, and a column that is not needed
        pl.DataFrame(frame),
        tmp_path / "rows.parquet",
        data.to_reader(max_chunksize=7),
    ]
    for form in forms:
        got = fitted.predict(form)
        assert got.shape == (200,)
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)


def test_predictions_of_arrays_by_position() -> None:
    data = np.random.default_rng(1).normal(size=(100, 3))
    fitted = ps.fit(data, target="x2", method="exact")
    expected = data[:, :2] @ fitted.coefficients[:, 0] + fitted.intercept[0]
    np.testing.assert_allclose(fitted.predict(data), expected, atol=1e-13)
    np.testing.assert_allclose(fitted.predict(data[:, :2]), expected, atol=1e-13)
    np.testing.assert_allclose(fitted.predict(sparse.csr_array(data[:, :2])), expected, atol=1e-13)


def test_prediction_blocks_are_put_together() -> None:
    fitted = model("exact")
    source = fitted.open_for_prediction(table())
    parts = list(fitted.predict_blocks(source, block_rows=33))
    assert np.concatenate([numbers for numbers, _ in parts]).tolist() == list(range(200))
    np.testing.assert_allclose(
        np.concatenate([values for _, values in parts])[:, 0], fitted.predict(table()), rtol=0, atol=1e-13
    )


def test_prediction_needs_the_features() -> None:
    fitted = model("exact")
    with pytest.raises(InputError, match="größe"):
        fitted.predict(pd.DataFrame({"a": [1.0]}))
    holes = pd.DataFrame({"a": [1.0, np.nan, 2.0], "größe": [1.0, 1.0, 1.0]})
    with pytest.raises(InputError, match="'a'"):
        fitted.predict(holes)
    assert fitted.predict(holes, missing="drop").shape == (2,)
