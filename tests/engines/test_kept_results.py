"""Files of finished tasks, one by one: what they hold comes back, and nothing of another fit, or twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import partsketch as ps
from partsketch import InputError
from partsketch.engines.checkpoint import open_checkpoint, recorded_seed
from partsketch.engines.checkpoint_file import from_bytes, save_result, to_bytes
from partsketch.sketches.base import Merging
from partsketch.summaries.tasks import Piece, TaskResult

IDENTITY: dict[str, dict[str, Any]] = {"options": {"alpha": 1.0, "names": ("a", "b")}, "data": {"digest": "x"}}


def result(number: int) -> TaskResult:
    """Numbers that single precision does not hold, a piece that is merged, and rows that were dropped."""
    matrix = np.array([[1 / 3 + number, -0.0], [5e-324, 1e308]])
    piece = Piece(2, 4 + number, (matrix,), 7, 0.1 + number, np.array([[-1 / 3], [2 / 3]]), level=3)
    return TaskResult((piece,), dropped=5, rows_seen=12)


def assert_same(one: TaskResult, other: TaskResult) -> None:
    assert (one.dropped, one.rows_seen, len(one.pieces)) == (other.dropped, other.rows_seen, len(other.pieces))
    for mine, theirs in zip(one.pieces, other.pieces, strict=True):
        assert (mine.partition, mine.segment, mine.level) == (theirs.partition, theirs.segment, theirs.level)
        assert (mine.row_count, mine.weight_sum) == (theirs.row_count, theirs.weight_sum)
        assert mine.matrices[0].tobytes() == theirs.matrices[0].tobytes()
        assert np.array_equal(mine.target_range, theirs.target_range)


def test_a_result_comes_back_for_its_own_fit_only() -> None:
    data = to_bytes("this fit", [3, 4], result(0))
    found = from_bytes(data, "this fit")
    assert found is not None
    assert found[0] == (3, 4)
    assert_same(found[1], result(0))
    assert from_bytes(data, "another fit") is None
    assert from_bytes(data[:-1] + bytes([data[-1] ^ 1]), "this fit") is None


def test_tasks_are_taken_once_and_only_if_they_exist(tmp_path: Path) -> None:
    with open_checkpoint(tmp_path, IDENTITY, 7, Merging()) as checkpoint:
        fingerprint = checkpoint.fingerprint
        for name, tasks in (("00000000", [0, 1]), ("00000001", [1, 2]), ("00000003", [3]), ("00000009", [9])):
            save_result(tmp_path / f"tasks-{name}.bin", fingerprint, tasks, result(tasks[0]))
        save_result(tmp_path / "tasks-00000004.bin", "another fit", [4], result(4))
        found = list(checkpoint.load(5))
    assert [outcome.tasks for outcome in found] == [(0, 1), (3,)]
    assert found[1].result is not None
    assert_same(found[1].result, result(3))


def test_what_is_kept_is_written_with_all_its_tasks(tmp_path: Path) -> None:
    with open_checkpoint(tmp_path, IDENTITY, 7, Merging()) as checkpoint:
        checkpoint.keep([2], result(0))
        checkpoint.keep([0], result(8))
    assert recorded_seed(tmp_path) == 7
    assert recorded_seed(tmp_path / "nowhere") is None
    with open_checkpoint(tmp_path, IDENTITY, 9, Merging()) as checkpoint:
        (outcome,) = checkpoint.load(3)
    assert outcome.tasks == (0, 2)
    assert outcome.result is not None
    assert (outcome.result.dropped, outcome.result.rows_seen) == (10, 24)
    assert recorded_seed(tmp_path) == 7


def test_a_folder_of_another_fit_and_a_damaged_one_are_refused(tmp_path: Path) -> None:
    with open_checkpoint(tmp_path, IDENTITY, 7, Merging()):
        pass
    other = {**IDENTITY, "options": {**IDENTITY["options"], "alpha": 2.0}}
    with (
        pytest.raises(InputError, match=r"alpha differs \(1.0 then, 2.0 now\)"),
        open_checkpoint(tmp_path, other, 7, Merging()),
    ):
        pass
    with (
        pytest.raises(InputError, match="digest differs"),
        open_checkpoint(tmp_path, {**IDENTITY, "data": {"digest": "y"}}, 7, Merging()),
    ):
        pass
    text = (tmp_path / "checkpoint.json").read_text()
    (tmp_path / "checkpoint.json").write_text(text.replace('"seed": 7', '"seed": 8'))
    with pytest.raises(InputError, match=r"checkpoint\.json is missing or cut short"):
        recorded_seed(tmp_path)


def test_every_option_and_column_that_matters_tells_fits_apart(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    # A file is known by its name, size and time: which columns of it are used is another question.
    pq.write_table(pa.table({name: draw.normal(size=60) for name in ("a", "b", "y", "w")}), tmp_path / "rows.parquet")
    table = tmp_path / "rows.parquet"
    asked: dict[str, Any] = {"target": "y", "features": ["a"], "method": "stack", "n_partitions": 2,
                             "random_state": 1, "sketch_size": 12, "checkpoint": tmp_path / "kept"}  # fmt: skip
    first = ps.fit(table, **asked)
    assert np.array_equal(ps.fit(table, **asked).coefficients, first.coefficients)
    changes: list[dict[str, Any]] = [
        {"features": ["b"]}, {"weights": "w"}, {"alpha": 1.0}, {"method": "partition"}, {"target": "b"},
        {"sketch_size": 13}, {"fit_intercept": False}, {"n_partitions": 3}, {"random_state": 2},
    ]  # fmt: skip
    for change in changes:
        with pytest.raises(InputError, match="was made with other"):
            ps.fit(table, **{**asked, **change})
    ps.fit(table, **{**asked, "on_partition_error": "drop", "deadline": 100.0})
