"""What a file would show of single rows is refused when it is written, unless it is allowed by name."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import partsketch as ps
from partsketch import InputError, PartsketchWarning
from partsketch.cli import run
from partsketch.cli.site_options import LEAST_LEVEL_ROWS as LEAST_OF_COMMAND
from partsketch.sites.disclosure import leverages
from partsketch.sites.disclosure.concerns import CONCERNS, LEAST_LEVEL_ROWS


def table(rows: int = 500) -> pa.Table:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(rows, 2))
    return pa.table({"a": x[:, 0], "b": x[:, 1], "y": x @ [1.0, 2.0] + draw.normal(size=rows)})


def with_row(rows: pa.Table, **values: Any) -> pa.Table:
    row = pa.table({name: [values.get(name, 0.0)] for name in rows.column_names}, schema=rows.schema)
    return pa.concat_tables([rows.slice(0, 100), row, rows.slice(100)])


def levelled(rows: int, rare: int, level: str) -> pa.Table:
    """A text column of which one level is rare; 'a' is the reference level."""
    other = "b" if level == "a" else "a"
    return table(rows).append_column("g", pa.array([level] * rare + [other] * (rows - rare)))


def nearly_equal() -> pa.Table:
    """A column twice, but for a billionth in one row: an exact file tells their difference."""
    rows = table()
    values = rows["a"].to_numpy().copy()
    values[77] += 1e-9
    return rows.append_column("again", pa.array(values))


CASES: list[tuple[str, Any, dict[str, Any], str]] = [
    ("few-rows", table(29), {"sketch_size": 8}, "29 rows and tells of 3 parameters"),
    ("few-exact-rows", table(99), {"sketch": "triangular"}, "exact sums of products of 99 rows"),
    ("large-sketch", table(40), {"sketch_size": 40}, "40 sketch rows and stands for 40 rows"),
    ("plain-rows", table(500), {"sketch": "row_sample", "sketch_size": 40}, "holds about 40 of 500 rows as they are"),
    ("plain-rows", table(500), {"sketch": "leverage_sample", "sketch_size": 40}, "about 40 of 500 rows as they are"),
    # 500 (1 − 1/60)⁴⁹⁹ = 0.11; of 40 sketch rows it would be 0.002.
    ("plain-rows", table(500), {"sketch": "count_sketch", "sketch_size": 60}, "may hold a row as it is"),
    # 500 · 8 (1 − 8/400)⁴⁹⁹ = 0.17.
    ("plain-rows", table(500), {"sketch": "sparse_sign", "sketch_size": 400}, "may hold a row as it is"),
    ("rare-levels", levelled(500, 4, "b"), {"encode": True}, "column 'g=b', which 4 rows of 500 have"),
    ("rare-levels", levelled(500, 4, "a"), {"encode": True}, "level 'a' of column 'g', which 4 rows of 500"),
    ("rare-levels", levelled(500, 9, "b"), {"encode": True, "least_level_rows": 10}, "fewer than 10"),
    ("leverage", with_row(table(), a=1e6), {"sketch": "triangular"}, "Row 100 alone makes 100%"),
    ("leverage", with_row(table(), y=-60.0), {}, "Row 100 alone makes"),
    ("leverage", nearly_equal(), {"sketch": "triangular"}, "Row 77 alone makes 100%"),
]


@pytest.mark.parametrize(("name", "rows", "keywords", "message"), CASES)
def test_each_concern_is_refused_and_can_be_allowed(
    name: str, rows: Any, keywords: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        ps.sketch(rows, "y", random_state=1, allow=[], **keywords)
    assert f"--allow {name}" in str(caught.value)
    with pytest.warns(PartsketchWarning) if name == "large-sketch" else _nothing():
        # Few rows, and rows of rare levels, have high leverages of their own.
        allowed = ps.sketch(rows, "y", random_state=1, allow=[name, "leverage"], **keywords)
        unchecked = ps.sketch(rows, "y", random_state=1, **keywords)
    assert allowed == unchecked


def _nothing() -> Any:
    from contextlib import nullcontext

    return nullcontext()


#: Rows of the table for each row of the sketch that leave no row alone.
SHORT: dict[str, Any] = {"sketch": "count_sketch", "sketch_size": 30}


@pytest.mark.parametrize("keywords", [{}, {"sketch": "triangular"}, {"private": True}, {"n_partitions": 3}, SHORT])
def test_what_shows_nobody_passes(keywords: dict[str, Any]) -> None:
    ps.sketch(table(), "y", allow=(), **keywords)


def test_as_many_rows_as_are_asked_for_are_enough() -> None:
    ps.sketch(table(30), "y", sketch_size=8, allow=["leverage"])
    ps.sketch(table(100), "y", sketch="triangular", allow=["leverage"])


@pytest.mark.parametrize("far", [0.0, 1e6])
def test_columns_that_follow_from_others_show_nobody(far: float) -> None:
    """What is left of them is rounding, of which every row has its part."""
    rows = table()
    a, b = (rows[name].to_numpy() + far for name in ("a", "b"))
    made = {
        "a": a,
        "b": b,
        "sum": a + b,
        "pounds": 0.45359237 * a,
        "twice": a,
        "high": 1.0 * (a > far),
        "low": 1.0 * (a <= far),
    }
    ps.sketch(pa.table({**made, "y": rows["y"]}), "y", sketch="triangular", allow=[])


def test_levels_that_nobody_has_show_nobody() -> None:
    ps.sketch(levelled(500, 200, "b"), "y", levels={"g": ["a", "b", "c"]}, allow=[])


def test_the_leverage_is_that_of_the_rows() -> None:
    """Against its definition, with columns far from zero and of other units; the file of each partition has its own."""
    from partsketch.engines.local import LocalEngine
    from partsketch.fitting.data_request import DataRequest
    from partsketch.sites.options import SketchOptions
    from partsketch.sites.sketch import sketch_source

    rows = with_row(table(), a=8.0, b=-7.0)
    moved = rows.set_column(0, "a", pa.array(1e6 + 1e-3 * rows["a"].to_numpy()))
    values = np.column_stack([np.ones(501), *(rows[name].to_numpy() for name in ("a", "b", "y"))])
    expected = np.einsum("ij,ji->i", values, np.linalg.solve(values.T @ values, values.T)).max()
    # Where rare levels were allowed too nobody would look.
    allow = [name for name in CONCERNS if name != "rare-levels"]
    for kind in ("triangular", "gaussian"):
        options = SketchOptions(sketch=kind, seed=1, allow=allow)
        made = sketch_source(DataRequest(moved, "y").open(None, True), options, LocalEngine(2))
        assert made.leverages[0] == pytest.approx(expected, rel=1e-5)
    options = SketchOptions(sketch="triangular", seed=1, n_partitions=2, allow=allow)
    halves = sketch_source(DataRequest(rows, "y").open(None, True), options, LocalEngine(2)).leverages
    first = values[:251]
    expected = np.einsum("ij,ji->i", first, np.linalg.solve(first.T @ first, first.T)).max()
    assert halves[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("place", [3_000, 66_000])
def test_a_row_of_great_weight_is_found_in_any_tile_and_segment(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # So few rows would be one segment.
    monkeypatch.setattr(leverages, "group_segment_rows", lambda columns, partitions: 1 << 16)
    weights = np.ones(70_000)
    weights[place] = 1e5
    rows = table(70_000).append_column("w", pa.array(weights))
    values = np.column_stack([np.ones(70_000), *(rows[name].to_numpy() for name in ("a", "b", "y"))])
    expected = 1e5 * values[place] @ np.linalg.solve(values.T @ (weights[:, None] * values), values[place])
    with pytest.raises(InputError, match=f"Row {place} alone makes {expected:.0%} of"):
        ps.sketch(rows, "y", weights="w", sketch="triangular", allow=[])


def test_what_can_be_read_once_is_said_not_to_be_checked() -> None:
    reader = table().to_reader()
    with pytest.warns(PartsketchWarning, match="were not looked for"):
        ps.sketch(reader, "y", sketch="triangular", allow=[])


@pytest.mark.parametrize(
    ("keywords", "message"),
    [({"allow": ["all"]}, "allow has 'all'"), ({"least_level_rows": 0}, "least_level_rows is 0")],
)
def test_what_cannot_be_asked_is_refused(keywords: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ps.sketch(table(), "y", **keywords)


def test_the_command_always_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert LEAST_OF_COMMAND == LEAST_LEVEL_ROWS
    pq.write_table(with_row(table(), a=1e6), "rows.parquet")
    command = ["sketch", "rows.parquet", "-t", "y", "--private", "--sketch-size", "20", "-o", "rows.psk"]
    assert run(command) == 2
    assert "Row 100 alone" in capsys.readouterr().err
    assert not Path("rows.psk").exists()
    assert run([*command, "--allow", "leverage"]) == 0
    printed = capsys.readouterr().out
    assert printed.index("is not hidden at all") < printed.index("bits per entry")


def cut(rows: pa.Table, parts: int) -> pa.Table:
    """Rows with a column that says to which of so many parts they belong, in turn."""
    return rows.append_column("g", pa.array(np.arange(len(rows)) % parts))


#: Each partition of a file can be seen alone: what all rows together hide may show there.
IN_PARTITIONS: list[tuple[str, pa.Table, str]] = [
    ("few-exact-rows", cut(table(380), 4), "partition '0' holds exact sums of products of 95 rows"),
    ("leverage", cut(with_row(table(2000), a=9.0), 8), "Row 100 alone makes .* of partition '4'"),
    ("rare-levels", cut(table(1200), 4).append_column("u", pa.array(1.0 * (np.arange(1200) < 16))), "'u', which 4 row"),
]


@pytest.mark.parametrize(("name", "rows", "message"), IN_PARTITIONS)
def test_a_file_of_partitions_shows_each_of_them(name: str, rows: pa.Table, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        ps.summarise(rows, partition_by="g", allow=[])
    assert f"--allow {name}" in str(caught.value)
    unchecked = ps.summarise(rows, partition_by="g")
    assert ps.summarise(rows, partition_by="g", allow=[name, "leverage"]).factors == unchecked.factors
    # All rows in one partition hide these, but for one that is far from all others.
    if name != "leverage":
        ps.summarise(rows, allow=[])


def test_all_concerns_are_named_at_once() -> None:
    with pytest.raises(InputError, match=r"few-exact-rows'\]\)\. Besides: few-rows\.$"):
        ps.summarise(pa.concat_tables([cut(table(380), 4), cut(table(9), 9)]), partition_by="g", allow=["leverage"])


def test_what_counts_tell_is_refused_before_rows_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("partsketch.sites.disclosure.checks.look_at_rows", lambda *_: pytest.fail("rows were read"))
    with pytest.raises(InputError, match="--allow few-exact-rows"):
        ps.summarise(cut(table(380), 4), partition_by="g", allow=[])


def test_summaries_that_can_be_read_once_are_said_not_to_be_checked() -> None:
    with pytest.warns(PartsketchWarning, match="were not looked for"):
        ps.summarise(table().to_reader(), allow=[])


def test_summarise_refuses_with_a_site_and_warns_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file with a site is meant to be read beside others; one without stays where the rows are. Both are checked."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(with_row(table(), a=1e6), "rows.parquet")
    command = ["summarise", "rows.parquet", "-o", "rows.psk"]
    assert run([*command, "--site", "north"]) == 2
    assert "--allow leverage" in capsys.readouterr().err
    assert not Path("rows.psk").exists()
    assert run([*command, "--site", "north", "--allow", "leverage"]) == 0
    assert not capsys.readouterr().err
    assert run(command) == 0
    told = capsys.readouterr().err
    assert "Row 100 alone makes 100%" in told
    assert "with --site NAME" in told
    assert run([*command, "--json"]) == 0
    assert "Row 100 alone" in json.loads(capsys.readouterr().out)["warnings"][0]
    assert run([*command, "--allow", "leverage"]) == 0
    assert not capsys.readouterr().err
    # Where all is allowed that rows could tell they are read once.
    monkeypatch.setattr("partsketch.sites.disclosure.checks.look_at_rows", lambda *_: pytest.fail("rows were read"))
    assert run([*command, "--site", "north", "--allow", "leverage", "--allow", "rare-levels"]) == 0


def test_summarise_says_what_counts_tell_without_a_second_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("partsketch.sites.disclosure.checks.look_at_rows", lambda *_: pytest.fail("rows were read"))
    pq.write_table(cut(table(380), 4), "rows.parquet")
    assert run(["summarise", "rows.parquet", "--partition-by", "g", "-o", "rows.psk"]) == 0
    told = capsys.readouterr()
    assert "partition '0' holds exact sums of products of 95 rows" in told.err
    assert "with --site NAME" in told.err
    assert "rare levels were not looked for besides" in told.err
    assert len(ps.read_summaries("rows.psk")) == 4


def test_files_of_two_places_without_a_site_are_not_read_together(tmp_path: Path) -> None:
    """So whoever wants to send a file names a site, and has it checked."""
    for number in range(2):
        ps.summarise(table(500 + number)).save(tmp_path / f"{number}.psk")
    with pytest.raises(InputError, match="is in twice"):
        ps.read_summaries(tmp_path / "*.psk")


def test_sites_summarise_levels_that_they_agree_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("levels.json").write_text('{"g": ["a", "b", "c"]}')
    for site, level in (("north", "b"), ("south", "c")):
        pq.write_table(table(300).append_column("g", pa.array(["a", level] * 150)), f"{site}.parquet")
        command = ["summarise", f"{site}.parquet", "--levels", "levels.json", "--site", site, "-o", f"{site}.psk"]
        assert run(command) == 0
    assert ps.read_summaries("*.psk").columns == ("a", "b", "y", "g=b", "g=c")


def test_the_divergence_is_that_of_the_two_laws() -> None:
    """The integral that defines it, of one row of the sketch in the direction of the row that is removed."""
    from scipy.integrate import quad
    from scipy.stats import norm

    for leverage, order in ((0.01, 2.0), (0.1, 2.0), (0.1, 8.0), (0.3, 1.5)):
        without = math.sqrt(1 - leverage)

        def ratio(x: float, order: float = order, without: float = without) -> float:
            return math.exp(order * norm.logpdf(x) + (1 - order) * norm.logpdf(x, scale=without))

        expected = 30 * math.log(quad(ratio, -60, 60, points=[0], limit=500)[0]) / (order - 1)
        assert ps.theory.row_removal_divergence(leverage, 30, order) == pytest.approx(expected, rel=1e-6)
    assert ps.theory.row_removal_divergence(0.5, 30, 2.0) == math.inf
    assert ps.theory.row_removal_divergence(0.0, 30, 2.0) == 0
    with pytest.raises(InputError, match="leverage"):
        ps.theory.row_removal_divergence(1.5, 30)


def test_columns_beyond_sums_of_squares_are_refused_in_a_sentence() -> None:
    rows = table()
    rows = rows.set_column(2, "y", pa.array(np.where(np.arange(len(rows)) % 2, 1.7e308, -1.7e308)))
    with pytest.raises(InputError, match="squares overflow"):
        ps.sketch(rows, "y", allow=[])
