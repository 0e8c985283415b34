"""An empty path is refused by every option that takes one: it would mean the folder that a command is called in."""

from __future__ import annotations

import os
from pathlib import Path

import click
import pytest

from partsketch.cli import COMMANDS, commands, run
from partsketch.cli.paths import NamedPath
from tests.cli.test_cli import refused


def test_every_path_is_a_named_one() -> None:
    found = 0
    for name in COMMANDS:
        known = commands.get_command(click.Context(commands), name)
        assert known is not None
        inner = [known, *(known.commands.values() if isinstance(known, click.Group) else ())]
        for parameter in [parameter for one in inner for parameter in one.params]:
            if isinstance(parameter.type, click.Path):
                assert isinstance(parameter.type, NamedPath), f"{name} {parameter.name}"
                found += 1
    assert found >= 20


def test_an_empty_path_leaves_the_folder_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for asked in (["fit", "x.csv", "-t", "y", "--checkpoint", ""], ["reproduce", "-o", ""]):
        assert "a path cannot be empty" in refused(capsys, *asked)
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    name = 300 * "n"
    for asked in (
        ["refine", "begin", "a.psk", "-o", name],
        ["report", "m.json", "-o", name],
        ["reproduce", "-o", name],
    ):
        assert "n is too long for a file here: give a shorter one" in refused(capsys, *asked)
    assert list(tmp_path.iterdir()) == []


def test_data_whose_names_are_not_utf8(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A file that is named, and one in a folder or behind a glob."""
    name = os.fsdecode(b"rows-\xff.csv")
    (tmp_path / name).write_text("x,y\n1,2\n2,3\n3,5\n")
    for data in (tmp_path / name, tmp_path, tmp_path / "*.csv"):
        assert run(["fit", str(data), "--target", "y"]) == 2
        errors = capfd.readouterr().err
        assert "not UTF-8" in errors
        assert "rows-\\xff.csv" in errors


def test_outputs_whose_names_are_not_utf8(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "rows.csv"
    data.write_text("x,y\n" + "".join(f"{i},{i * i % 7}\n" for i in range(40)))
    other = str(tmp_path / os.fsdecode(b"\xfe"))
    fit = ["fit", str(data), "--target", "y", "--method", "stack", "--partitions", "2"]
    for asked in ([*fit, "--checkpoint", other], [*fit, "--model", other], ["reproduce", "--quick", "-o", other]):
        assert run(asked) == 2
        assert "not UTF-8" in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == [data]
