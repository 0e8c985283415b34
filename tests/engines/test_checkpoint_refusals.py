"""A checkpoint is used for the same options, data and place only, and what is damaged in it is done again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import partsketch as ps
from partsketch import InputError
from partsketch.engines.checkpoint import open_checkpoint
from partsketch.sketches.base import get_sketch
from partsketch.sources.identity import data_identity
from tests.damage import write_files
from tests.engines.interrupted import Stops, fit, in_memory, paths
from tests.engines.test_local import MadeUpRows


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


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("name", ["notes.txt", "checkpoint.json"])
def test_a_folder_of_other_files_is_refused_and_stays_as_it_is(tmp_path: Path, name: str, seed: int | None) -> None:
    """Other programs keep a checkpoint.json too: with a seed it was taken for a damaged one of ours, and replaced."""
    files = paths(tmp_path / "data")
    other = tmp_path / "other" / name
    other.parent.mkdir()
    other.write_text('{"epoch": 12}')
    with pytest.raises(InputError, match=f"holds '{name}', which is not part of one; name a folder that is empty"):
        fit(files, checkpoint=other.parent, random_state=seed)
    assert [path.name for path in other.parent.iterdir()] == [name]
    assert other.read_text() == '{"epoch": 12}'


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


def test_data_that_nothing_is_known_of_are_refused(tmp_path: Path) -> None:
    table = in_memory("table", False)
    with pytest.raises(InputError, match="can be read again"):
        fit(table.to_reader(), target="x2", method="exact", checkpoint=tmp_path / "kept")


def test_a_source_of_another_kind_is_refused() -> None:
    with pytest.raises(InputError, match=r"cannot tell whether the data \(made-up rows\) have changed"):
        data_identity(MadeUpRows(100))


@settings(max_examples=10)
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


def test_a_folder_is_for_one_process_at_a_time(tmp_path: Path) -> None:
    with (
        open_checkpoint(tmp_path / "kept", {}, 0, get_sketch("triangular")),
        pytest.raises(InputError, match="in use by another process"),
        open_checkpoint(tmp_path / "kept", {}, 0, get_sketch("triangular")),
    ):
        pass
    with open_checkpoint(tmp_path / "kept", {}, 0, get_sketch("triangular")):
        pass


def test_a_link_to_a_folder_that_is_not_there_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("kept")
    with open_checkpoint(tmp_path / "link", {}, 0, get_sketch("triangular")):
        pass
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "kept" / "checkpoint.json").is_file()


def test_places_that_cannot_be_used(tmp_path: Path) -> None:
    rows = in_memory("array", False)
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(InputError, match=r"Cannot use .*file as a checkpoint: it is not a folder; name one\."):
        fit(rows, target="x2", partition_by="order", checkpoint=tmp_path / "file")
    with pytest.raises(InputError, match=r"Cannot use .* as a checkpoint: File name too long\."):
        fit(rows, target="x2", partition_by="order", checkpoint=tmp_path / ("long" * 100))
