"""Sites that share only sketches: what is combined is what a fit would be, and what must not be combined is refused."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import partsketch as ps
from partsketch import Summary
from partsketch.sketches.base import sketch_kinds
from partsketch.summaries.provenance import site_seed
from tests.sites.data import a_site, rows, same_model

COLOURS = np.array(["blue", "green", "red"])

RANDOM_KINDS = sketch_kinds()


@pytest.mark.parametrize("kind", RANDOM_KINDS)
@pytest.mark.parametrize("method", ["partition", "stack"])
@pytest.mark.parametrize("partition_by", ["order", "shuffle"])
def test_files_of_partitions_give_the_fit_bit_for_bit(
    tmp_path: Path, kind: str, method: str, partition_by: str
) -> None:
    """A site without a name uses the random numbers of a fit; the order of the files does not matter."""
    table = rows(1000)
    options: dict[str, Any] = {
        "n_partitions": 4, "partition_by": partition_by, "sketch": kind, "sketch_size": 40, "random_state": 5,
    }  # fmt: skip
    for number, summary in enumerate(ps.sketch(table, "y", ["x0", "x1", "x2"], **options)):
        summary.save(tmp_path / f"{number}.psk")
    files = [tmp_path / f"{number}.psk" for number in (2, 0, 3, 1)]
    fitted = ps.fit(table, "y", ["x0", "x1", "x2"], method=method, **options)
    combined = ps.combine(files, method=method)
    same_model(combined, fitted)
    assert combined.record.partitions == fitted.record.partitions
    assert combined.record.seed is None


@pytest.mark.parametrize("method", ["exact", "average"])
def test_exact_files_give_exact_models(tmp_path: Path, method: str) -> None:
    table = rows(1000)
    for number, summary in enumerate(ps.sketch(table, "y", ["x0", "x1", "x2"], n_partitions=4, sketch="triangular")):
        summary.save(tmp_path / f"{number}.psk")
    combined = ps.combine(str(tmp_path / "*.psk"), method=method)
    fitted = ps.fit(table, "y", ["x0", "x1", "x2"], method=method, n_partitions=4)
    np.testing.assert_allclose(combined.coefficients, fitted.coefficients, rtol=1e-12)
    np.testing.assert_allclose(combined.conf_int(), fitted.conf_int(), rtol=1e-10)
    assert combined.certificate.kind == "exact"
    assert combined.record.row_count == 1000


def test_one_sketch_answers_for_any_target_and_features(tmp_path: Path) -> None:
    """Columns of Z are sketches of columns: a file made without a target serves every regression."""
    table = rows(600)
    options: dict[str, Any] = {"n_partitions": 3, "sketch_size": 30, "random_state": 2}
    summaries = ps.sketch(table, **options)
    for target, features in (("y", ["x0", "x1"]), ("z", ["y", "x2"]), ("x1", ["x0"]), (["y", "z"], ["x0", "x2"])):
        combined = ps.combine(summaries, target, features)
        fitted = ps.fit(table, target, features, method="stack", **options)
        # The same numbers; products of other widths are added up in another order.
        np.testing.assert_allclose(combined.coefficients, fitted.coefficients, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(combined.conf_int(), fitted.conf_int(), rtol=1e-8, atol=1e-10)
    assert ps.combine(summaries, "y").feature_names == ("x0", "x1", "x2", "z")
    without = ps.combine(summaries, "y", ["x0"], fit_intercept=False)
    fitted = ps.fit(table, "y", ["x0"], method="stack", fit_intercept=False, **options)
    np.testing.assert_allclose(without.coefficients, fitted.coefficients, rtol=1e-9)


@pytest.mark.parametrize(("kind", "default"), [("gaussian", "stack"), ("srht", "stack"), ("triangular", "exact")])
def test_sketches_are_stacked_and_exact_files_exact_unless_asked_otherwise(kind: str, default: str) -> None:
    summaries = ps.sketch(rows(600), "y", n_partitions=3, sketch=kind, random_state=2)
    model = ps.combine(summaries)
    assert model.method == default
    same_model(model, ps.combine(summaries, method=default))


@pytest.mark.parametrize("private", [False, True])
def test_a_sketch_with_as_many_rows_as_the_data_says_so(private: bool) -> None:
    options: dict[str, Any] = {"target": "y", "features": ["x0"], "private": private}
    told = "no bound protects the rows" if private else "with the seed in the file rows can be computed"
    with pytest.warns(ps.PartsketchWarning, match=f"^The sketch has 50 rows and the data have 50: nothing .* {told};"):
        ps.sketch(rows(50), sketch_size=50, **options)
    with pytest.warns(ps.PartsketchWarning, match=r"The sketch of partition '\d' has 34 rows and the data have 3[34]:"):
        ps.sketch(rows(67), sketch_size=34, n_partitions=2, **options)
    if private:
        # The count that is told is rounded; the rows that there are count.
        with pytest.warns(ps.PartsketchWarning, match="has 60 rows and the data have 55"):
            ps.sketch(rows(55), sketch_size=60, round_rows=100, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ps.sketch(rows(50), sketch_size=49, **options)
        ps.sketch(rows(2), "y", ["x0"], sketch="triangular")


def test_the_seed_of_a_sketch_with_as_many_rows_gives_the_rows_away() -> None:
    """What the warning says: S is known from the seed, and S A = Z is solved for A."""
    table = rows(40)
    with pytest.warns(ps.PartsketchWarning, match="can be computed"):
        summary = ps.sketch(table, "y", ["x0"], sketch_size=40, random_state=5)
    unit = {f"e{j}": np.eye(40)[j] for j in range(40)}
    with pytest.warns(ps.PartsketchWarning, match="can be computed"):
        mixing = ps.sketch(pa.table(unit), sketch_size=40, random_state=5, fit_intercept=False).matrix
    found = np.linalg.solve(mixing, summary.matrix)
    np.testing.assert_allclose(found[:, 1], table["x0"].to_numpy(), atol=1e-9)


def test_named_targets_are_not_features_of_each_other() -> None:
    summary = ps.sketch(rows(300), ["y", "z"], random_state=1)
    assert ps.combine(summary).target_names == ("y", "z")
    assert ps.combine(summary, "y").feature_names == ("x0", "x1", "x2")
    assert ps.combine(summary, "x0").feature_names == ("x1", "x2")


def test_days_are_added_without_touching_old_files(tmp_path: Path) -> None:
    days = [rows(400, seed) for seed in range(3)]
    for number, day in enumerate(days):
        summary = ps.sketch(day, "y", ["x0", "x1", "x2"], site="north", label=f"day {number}", random_state=9)
        summary.save(tmp_path / f"{number}.psk")
        before = [(path, path.read_bytes()) for path in sorted(tmp_path.iterdir())]
        model = ps.combine(str(tmp_path / "*.psk"), method="stack")
        assert model.record.row_count == 400 * (number + 1)
        assert [entry.name for entry in model.record.partitions] == [f"north day {i}" for i in range(number + 1)]
        assert [(path, path.read_bytes()) for path in sorted(tmp_path.iterdir())] == before
    exact = [ps.sketch(day, "y", ["x0", "x1", "x2"], sketch="triangular", label=str(i)) for i, day in enumerate(days)]
    pooled = ps.fit(pa.concat_tables(days), "y", ["x0", "x1", "x2"], method="exact")
    np.testing.assert_allclose(ps.combine(exact).coefficients, pooled.coefficients, rtol=1e-12)


@given(st.tuples(st.text(max_size=5), st.text(max_size=5)), st.tuples(st.text(max_size=5), st.text(max_size=5)))
def test_sites_that_share_a_seed_do_not_share_random_numbers(first: tuple[str, str], second: tuple[str, str]) -> None:
    assert (site_seed(7, *first) == site_seed(7, *second)) == (first == second)


@pytest.mark.filterwarnings("ignore:The sketch has 4,000 rows and the data have 500")
def test_sketches_of_sites_with_one_seed_are_uncorrelated() -> None:
    """The same rows under two names: Z₁ᵀZ₂ would be AᵀA if S were shared; it is noise of relative size 1/√m."""
    table = pa.table({"x": np.ones(500)})
    first, second = (
        ps.sketch(table, site=name, sketch_size=4000, random_state=1, fit_intercept=False).matrix[:, 0]
        for name in ("north", "south")
    )
    correlation = float(first @ second) / 500
    # Standard deviation 1/√4000 = 0.016: five of them.
    assert abs(correlation) < 0.08
    assert float(first @ first) / 500 == pytest.approx(1, abs=0.15)


def test_the_record_tells_files_and_that_no_rows_were_read(tmp_path: Path) -> None:
    a_site("north").save(tmp_path / "n.psk")
    model = ps.combine(tmp_path / "n.psk")
    (told,) = model.record.options["files"]
    assert told["file"] == str(tmp_path / "n.psk")
    assert (told["sites"], told["rows"], told["sketch_rows"], told["private"]) == (["north"], 200, 20, False)
    assert "no rows were read" in model.record.reasons["rows"]
    model.save(tmp_path / "model.json")
    same_model(ps.load(tmp_path / "model.json"), model)


def test_constant_targets_and_dropped_rows_are_told() -> None:
    table = pa.table({"x": [1.0, 2.0, None, 4.0] * 50, "c": [7.3] * 200})
    summaries = [ps.sketch(table, "c", missing="drop", site=name, random_state=1) for name in "ab"]
    with pytest.warns(ps.PartsketchWarning) as caught:
        ps.combine(summaries)
    sentences = " ".join(str(entry.message) for entry in caught)
    assert "Target 'c' is constant (7.3 in every row)" in sentences
    assert "100 rows with missing values or of weight zero were dropped" in sentences


@settings(max_examples=15, deadline=None)
@given(cut=st.integers(41, 259), size=st.integers(6, 40))
def test_stack_of_files_is_the_stack_of_summaries(cut: int, size: int) -> None:
    table = rows(300)
    first = ps.sketch(table.slice(0, cut), "y", site="a", sketch_size=size, random_state=1)
    second = ps.sketch(table.slice(cut), "y", site="b", sketch_size=size, random_state=1)
    stacked = Summary.from_bytes(first.stack(second).to_bytes())
    assert np.array_equal(stacked.matrix, np.vstack([first.matrix, second.matrix]))
    assert stacked.row_count == 300
    assert [part.name for part in stacked.parts] == ["a", "b"]


def test_files_of_following_rows_with_one_sketch_can_be_summed() -> None:
    """The sum of the sketches of two halves, rows numbered on, is the sketch of all; through bytes."""
    table = rows(300)
    whole = ps.sketch(table, "y", random_state=4, sketch_size=10)
    halves = []
    for start, stop in ((0, 120), (120, 300)):
        weight = np.zeros(300)
        weight[start:stop] = 1.0
        weighted = table.append_column("w", pa.array(weight))
        half = ps.sketch(weighted, "y", ["x0", "x1", "x2", "z"], weights="w", random_state=4, sketch_size=10)
        part = replace(half.parts[0], start=start, stop=stop)
        about = replace(half.about, rows_dropped=0)
        halves.append(Summary.from_bytes(replace(half, parts=(part,), about=about).to_bytes()))
    total = halves[0].sum(halves[1])
    np.testing.assert_allclose(total.matrix, whole.matrix, rtol=0, atol=1e-12)
    assert (total.row_count, total.parts[0].start, total.parts[0].stop) == (300, 0, 300)
