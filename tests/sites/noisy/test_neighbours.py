"""Two tables that differ in one row: headers are the same, and sums differ by no more than the sensitivity."""

from __future__ import annotations

import math
import secrets
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import partsketch as ps
from partsketch import InputError
from partsketch.sites.noisy import mechanism
from partsketch.sites.noisy.ledger import read_ledger
from partsketch.summaries.noisy_summary import BESIDE_DIAGONAL, ON_DIAGONAL, unit_of_steps
from tests.sites.noisy.files import table

BOUNDS = {"a": (0, 100), "b": (-4, 4), "y": (-20, 30)}
SPLINE = "bs(a, knots=[50], degree=1, lower_bound=0, upper_bound=100)"
OTHERS = {"k": (0, 10), "log(k)": (-1, 3), "center(a)": (-50, 50), "sqrt(a)": (0, 10)}
OTHERS |= {f"{SPLINE}[{number}]": (0, 1) for number in (1, 2)}
ROWS = {**table(40).to_pydict(), "k": ["1", "2"] * 20, "g": ["u", "v"] * 20}

#: What the last row has, what is asked, and which features need bounds: formulas, levels, values that decide how a text
#: file is read.
CASES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"a": 1e308, "b": -1e308, "y": 1e308}, {"target": "y", "features": ["a", "b"]}, "a b"),
    ({"a": "nan"}, {"target": "y", "features": ["a", "b"]}, "a b"),
    ({"k": "2.0"}, {"target": "y ~ a + C(k)", "levels": {"C(k)": ["1", "2"]}}, "a"),
    ({"k": "2e0"}, {"target": "y ~ C(k) * g", "levels": {"k": ["1", "2"], "g": ["u", "v"]}}, ""),
    ({"k": ""}, {"target": "y ~ a + C(k, levels=[1, 2])"}, "a"),
    ({"k": "7.5"}, {"target": "y ~ a + log(k)"}, "a log(k)"),
    ({"k": "99999999999999999999"}, {"target": "y", "features": ["k"]}, "k"),
    ({"g": "w"}, {"target": "y", "features": ["a", "g"], "levels": {"g": ["u", "v", "w"]}}, "a"),
    ({"g": "w"}, {"target": "y ~ a + g", "levels": {"g": ["w", "v", "u"]}}, "a"),
    ({"a": "200"}, {"target": "y ~ center(a)", "levels": {"center(a)": [50.0, 1.0]}}, "center(a)"),
    ({"a": "-1"}, {"target": "y ~ sqrt(a)"}, "sqrt(a)"),
    ({"a": "99"}, {"target": f"y ~ {SPLINE}"}, f"{SPLINE}[1]|{SPLINE}[2]"),
]


def written(path: Path, last: dict[str, Any] | None) -> Path:
    """Write the rows as CSV, with or without the last one."""
    rows = {name: [str(value) for value in values] for name, values in ROWS.items()}
    if last is not None:
        rows = {name: [*values, str(last.get(name, values[0]))] for name, values in rows.items()}
    lines = [",".join(rows), *(",".join(line) for line in zip(*rows.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(("last", "asked", "bounded"), CASES)
def test_neighbours_differ_in_sums_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: dict[str, Any], asked: dict[str, Any], bounded: str
) -> None:
    """Without noise, and in whole steps: what is told besides the sums must not depend on a row."""
    monkeypatch.setattr(mechanism, "draw_noise", lambda count, epsilon, delta: [0] * count)
    monkeypatch.setattr(secrets, "token_hex", lambda count: "0" * 2 * count)
    names = bounded.split("|" if "|" in bounded else None)
    bounds = {name: (BOUNDS | OTHERS)[name] for name in [*names, "y"]}
    made = []
    for number, row in enumerate((None, last)):
        data = written(tmp_path / f"{number}.csv", row)
        given: dict[str, Any] = {
            "epsilon": 1.0,
            "bounds": bounds,
            "site": "north",
            "ledger": tmp_path / f"{number}.jsonl",
        }
        made.append(ps.sketch(str(data), missing="drop", **given, **asked))
    (first, second), count = made, len(made[0].columns)
    empty = first.products * 0
    headers = [replace(summary, products=empty).to_bytes() for summary in made]
    assert headers[0] == headers[1]
    steps = (second.products - first.products) / unit_of_steps(first.promise.norm, count) ** 2
    weights = [[ON_DIAGONAL if i == j else BESIDE_DIAGONAL * (i < j) for j in range(count)] for i in range(count)]
    # Sums were rounded to doubles: a few units of 10⁻¹⁶ of 40 rows.
    assert math.hypot(*(steps * weights).ravel()) <= mechanism.SENSITIVITY * (1 + 1e-12)


@pytest.mark.parametrize("last", ["", "9007199254740993.0"])
def test_long_identifiers_of_text_files_are_no_levels(tmp_path: Path, last: str) -> None:
    """One row that makes the column look different moved all others to levels beside theirs."""
    levels = [str(2**53 + number) for number in range(5)]
    lines = [f"{levels[number % 4]},{number}" for number in range(40)]
    for number, rows in enumerate((lines, [*lines, f"{last},1"])):
        path = tmp_path / f"{number}.csv"
        path.write_text("\n".join(["k,y", *rows]) + "\n")
        with pytest.raises(InputError, match=r"'C\(k\)' in the formula has whole numbers beyond 2\*\*53"):
            ps.sketch(
                str(path),
                "y ~ C(k)",
                levels={"k": levels},
                missing="drop",
                epsilon=1.0,
                bounds={"y": (0, 50)},
                site="north",
                ledger=tmp_path / "ledger.jsonl",
            )


def test_what_no_file_can_hold_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ps.NoisySummary, "to_bytes", lambda summary: _refuse())
    with pytest.raises(InputError, match="no file"):
        ps.sketch(table(40), "y", epsilon=1.0, bounds=BOUNDS, site="north", ledger=tmp_path / "ledger.jsonl")
    assert not read_ledger(tmp_path / "ledger.jsonl")


def _refuse() -> bytes:
    raise InputError("no file")


def test_levels_for_more_than_one_model_may_be_given(tmp_path: Path) -> None:
    """Those of columns that are no features are not told; a name that no column has is a mistake."""
    rows = table(40).append_column("g", pa.array(ROWS["g"]))
    given: dict[str, Any] = {"epsilon": 1.0, "bounds": BOUNDS, "site": "north", "ledger": tmp_path / "ledger.jsonl"}
    summary = ps.sketch(rows, "y", ["a", "b"], levels={"g": ["u", "v"]}, **given)
    assert summary.about.encoding.levels == ()
    assert ps.NoisySummary.from_bytes(summary.to_bytes()) == summary
    with pytest.raises(InputError, match="levels of 'h', which is no column"):
        ps.sketch(rows, "y", ["a", "b"], levels={"h": ["u", "v"]}, **given)
