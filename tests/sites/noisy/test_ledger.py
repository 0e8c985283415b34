"""The ledger: entered before the file, added up, never overspent, never torn."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from partsketch import InputError
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
    assert spent_of(read_ledger(tmp_path / "none.jsonl"), "north", "", 1e-6).epsilon == 0
