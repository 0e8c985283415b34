"""Dates, timestamps, times of day and durations: left out with a note, or taken apart by a formula, wherever from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import partsketch as ps
from partsketch.common.errors import InputError
from partsketch.sources import open_source

ROWS = 120
WHEN = pd.date_range("2024-01-01", periods=ROWS, freq="431min")
LEFT_OUT = {"d32", "d64", "ts", "tz", "t32", "t64", "du"}


def table() -> Any:
    generator = np.random.default_rng(2)
    x = generator.standard_normal(ROWS)
    return pa.table(
        {
            "x": x,
            "zone": generator.choice(["a", "b"], ROWS),
            "y": x + WHEN.hour + generator.standard_normal(ROWS),
            "d32": pa.array(WHEN.date),
            "d64": pa.array(WHEN.date, pa.date64()),
            "ts": pa.array(WHEN, pa.timestamp("ns")),
            "tz": pa.array(WHEN.tz_localize("Asia/Tokyo"), pa.timestamp("us", "Asia/Tokyo")),
            "t32": pa.array(WHEN.time, pa.time32("s")),
            "t64": pa.array(WHEN.time, pa.time64("us")),
            "du": pa.array((WHEN - WHEN[0]).to_numpy(), pa.duration("us")),
        }
    )


def _files(write: Any, name: str) -> Any:
    def make(folder: Path) -> str:
        write(table(), str(folder / name))
        return str(folder / name)

    return make


KINDS = {
    "table": lambda folder: table(),
    "pandas": lambda folder: table().to_pandas(),
    "polars": lambda folder: pl.DataFrame(table()),
    "LazyFrame": lambda folder: pl.DataFrame(table()).lazy(),
    "DuckDB": lambda folder: duckdb.connect().from_arrow(table().drop_columns(["d64"])),
    "Parquet": _files(pq.write_table, "a.parquet"),
    "Feather": _files(pyarrow.feather.write_feather, "a.feather"),
}


@pytest.mark.parametrize("encode", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_they_are_left_out_with_a_note(kind: str, encode: bool, tmp_path: Path) -> None:
    data = KINDS[kind](tmp_path)
    if not encode:
        # The text alone is refused: dates are in nobody's way.
        with pytest.raises(InputError, match=r"^Column 'zone' \(text\) is not numeric"):
            open_source(data, target="y")
        return
    source = open_source(data, target="y", encode=True)
    assert source.feature_names == ("x", "zone=b")
    noted = {note.split("'")[1] for note in source.notes}
    assert noted == LEFT_OUT - ({"d64"} if kind == "DuckDB" else set())


FORMULAS = {
    "hour(ts)": WHEN.hour,
    # In its own zone, not in UTC.
    "hour(tz)": WHEN.hour,
    "hour(t32)": WHEN.hour,
    "minute(t64)": WHEN.minute,
    "seconds(t32)": WHEN.hour * 3600 + WHEN.minute * 60,
    "days(t64)": (WHEN.hour * 60 + WHEN.minute) / 1440,
    "seconds(du)": (WHEN - WHEN[0]).total_seconds(),
    "days(d64)": (WHEN.normalize() - pd.Timestamp("1970-01-01")).days,
    "weekday(d32)": WHEN.day_of_week,
    "days(ts)": (WHEN - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1),
}


@pytest.mark.parametrize("formula", FORMULAS)
def test_parts_are_those_of_pandas(formula: str) -> None:
    source = open_source(table(), formula=f"y ~ {formula}")
    (block,) = source.read()
    out = np.empty((2, ROWS))
    block.copy_into(out, 0, ROWS)
    # Some 19,700 days in doubles of 2e-16, divided once.
    np.testing.assert_allclose(out[0], np.asarray(FORMULAS[formula], dtype=float), rtol=1e-15)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "DuckDB"])
def test_the_same_model_from_everywhere(kind: str, tmp_path: Path) -> None:
    formula = "y ~ x + hour(ts) + minute(t64) + seconds(du)"
    expected = ps.fit(table(), formula).coefficients
    np.testing.assert_array_equal(ps.fit(KINDS[kind](tmp_path), formula).coefficients, expected)


def test_csv_has_dates_and_times_but_no_zones(tmp_path: Path) -> None:
    pyarrow.csv.write_csv(table().drop_columns(["du", "t64"]), tmp_path / "a.csv")
    source = open_source(str(tmp_path / "a.csv"), target="y", encode=True)
    assert source.feature_names == ("x", "zone=b")
    assert len(source.notes) == 5
    for formula in ("hour(ts)", "hour(t32)", "days(d32)"):
        found, expected = (ps.fit(data, f"y ~ {formula}") for data in (str(tmp_path / "a.csv"), table()))
        np.testing.assert_array_equal(found.coefficients, expected.coefficients)
    # Tokyo is nine hours ahead of UTC, in which offsets are read.
    (block,) = open_source(str(tmp_path / "a.csv"), formula="y ~ hour(tz)").read()
    out = np.empty((2, ROWS))
    block.copy_into(out, 0, ROWS)
    np.testing.assert_array_equal(out[0], (WHEN.hour - 9) % 24)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("du", r"'du' holds durations: say what to take of them, such as seconds\(du\)"),
        ("t32", r"'t32' holds times of day: .*hour\(t32\) or seconds\(t32\)"),
        ("ts", r"'ts' holds timestamps: .*days\(ts\)"),
        ("hour(du)", "A duration has no hour"),
        ("year(t64)", "A time of day has no year"),
    ],
)
def test_what_cannot_be_taken(formula: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ps.fit(table(), f"y ~ x + {formula}")


def test_nothing_but_dates() -> None:
    with pytest.raises(
        InputError, match=r"No column is left for the features: 'ts' is none unless named; use a formula"
    ):
        ps.fit(table().select(["y", "ts"]), "y")


@pytest.mark.parametrize(
    ("expression", "truth"),
    [
        ("ts > '2024-01-20 03:11:00'", WHEN > "2024-01-20 03:11:00"),
        ("'2024-01-20' >= ts", WHEN <= "2024-01-20"),
        # Clocks in the column's own zone.
        ("tz < '2024-01-20 12:00:00'", WHEN < "2024-01-20 12:00:00"),
        ("d32 == '2024-01-20'", WHEN.date == pd.Timestamp("2024-01-20").date()),
        ("d64 != '2024-01-20'", WHEN.date != pd.Timestamp("2024-01-20").date()),
        ("ts > d32", WHEN.normalize() < WHEN),
    ],
)
def test_dates_are_compared(expression: str, truth: Any) -> None:
    assert 0 < np.sum(truth) < ROWS
    source = open_source(table(), formula=f"y ~ I({expression})")
    (block,) = source.read(0, None, ROWS)
    found = np.empty((2, ROWS))
    block.copy_into(found, 0, ROWS)
    np.testing.assert_array_equal(found[0], truth)


def test_dates_beyond_a_column_s_unit_are_refused() -> None:
    with pytest.raises(InputError, match="cannot be compared with '3000-01-01'"):
        ps.fit(table(), "y ~ I(ts > '3000-01-01')")
