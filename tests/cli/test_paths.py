"""An empty path is refused by every option that takes one: it would mean the folder that a command is called in."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from partsketch.cli import COMMANDS, commands
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
