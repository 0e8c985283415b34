"""Files are written whole or not at all, never over an input, and what killed processes left is removed."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from partsketch.common import files
from partsketch.common.errors import InputError
from partsketch.common.files import atomic_path, check_output, write_atomically


@pytest.fixture(autouse=True)
def untidied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "tidied", {})


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to("target")
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "target"]


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "new", b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), atomic_path(path) as temporary:
        assert temporary.write_bytes(b"half") / 0
    with pytest.raises(InputError, match=r"Cannot write .*file: No space left on device\."), atomic_path(path):
        raise OSError(28, "No space left on device")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_file_and_folder_are_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    flush, replace = files.flush_to_disk, os.replace

    def watched_flush(path: Path) -> None:
        order.append("folder" if path.is_dir() else "file")
        flush(path)

    def watched_replace(old: Path, new: Path) -> None:
        order.append("rename")
        replace(old, new)

    monkeypatch.setattr(files, "flush_to_disk", watched_flush)
    monkeypatch.setattr(os, "replace", watched_replace)
    write_atomically(tmp_path / "file", b"new")
    assert order == ["file", "rename", "folder"]


@pytest.mark.parametrize("way", ["same", "dotted", "symlink", "hard link", "link to folder"])
def test_an_input_is_never_an_output(tmp_path: Path, way: str) -> None:
    data = tmp_path / "data"
    data.write_bytes(b"rows")
    output = tmp_path / "out"
    if way == "same":
        output = data
    elif way == "dotted":
        output = tmp_path / ".." / tmp_path.name / "data"
    elif way == "symlink":
        output.symlink_to(data)
    elif way == "hard link":
        output.hardlink_to(data)
    else:
        (tmp_path / "folder").symlink_to(tmp_path)
        output = tmp_path / "folder" / "data"
    with pytest.raises(InputError, match="it is one of the inputs"):
        write_atomically(output, b"new", inputs=[data])
    assert data.read_bytes() == b"rows"
    check_output(tmp_path / "other", [data])


def test_what_is_not_a_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, kind in ((tmp_path, "a folder"), (tmp_path / "pipe", "a named pipe"), (Path("/dev/null"), "a device")):
        with pytest.raises(InputError, match=f"it is {kind}; name a file"):
            check_output(path)
    with pytest.raises(InputError, match="there is no folder"):
        check_output(tmp_path / "no" / "file")
    with pytest.raises(InputError, match=r"File name too long\.$"):
        check_output(tmp_path / ("x" * 300))
    with pytest.raises(InputError, match=r"x\\xff: its name is not UTF-8"):
        check_output(tmp_path / "x\udcff")
    with pytest.raises(InputError, match="null character"):
        check_output("a\0b")
    with pytest.raises(InputError, match="is not a folder"):
        check_output(tmp_path / "pipe" / "file")


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    program = (
        "import os, sys\nfrom pathlib import Path\nfrom partsketch.common.files import atomic_path\n"
        "with atomic_path(Path(sys.argv[1])) as path:\n    path.write_bytes(b'half')\n    os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(tmp_path / "file")], check=False)
    assert killed.returncode == -9
    (left,) = tmp_path.iterdir()
    assert left.read_bytes() == b"half"
    # What a living process writes, and what is not ours, stays.
    alive = tmp_path / f".partsketch-{files.machine()}-{os.getppid()}-{'0' * 16}.part"
    elsewhere = tmp_path / f".partsketch-00000000-1-{'0' * 16}.part"
    others = [alive, elsewhere, tmp_path / ".partsketch-notes.part"]
    for path in others:
        path.write_bytes(b"")
    write_atomically(tmp_path / "file", b"new")
    assert sorted(tmp_path.iterdir()) == sorted([*others, tmp_path / "file"])
    os.utime(elsewhere, (0, 0))
    files.tidied.clear()
    write_atomically(tmp_path / "file", b"new")
    assert not elsewhere.exists()


def test_what_this_process_writes_stays(tmp_path: Path) -> None:
    with atomic_path(tmp_path / "one") as first:
        first.write_bytes(b"1")
        files.tidied.clear()
        write_atomically(tmp_path / "two", b"2")
        assert first.exists()
    assert (tmp_path / "one").read_bytes() == b"1"
