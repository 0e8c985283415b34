"""What is finished is kept, and trusted only if everything is the same."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partsketch as ps
from partsketch import InputError, LocalEngine, SketchedRegression
from partsketch.common.files import machine
from partsketch.engines.checkpoint import open_checkpoint
from partsketch.engines.checkpoint_file import from_bytes, to_bytes
from partsketch.sketches.base import SEGMENT_ROWS, get_sketch, sketch_kinds
from partsketch.summaries.tasks import Piece, TaskResult
from tests import damage
from tests.damage import write_files
from tests.engines.interrupted import Stops, fit, in_memory, paths


@pytest.mark.parametrize("method", ["average", "partition", "stack"])
@pytest.mark.parametrize("after", [0, 1, 4])
def test_a_run_goes_on_where_it_stopped(tmp_path: Path, method: str, after: int) -> None:
    files = paths(tmp_path / "data")
    expected = fit(files, method=method)
    with pytest.raises(KeyboardInterrupt):
        fit(files, method=method, engine=(first := Stops(after)), checkpoint=tmp_path / "kept")
    model = fit(files, method=method, engine=(second := Stops()), checkpoint=tmp_path / "kept")
    assert second.asked == first.asked - after
    assert model.to_dict() == expected.to_dict()
    third = Stops()
    assert fit(files, method=method, engine=third, checkpoint=tmp_path / "kept").to_dict() == expected.to_dict()
    assert third.asked == -1, "nothing is left to do, so the engine is not asked"


@pytest.mark.parametrize("options", [{"method": "exact"}, {"method": "whole"}, {"partition_by": "shuffle"}], ids=str)
def test_partitions_whose_rows_do_not_lie_together(tmp_path: Path, options: dict[str, Any]) -> None:
    """Tasks are then segments of rows, each with rows of all partitions."""
    rows = np.random.default_rng(0).normal(size=(6 * SEGMENT_ROWS, 3)).astype(np.float32)
    options = {"partition_by": "order", "target": "x2", **options}
    with pytest.raises(KeyboardInterrupt):
        fit(rows, engine=Stops(4), checkpoint=tmp_path / "kept", **options)
    model = fit(rows, engine=(second := Stops()), checkpoint=tmp_path / "kept", **options)
    assert second.asked == 2
    assert model.to_dict() == fit(rows, **options).to_dict()


@pytest.mark.parametrize("sketch", [kind for kind in sketch_kinds() if kind != "gaussian"])
def test_every_sketch(tmp_path: Path, sketch: str) -> None:
    files = paths(tmp_path / "data")
    options = {"sketch": sketch, "sketch_size": 60}
    stops = Stops(None if sketch == "leverage_sample" else 2)
    if sketch == "leverage_sample":
        fit(files, engine=stops, checkpoint=tmp_path / "kept", **options)
    else:
        with pytest.raises(KeyboardInterrupt):
            fit(files, engine=stops, checkpoint=tmp_path / "kept", **options)
    again = fit(files, engine=Stops(), checkpoint=tmp_path / "kept", **options)
    assert again.to_dict() == fit(files, **options).to_dict()


@pytest.mark.parametrize("extension", ["csv", "feather", "npy"])
def test_every_format(tmp_path: Path, extension: str) -> None:
    files = [str(path) for path in write_files(tmp_path, extension, 4)]
    options = {"target": "x2"} if extension == "npy" else {}
    with pytest.raises(KeyboardInterrupt):
        fit(files, engine=Stops(2), checkpoint=tmp_path / "kept", **options)
    model = fit(files, engine=(second := Stops()), checkpoint=tmp_path / "kept", **options)
    assert second.asked == 2
    assert model.to_dict() == fit(files, **options).to_dict()


@pytest.mark.parametrize("extension", ["csv", "feather", "npy", "parquet"])
def test_borders_inside_files(tmp_path: Path, extension: str) -> None:
    """Three partitions of four files: their borders are not those of files, and tasks are cut there all the same."""
    files = [str(path) for path in write_files(tmp_path, extension, 4)]
    options: dict[str, Any] = {"partition_by": "order", "n_partitions": 3}
    options |= {"target": "x2"} if extension == "npy" else {}
    with pytest.raises(KeyboardInterrupt):
        fit(files, engine=(first := Stops(2)), checkpoint=tmp_path / "kept", **options)
    model = fit(files, engine=(second := Stops()), checkpoint=tmp_path / "kept", **options)
    assert (first.asked, second.asked) == (3, 1)
    assert model.to_dict() == fit(files, **options).to_dict()


def test_the_seed_is_taken_from_the_checkpoint(tmp_path: Path) -> None:
    files = paths(tmp_path / "data")
    with pytest.raises(KeyboardInterrupt):
        fit(files, random_state=None, engine=Stops(2), checkpoint=tmp_path / "kept")
    model = fit(files, random_state=None, engine=(second := Stops()), checkpoint=tmp_path / "kept")
    assert second.asked == 4
    assert model.record.seed == json.loads((tmp_path / "kept" / "checkpoint.json").read_text())["seed"]
    assert model.to_dict() == fit(files, random_state=model.record.seed).to_dict()


def test_the_estimator_and_its_labels(tmp_path: Path) -> None:
    frame = pd.DataFrame(in_memory("array", False), columns=["x0", "x1", "x2"])
    frame["site"] = np.arange(300) % 3
    model = SketchedRegression("average", partition_by="site", checkpoint=tmp_path / "kept", random_state=0)
    first = model.fit(frame, frame["x0"]).coef_
    assert np.array_equal(model.fit(frame, frame["x0"]).coef_, first)
    with pytest.raises(InputError, match="other data: labels differs"):
        model.fit(frame.assign(site=np.arange(300) // 100), frame["x0"])


def test_a_full_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("partsketch.engines.checkpoint.save_result", full)
    with pytest.raises(InputError, match=r"Cannot write to the checkpoint .*: No space left on device"):
        fit(in_memory("array", False), target="x2", partition_by="order", checkpoint=tmp_path)


def test_what_is_done_about_faults_may_change(tmp_path: Path) -> None:
    """A run that met a damaged file is started again with leave to leave it out, and does only the rest."""
    files = paths(tmp_path / "data")
    damage.hole(Path(files[4]))
    with pytest.raises(InputError, match=r"part-4\.parquet cannot be read"):
        fit(files, checkpoint=tmp_path / "kept", engine=LocalEngine(1))
    again = Stops()
    with pytest.warns(ps.PartsketchWarning, match=r"'part-4\.parquet'"):
        model = fit(files, checkpoint=tmp_path / "kept", on_partition_error="drop", engine=again)
    assert again.asked <= 2
    assert model.record.row_count == 5 * damage.ROWS


def pieces() -> st.SearchStrategy[Piece]:
    floats = st.floats(allow_nan=False)

    def arrays(rows: int, width: int) -> st.SearchStrategy[Any]:
        cells = st.lists(floats, min_size=rows * width, max_size=rows * width)
        return cells.map(lambda values: np.array(values).reshape(rows, width))

    return st.builds(
        Piece,
        partition=st.integers(0, 100),
        segment=st.integers(0, 2**40),
        matrices=st.tuples(st.integers(0, 3), st.integers(1, 3)).flatmap(lambda shape: st.tuples(arrays(*shape))),
        row_count=st.integers(0, 2**50),
        weight_sum=floats,
        target_range=arrays(2, 2),
        level=st.integers(0, 30),
    )


@given(st.lists(pieces(), max_size=3), st.lists(st.integers(0, 2**31), min_size=1), st.integers(0), st.integers(0))
def test_results_come_back_to_the_last_bit(made: list[Piece], tasks: list[int], dropped: int, seen: int) -> None:
    content = to_bytes("abc", tasks, TaskResult(tuple(made), dropped, seen))
    back = from_bytes(content, "abc")
    assert back is not None
    assert back[0] == tuple(tasks)
    assert (back[1].dropped, back[1].rows_seen) == (dropped, seen)
    assert to_bytes("abc", back[0], back[1]) == content
    assert from_bytes(content, "abd") is None, "of another fit"


def test_what_a_killed_writer_left_behind_is_cleared(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    # Of a process with a number that none can have.
    (kept / f".partsketch-{machine()}-99999999-{'0' * 16}.part").write_bytes(b"half a file")
    fit(in_memory("array", False), target="x2", partition_by="order", checkpoint=kept)
    assert sorted(path.name for path in kept.iterdir()) == ["checkpoint.json", "checkpoint.lock", "tasks-00000000.bin"]


def test_writing_is_rare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small tasks share a file; a slow disk is written to a twentieth of the time at most."""
    clock = [0.0]
    monkeypatch.setattr("partsketch.engines.checkpoint.time.monotonic", lambda: clock[0])
    written = []

    def slow_save(path: Path, *_: Any) -> None:
        written.append(clock[0])
        clock[0] += 2.0

    monkeypatch.setattr("partsketch.engines.checkpoint.save_result", slow_save)
    with open_checkpoint(tmp_path, {}, 0, get_sketch("triangular")) as checkpoint:
        for task in range(1000):
            clock[0] += 0.1
            checkpoint.keep([task], TaskResult((), 0, 1))
    assert written[0] == pytest.approx(0.5)
    assert np.diff(written[:-1]).min() >= 40
    assert len(written) <= 5
    assert time.monotonic() == clock[0]
