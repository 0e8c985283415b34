"""The ledger: entered before the file, added up, never overspent, never torn."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from partsketch import InputError
from partsketch.cli import run
from partsketch.sites.noisy import release as releasing
from partsketch.sites.noisy.ledger import Entry, enter, read_ledger, spent_of
from tests.sites.noisy.files import noisy, table


def entry(site: str = "north", label: str = "", epsilon: float = 1.0, release: str = "0" * 32) -> Entry:
    return Entry(site, label, epsilon, 1e-6, ("a",), release, "2026-01-01T00:00:00Z")


def test_releases_of_the_same_rows_add_up(tmp_path: Path) -> None:
    """One is what was asked; four of ε = 1 are less than 4, as many as one with half the noise."""
    ledger = tmp_path / "ledger.jsonl"
    spent = [enter(ledger, entry(), None) for _ in range(4)]
    assert spent[0].epsilon == pytest.approx(1.0, rel=1e-4)
    assert spent[3].rho == pytest.approx(4 * spent[0].rho)
    assert 2 < spent[3].epsilon < 2.3
    assert enter(ledger, entry(label="other day"), None).releases == 1
    assert len(read_ledger(ledger)) == 5
    assert "4 times" in spent[3].sentence


def test_the_budget_is_not_exceeded_and_nothing_is_written_then(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    noisy(tmp_path, table(300), budget=1.0)
    before = ledger.read_bytes()
    with pytest.raises(InputError, match=r"would have spent ε = 1\.4\d* at δ = 1e-06, above the budget of 1"):
        noisy(tmp_path, table(300), budget=1.0)
    assert ledger.read_bytes() == before
    noisy(tmp_path, table(300), budget=1.0, label="other rows")


def test_a_first_release_above_the_budget_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="above the budget"):
        enter(tmp_path / "ledger.jsonl", entry(), 0.5)
    assert list(tmp_path.iterdir()) == []


def test_a_release_is_entered_before_there_is_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(releasing, "noisy_products", killed)
    with pytest.raises(KeyboardInterrupt):
        noisy(tmp_path, table(300))
    assert len(read_ledger(tmp_path / "ledger.jsonl")) == 1


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    names = [f"{number:032x}" for number in range(24)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: enter(ledger, entry(release=name), None), names))
    assert sorted(known.release for known in read_ledger(ledger)) == names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not json\n", "Line 1"),
        ("{}\n", "Line 1"),
        ('{"site": "north"', "cut short"),
        ("[]\n", "Line 1"),
        (json.dumps({**vars(entry()), "epsilon": -1}) + "\n", "Line 1"),
        (json.dumps({**vars(entry()), "more": 1}) + "\n", "Line 1"),
        (json.dumps(vars(entry())) + "\n\n", "Line 2"),
    ],
)
def test_a_ledger_that_cannot_be_read_stops_the_release(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "ledger.jsonl").write_text(text)
    with pytest.raises(InputError, match=message):
        noisy(tmp_path, table(300))
    assert (tmp_path / "ledger.jsonl").read_text() == text


def test_nothing_is_spent_where_nothing_was_released(tmp_path: Path) -> None:
    assert spent_of(read_ledger(tmp_path / "none.jsonl"), "north", "").epsilon == 0


def test_a_larger_delta_does_not_make_room(tmp_path: Path) -> None:
    """At δ = 0.01 the releases before it would look smaller: the smallest δ counts."""
    ledger = tmp_path / "ledger.jsonl"
    enter(ledger, entry(), 1.5)
    with pytest.raises(InputError, match="at δ = 1e-06, above the budget"):
        enter(ledger, replace(entry(), epsilon=0.5, delta=0.01), 1.5)
    assert spent_of([entry(), replace(entry(), epsilon=0.5, delta=0.01)], "north", "").delta == 1e-6


def test_the_same_rows_under_other_names_are_told_of(tmp_path: Path) -> None:
    """Nobody can see that they are the same: what it would be then is said."""
    ledger = tmp_path / "ledger.jsonl"
    enter(ledger, entry(), None)
    spent = enter(ledger, entry(label="again"), 1.0)
    assert spent.releases == 1
    assert "2 releases: were all of these rows, under other sites or labels, it would be ε = 1.45" in spent.sentence
    assert "The ledger begins with it" in enter(tmp_path / "other.jsonl", entry(), None).sentence
    assert "The ledger" not in enter(tmp_path / "other.jsonl", entry(), None).sentence


@pytest.mark.parametrize(
    "name", ["North", " north", "north\u3000", "ｎorth", "nor\u200bth", "nor\xadth", "north\ufe0f", "\u3164north"]
)
def test_other_letters_of_the_same_name_have_no_budget_of_their_own(tmp_path: Path, name: str) -> None:
    enter(tmp_path / "ledger.jsonl", entry("north", "old rows"), 1.2)
    with pytest.raises(InputError, match=r"above the budget of 1\.2"):
        enter(tmp_path / "ledger.jsonl", entry(name, "Old  Rows"), 1.2)
    assert enter(tmp_path / "ledger.jsonl", entry("north east", "old rows"), 1.2).releases == 1


def test_a_ledger_with_two_names_is_refused(tmp_path: Path) -> None:
    """The file is replaced: under its other name it would stay as it was."""
    ledger = tmp_path / "ledger.jsonl"
    enter(ledger, entry(), None)
    os.link(ledger, tmp_path / "other.jsonl")
    with pytest.raises(InputError, match="hard link"):
        enter(tmp_path / "other.jsonl", entry(), 1.2)
    (tmp_path / "other.jsonl").unlink()
    (tmp_path / "other.jsonl").symlink_to(ledger)
    with pytest.raises(InputError, match=r"above the budget of 1\.2"):
        enter(tmp_path / "other.jsonl", entry(), 1.2)
    enter(tmp_path / "other.jsonl", entry(), None)
    assert len(read_ledger(ledger)) == 2


def test_writers_at_the_same_time_do_not_exceed_the_budget(tmp_path: Path) -> None:
    """Two of ε = 1 are 1.455, three are 1.81: of twelve at once two get through, whoever they are."""

    def one(number: int) -> bool:
        try:
            enter(tmp_path / "ledger.jsonl", entry(release=f"{number:032x}"), 1.5)
        except InputError:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(one, range(12))) == 2
    assert len(read_ledger(tmp_path / "ledger.jsonl")) == 2


@pytest.mark.parametrize(("kind", "message"), [("fifo", "named pipe"), ("folder", "folder"), ("locked", "read-only")])
def test_what_is_no_ledger_to_write_is_refused(tmp_path: Path, kind: str, message: str) -> None:
    ledger = tmp_path / "ledger.jsonl"
    if kind == "fifo":
        os.mkfifo(ledger)
    elif kind == "folder":
        ledger.mkdir()
    else:
        ledger.write_text("")
        ledger.chmod(0o444)
    with pytest.raises(InputError, match=message):
        noisy(tmp_path, table(300))


def test_the_command_needs_a_site_and_keeps_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The name of the output is no name of rows: another output would hide what was spent."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(table(300), "rows.parquet")
    Path("bounds.toml").write_text("a = [0, 100]\nb = [-4, 4]\ny = [-20, 30]\n")
    asked = ["sketch", "rows.parquet", "-t", "y", "--epsilon", "1", "--bounds", "bounds.toml", "--budget", "1.2"]
    assert run([*asked, "-o", "first.psk"]) == 2
    assert "name the site (--site)" in capsys.readouterr().err
    assert run([*asked, "-o", "first.psk", "--site", "north"]) == 0
    # The ledger that nobody named, and its lock, are no places for the file.
    kept = Path("partsketch-ledger.jsonl").read_bytes()
    for place in ("partsketch-ledger.jsonl", "partsketch-ledger.jsonl.lock"):
        assert run([*asked, "-o", place, "--site", "north", "--label", "again"]) == 2
        assert "name the same file" in capsys.readouterr().err
    assert Path("partsketch-ledger.jsonl").read_bytes() == kept
    assert run([*asked, "-o", "second.psk", "--site", "north"]) == 2
    assert "above the budget of 1.2" in capsys.readouterr().err
    assert sorted(path.name for path in Path().glob("*.psk")) == ["first.psk"]
    assert len(read_ledger(Path("partsketch-ledger.jsonl"))) == 1
