"""What is finished is kept, and trusted only if everything is the same."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import partsketch as ps
from partsketch import InputError, LocalEngine, SketchedRegression
from partsketch.common.files import machine
from partsketch.engines.base import Engine, Outcomes
from partsketch.engines.checkpoint import open_checkpoint
from partsketch.engines.checkpoint_file import from_bytes, to_bytes
from partsketch.sketches.base import SEGMENT_ROWS, get_sketch, sketch_kinds
from partsketch.sources.base import Source
from partsketch.sources.identity import data_identity
from partsketch.summaries.tasks import PassRequest, Piece, Task, TaskResult
from tests import damage
from tests.damage import write_files
from tests.engines.test_local import MadeUpRows


class Stops(Engine):
    """The local engine, which is interrupted after some outcomes and remembers what it was asked to do."""

    name = "local"

    def __init__(self, after: int | None = None) -> None:
        self.after, self.asked = after, -1

    def run(
        self, source: Source, request: PassRequest, tasks: Sequence[Task], deadline: float | None = None
    ) -> Outcomes:
        self.asked = len(tasks)
        for number, outcome in enumerate(LocalEngine(1).run(source, request, tasks)):
            if number == self.after:
                raise KeyboardInterrupt
            yield outcome


def fit(data: Any, **options: Any) -> ps.Model:
    given = {"target": "y", "partition_by": "file", "method": "partition", "random_state": 3, **options}
    return ps.fit(data, **given)


def paths(folder: Path, count: int = 6) -> list[str]:
    folder.mkdir(exist_ok=True)
    return [str(path) for path in write_files(folder, count=count)]


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


@pytest.mark.parametrize("damage", ["cut", "empty", "gone", "changed"])
def test_a_lost_manifest_without_a_seed_is_an_error(tmp_path: Path, damage: str) -> None:
    """The seed is lost with it, so going on would silently begin anew; with the seed, what is kept is used."""
    write_files(tmp_path)
    kept, data = tmp_path / "kept", str(tmp_path / "part-*.parquet")
    options: dict[str, Any] = {"target": "y", "method": "partition", "partition_by": "file", "checkpoint": kept}
    first = ps.fit(data, **options)
    manifest = kept / "checkpoint.json"
    content = manifest.read_bytes()
    changed = {"cut": content[:-40], "empty": b"", "changed": content.replace(b'"seed": ', b'"seed": 1')}
    if damage == "gone":
        manifest.unlink()
    else:
        manifest.write_bytes(changed[damage])
    before = {path: path.read_bytes() for path in kept.iterdir()}
    with pytest.raises(InputError, match=r"is damaged: its checkpoint\.json is missing or cut short.*--seed"):
        ps.fit(data, **options)
    assert {path: path.read_bytes() for path in kept.iterdir()} == before
    again = ps.fit(data, **options, random_state=first.record.seed)
    assert again.to_dict() == first.to_dict()


def test_other_options_are_refused(tmp_path: Path) -> None:
    files = paths(tmp_path / "data")
    fit(files, checkpoint=tmp_path / "kept")
    others: list[tuple[dict[str, Any], str]] = [
        ({"random_state": 4}, r"options: seed differs \(3 then, 4 now\)"),
        ({"method": "average"}, "options: method differs"),
        ({"sketch_size": 50}, r"options: sketch_size differs \(None then, 50 now\)"),
        ({"partition_by": "order"}, "options: partition_by differs"),
        ({"alpha": 1.0}, "options: alpha differs"),
        ({"averaging": "inverse_variance"}, "options: averaging differs"),
        ({"fit_intercept": False}, "options: fit_intercept differs"),
        ({"features": ["a"]}, "columns: features differs"),
        ({"features": ["b", "a", "w"]}, "columns: features differs"),
        ({"target": "a"}, "columns: "),
        ({"missing": "drop"}, "columns: missing differs"),
    ]
    fit(files, checkpoint=tmp_path / "weighted", features=["a", "b"], weights="w")
    with pytest.raises(InputError, match="weighted was made with other columns: weights differs"):
        fit(files, checkpoint=tmp_path / "weighted", features=["a", "b"])
    for changes, sentence in others:
        with pytest.raises(InputError, match=f"kept was made with other {sentence}.*or another folder"):
            fit(files, checkpoint=tmp_path / "kept", **changes)


def test_other_data_are_refused(tmp_path: Path) -> None:
    files = paths(tmp_path / "data")
    fit(files, checkpoint=tmp_path / "kept")
    with pytest.raises(InputError, match=r"other data: file part-5\.parquet differs"):
        fit(files[:5], checkpoint=tmp_path / "kept")
    third = Path(files[2])
    before = third.stat()
    os.utime(third, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    with pytest.raises(InputError, match=r"other data: file part-2\.parquet differs"):
        fit(files, checkpoint=tmp_path / "kept")
    content = bytearray(third.read_bytes())
    content[1000] ^= 1
    third.write_bytes(bytes(content))
    os.utime(third, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (third.stat().st_size, third.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    with pytest.raises(InputError, match=r"other data: file part-2\.parquet differs"):
        fit(files, checkpoint=tmp_path / "kept")
    content[1000] ^= 1
    third.write_bytes(bytes(content))
    os.utime(third, ns=(before.st_atime_ns, before.st_mtime_ns))
    fit(files, checkpoint=tmp_path / "kept")


def in_memory(kind: str, change: bool) -> Any:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 3)).round(3)
    values[150, 1] += change
    if kind == "array":
        return values
    frame = pd.DataFrame(values, columns=["x0", "x1", "x2"])
    if kind == "frame":
        return frame
    if kind == "sparse":
        from scipy import sparse

        return sparse.csr_array(values)
    if kind == "structured":
        return frame.to_records(index=False)
    table = pa.Table.from_pandas(frame)
    return table if kind == "table" else pa.concat_tables([table[:120], table[120:]])


@pytest.mark.parametrize("kind", ["array", "frame", "sparse", "structured", "table", "chunked table"])
def test_data_in_memory_are_known_by_their_content(tmp_path: Path, kind: str) -> None:
    options = {"target": "x2", "partition_by": "order", "checkpoint": tmp_path / "kept", "n_partitions": 4}
    expected = fit(in_memory(kind, False), **options).to_dict()
    again = Stops()
    assert fit(in_memory(kind, False), engine=again, **options).to_dict() == expected
    assert again.asked == -1
    with pytest.raises(InputError, match="other data: content differs;"):
        fit(in_memory(kind, True), **options)
    if "table" in kind:
        fit(in_memory("table", False), **options)
        fit(in_memory("chunked table", False), **options)


def test_the_estimator_and_its_labels(tmp_path: Path) -> None:
    frame = pd.DataFrame(in_memory("array", False), columns=["x0", "x1", "x2"])
    frame["site"] = np.arange(300) % 3
    model = SketchedRegression("average", partition_by="site", checkpoint=tmp_path / "kept", random_state=0)
    first = model.fit(frame, frame["x0"]).coef_
    assert np.array_equal(model.fit(frame, frame["x0"]).coef_, first)
    with pytest.raises(InputError, match="other data: labels differs"):
        model.fit(frame.assign(site=np.arange(300) // 100), frame["x0"])


def test_data_that_nothing_is_known_of_are_refused(tmp_path: Path) -> None:
    table = in_memory("table", False)
    with pytest.raises(InputError, match="can be read again"):
        fit(table.to_reader(), target="x2", method="exact", checkpoint=tmp_path / "kept")


def test_a_source_of_another_kind_is_refused() -> None:
    with pytest.raises(InputError, match=r"cannot tell whether the data \(made-up rows\) have changed"):
        data_identity(MadeUpRows(100))


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


@settings(max_examples=40)
@given(st.data())
def test_damaged_files_are_never_read_as_good(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Bytes of the files of a checkpoint are changed, cut off or added: what they held is done again."""
    folder = tmp_path_factory.mktemp("damaged")
    rows = in_memory("array", False)
    options = {"target": "x2", "partition_by": "order", "n_partitions": 6, "checkpoint": folder}
    expected = fit(rows, **{**options, "checkpoint": None}).to_dict()
    for after in (2, 2):
        with pytest.raises(KeyboardInterrupt):
            fit(rows, engine=Stops(after), **options)
    victims = sorted(folder.glob("*.bin"))
    assert len(victims) == 2
    victim = data.draw(st.sampled_from([*victims, folder / "checkpoint.json"]))
    content = bytearray(victim.read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    match data.draw(st.sampled_from(["flip", "cut", "add", "empty", "zeros"])):
        case "flip":
            content[position] ^= 1 << data.draw(st.integers(0, 7))
        case "cut":
            del content[position:]
        case "add":
            content[position:position] = b"x"
        case "empty":
            content.clear()
        case "zeros":
            content[position:] = bytes(len(content) - position)
            content.append(0)
    victim.write_bytes(bytes(content))
    again = Stops()
    assert fit(rows, engine=again, **options).to_dict() == expected
    assert again.asked == (4 if victim in victims else 2)
    assert fit(rows, engine=(last := Stops()), **options).to_dict() == expected
    assert last.asked == -1


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


def test_a_folder_is_for_one_process_at_a_time(tmp_path: Path) -> None:
    with (
        open_checkpoint(tmp_path / "kept", {}, 0, get_sketch("triangular")),
        pytest.raises(InputError, match="in use by another process"),
        open_checkpoint(tmp_path / "kept", {}, 0, get_sketch("triangular")),
    ):
        pass
    with open_checkpoint(tmp_path / "kept", {}, 0, get_sketch("triangular")):
        pass


def test_places_that_cannot_be_used(tmp_path: Path) -> None:
    rows = in_memory("array", False)
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(InputError, match=r"Cannot use .*file as a checkpoint"):
        fit(rows, target="x2", partition_by="order", checkpoint=tmp_path / "file")


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
