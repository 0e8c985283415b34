"""What `--help` shows as an example works as it stands, and every command can answer in JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import partsketch as ps
from partsketch.cli import COMMANDS, commands, run


def _all_commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(commands)
    for name in COMMANDS:
        command = commands.get_command(context, name)
        assert command is not None
        yield name, command
        for inner, found in command.commands.items() if isinstance(command, click.Group) else ():
            yield f"{name} {inner}", found


EVERY = dict(_all_commands())
EXAMPLES = {
    # A backslash at the end of a line is where the shell reads on.
    name: str(command.epilog).removeprefix("\b\nExample: ").replace("\\\n", "")
    for name, command in EVERY.items()
}
#: What takes minutes or serves pages for ever has tests of its own.
NOT_RUN = {"reproduce", "explore", "completion"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the examples name, made as the pages make it."""
    folder = tmp_path_factory.mktemp("examples")
    generator = np.random.default_rng(8)

    def trips(count: int) -> Any:
        distance, night = generator.exponential(4, count), generator.integers(0, 2, count)
        city = generator.integers(0, 5, count)
        fare = 3 + 2 * distance + night + generator.standard_normal(count)
        return pa.table({"distance": distance, "night": night, "city": city, "fare": fare})

    (folder / "trips").mkdir()
    for number in range(2):
        pq.write_table(trips(1000), folder / f"trips/{number}.parquet")
    for name in ("trips", "new", "north", "data"):
        pq.write_table(trips(500), folder / f"{name}.parquet")
    pq.write_table(trips(500).rename_columns(["a", "b", "c", "y"]), folder / "data.parquet")
    pq.write_table(trips(500).rename_columns(["a", "b", "c", "MedHouseVal"]), folder / "houses.parquet")
    tables = {"north": folder / "north.parquet", "south": trips(600), "west": trips(700)}
    for site, rows in tables.items():
        ps.sketch(rows, "fare", site=site, random_state=1, sketch_size=60).save(folder / f"{site}.psk")
    ps.summarise(trips(500), partition_by="city").save(folder / "trips.psk")
    for name, method in (("exact", "exact"), ("sketched", "stack"), ("model", "exact")):
        ps.fit(folder / "trips.parquet", "fare", method=method, random_state=1).save(folder / f"{name}.json")
    rounds = ps.refine([folder / "north.psk", folder / "south.psk"])
    rounds.save(folder / "rounds")
    rounds.question.save(folder / "question-1.psq")
    for site in ("north", "south"):
        ps.answer(rounds.question, tables[site], site=site).save(folder / f"{site}-1.psa")
    return folder


def test_every_command_has_an_example() -> None:
    for name, example in EXAMPLES.items():
        assert example.startswith(f"partsketch {name}"), name
    assert str(commands.epilog).startswith("Start with: partsketch fit ")


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_is_shown_as_a_shell_reads_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*name.split(), "--help"]) == 0
    shown = capsys.readouterr().out.partition("Example: ")[2]
    assert shlex.split(shown.replace("\\\n", "")) == shlex.split(EXAMPLES[name])
    lines = shown.rstrip().splitlines()
    assert all(line.endswith(" \\") for line in lines[:-1])
    assert len(lines) == 1 or max(map(len, lines)) < 80


@pytest.mark.slow
@pytest.mark.parametrize("name", [*(name for name in EXAMPLES if name not in NOT_RUN), "partsketch"])
def test_the_example_works_as_it_stands(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    # Examples write: each has the files as they were.
    own = folder.parent / f"{folder.name}-{name.replace(' ', '-')}"
    shutil.copytree(folder, own)
    monkeypatch.chdir(own)
    example = EXAMPLES.get(name) or str(commands.epilog).removeprefix("Start with: ")
    if name in ("refine", "refine begin"):
        shutil.rmtree(own / "rounds")
    assert run(shlex.split(example)[1:]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in NOT_RUN])
def test_it_answers_in_json(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import shutil

    own = folder.parent / f"{folder.name}-json-{name.replace(' ', '-')}"
    shutil.copytree(folder, own)
    monkeypatch.chdir(own)
    if name in ("refine", "refine begin"):
        shutil.rmtree(own / "rounds")
    assert run([*shlex.split(EXAMPLES[name])[1:], "--json"]) == 0
    assert isinstance(json.loads(capsys.readouterr().out), dict)


def test_every_command_takes_json() -> None:
    for name, command in EVERY.items():
        options = {option for parameter in command.params for option in parameter.opts}
        assert "--json" in options or isinstance(command, click.Group), name


def test_every_command_that_reads_rows_takes_csv_as_it_is_written() -> None:
    for name, command in EVERY.items():
        if any(parameter.name == "data" for parameter in command.params):
            options = {option for parameter in command.params for option in parameter.opts}
            assert options >= {"--separator", "--decimal", "--no-header"}, name
