"""What files of sites tell of themselves, through writing, reading, stacking and combining."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import partsketch as ps
from partsketch import InputError, PartsketchWarning, Summary
from partsketch.sources.encoding import Encoding
from partsketch.summaries.provenance import About
from tests.by_hand import judged

ROWS = 120


def rows(seed: int = 0, kinds: tuple[str, ...] = ("a", "b", "c"), count: int = ROWS) -> pa.Table:
    draw = np.random.default_rng(seed)
    x = draw.normal(size=count)
    kind = np.array(kinds)[draw.integers(0, len(kinds), count)]
    y = 2 * x + (kind == "b") - 3 * (kind == "c") + draw.normal(size=count)
    return pa.table({"x": x, "kind": kind, "y": y, "w": draw.uniform(0.5, 2.0, count)})


def quietly(files: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PartsketchWarning)
        return ps.combine(files, **options)


def test_what_can_be_told_of_two_together() -> None:
    """Weights of one are weights of both; privacy, exact counts and known numbers only when both have them."""
    plain = About(("y",), Encoding(), False, False, 1, 3)
    other = About(("y",), Encoding(), True, True, 100, None)
    for joined in (plain.joined(other), other.joined(plain)):
        assert joined == About(("y",), Encoding(), True, False, 100, None)
    assert plain.joined(plain) == About(("y",), Encoding(), False, False, 1, 6)
    assert other.joined(other) == About(("y",), Encoding(), True, True, 100, None)
    assert plain.joined(About(("z",))).targets == ()


@pytest.mark.parametrize("intercept", [True, False])
def test_agreed_levels_with_and_without_an_intercept(intercept: bool, tmp_path: Path) -> None:
    """A site that lacks a level; files on disk; the model predicts what indicators by hand give."""
    levels = {"kind": ["a", "b", "c"]}
    tables = [rows(1), rows(2, ("a", "c"))]
    for number, table in enumerate(tables):
        made = ps.sketch(table, "y", ["x", "kind"], sketch="triangular", site=f"s{number}", levels=levels,
                         fit_intercept=intercept, weights="w")  # fmt: skip
        made.save(tmp_path / f"{number}.psk")
        again = Summary.load(tmp_path / f"{number}.psk")
        assert np.array_equal(again.matrix, made.matrix)
        assert (again.about, again.parts, again.columns) == (made.about, made.parts, made.columns)
        assert (again.row_count, again.weight_sum) == (made.row_count, made.weight_sum)
        assert made.about.encoding.drop_first is intercept
    model = quietly(str(tmp_path / "*.psk"))
    both = pa.concat_tables(tables)
    kinds = np.array(both["kind"].to_pylist())
    X = np.column_stack([both["x"].to_numpy(), *[kinds == name for name in "abc"[int(intercept) :]]]).astype(float)
    expected = judged(X, both["y"].to_numpy(), both["w"].to_numpy(), intercept)
    np.testing.assert_allclose(model.column_coefficients[:, 0], expected.coefficients, rtol=1e-9)
    assert model.record.weight_sum == pytest.approx(expected.weight_sum)
    assert model.record.row_count == 2 * ROWS
    assert model.encoding.drop_first is intercept
    predicted = X @ expected.coefficients[int(intercept) :] + (expected.coefficients[0] if intercept else 0.0)
    np.testing.assert_allclose(model.predict(both), predicted, rtol=1e-9, atol=1e-9)
    model.save(tmp_path / "model.json")
    np.testing.assert_array_equal(ps.load(tmp_path / "model.json").predict(both), model.predict(both))


def test_other_reference_levels_are_refused_though_the_columns_are_the_same() -> None:
    first = ps.sketch(rows(1, ("a", "b")), "y", ["x", "kind"], site="n", levels={"kind": ["a", "b"]}, random_state=0)
    second = ps.sketch(rows(2, ("c", "b")), "y", ["x", "kind"], site="s", levels={"kind": ["c", "b"]}, random_state=0)
    assert first.columns == second.columns
    with pytest.raises(InputError, match="encode text columns differently"):
        ps.combine([first, second])


def test_dropped_rows_are_counted_once_for_all_partitions() -> None:
    table = rows().set_column(0, "x", pa.array([None if i % 10 == 0 else float(i * i % 7) for i in range(ROWS)]))
    made = ps.sketch(table, "y", ["x"], n_partitions=3, missing="drop", random_state=0)
    assert [summary.about.rows_dropped for summary in made] == [12, 0, 0]
    assert [summary.row_count for summary in made] == [36, 36, 36]
    assert quietly(made).record.rows_dropped == 12
    private = ps.sketch(table, "y", ["x"], n_partitions=3, missing="drop", private=True)
    assert [summary.about.rows_dropped for summary in private] == [None] * 3


def test_private_files_do_not_tell_the_names_of_files(tmp_path: Path) -> None:
    for name in ("anna", "berta"):
        pq.write_table(rows(), tmp_path / f"{name}.parquet")
    path = str(tmp_path / "*.parquet")
    for private in (True, False):
        options: dict[str, Any] = {"private": True} if private else {"random_state": 0}
        made = ps.sketch(path, "y", ["x"], partition_by="file", sketch_size=20, **options)
        names = [summary.parts[0].partition for summary in made]
        assert names == (["0", "1"] if private else ["anna.parquet", "berta.parquet"])
        assert (b"anna" in made[0].to_bytes()) is not private


def test_partitions_of_two_cuts_may_hold_the_same_rows() -> None:
    """The same site, options and number of partitions, but other borders: rows 50 to 59 would be in both or neither."""
    options: dict[str, Any] = {"site": "n", "n_partitions": 2, "random_state": 0, "sketch_size": 20}
    short, long = (ps.sketch(rows(count=count), "y", ["x"], **options) for count in (100, 120))
    with pytest.raises(InputError, match="is in twice"):
        ps.combine([short[0], long[1]])
    quietly(short)


@pytest.mark.parametrize(("spread", "constant"), [(0.0, True), (1e-6, False), (1.0, False)])
def test_targets_that_hardly_vary_are_not_constant(spread: float, constant: bool) -> None:
    table = rows()
    y = 5.0 + spread * table["y"].to_numpy()
    table = table.set_column(2, "y", pa.array(y))
    for kind in ("triangular", "gaussian"):
        made = ps.sketch(table, "y", ["x"], sketch=kind, random_state=0)
        record = quietly([made]).record
        assert any("constant (5 in every row)" in sentence for sentence in record.warnings) == constant
