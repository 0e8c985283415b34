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
from partsketch import InputError, Summary
from partsketch.sketches.base import sketch_kinds
from partsketch.summaries.provenance import Part, site_seed

COLOURS = np.array(["blue", "green", "red"])


def rows(count: int, seed: int = 0) -> pa.Table:
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(count, 3))
    y = 1 + x @ [1.0, -2.0, 3.0] + draw.normal(size=count)
    columns: dict[str, Any] = {f"x{j}": x[:, j] for j in range(3)}
    return pa.table({**columns, "y": y, "z": y + x[:, 0] ** 2})


def same_model(first: ps.Model, second: ps.Model) -> None:
    """To the last bit: coefficients, certificates and intervals."""
    assert np.array_equal(first.coefficients, second.coefficients)
    assert np.array_equal(first.intercept, second.intercept)
    assert first.certificates == second.certificates
    assert [one.to_dict() for one in first.inferences] == [one.to_dict() for one in second.inferences]
    assert str(first.summary()) == str(second.summary())


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


def a_site(name: str, **options: Any) -> Summary:
    chosen: dict[str, Any] = {"features": ["x0", "x1", "x2"], "random_state": 1, "site": name, **options}
    summary: Summary = ps.sketch(rows(200, len(name)), "y", **chosen)
    return summary


@pytest.mark.filterwarnings("ignore:The sketch of partition .* has 20 rows and the data have 3")
def test_what_does_not_agree_is_refused() -> None:
    north = a_site("north")
    cases = [
        (a_site("south", features=["x0", "x1"], sketch_size=20), "'x2' in the sketch of 'north' only"),
        (a_site("south", features=["x0", "x1", "z"]), r"different columns \('x2' in .* only; 'z' in"),
        (a_site("south", features=["x0", "x2", "x1"]), "different orders"),
        (a_site("south", sketch_size=21), r"different numbers of sketch rows \(20, 21\)"),
        (a_site("south", sketch="triangular", random_state=None), r"different sketches \(gaussian, triangular\)"),
        (replace(a_site("south"), about=replace(north.about, weighted=True)), "only one has sample weights"),
        (a_site("north", random_state=2), "Site 'north' is in twice"),
        (north, "is in twice"),
        (ps.sketch(rows(9), "y", ["x0", "x1", "x2"], site="north", sketch_size=20, n_partitions=3)[1], "is in twice"),
        (replace(north, parts=(replace(north.parts[0], site="east"),)), "same numbers under different names"),
        (replace(a_site("south"), parts=(replace(north.parts[0], site="east"),)), "same random numbers"),
    ]
    for other, message in cases:
        with pytest.raises(InputError, match=message):
            ps.combine([north, other])
        with pytest.raises(InputError):
            ps.combine([other, north])


def test_partitions_of_other_cuts_may_share_rows() -> None:
    """Partition 0 of two and partition 1 of three overlap, though their numbers differ."""
    options: dict[str, Any] = {"target": "y", "partition_by": "shuffle", "sketch_size": 20, "random_state": 1}
    halves = ps.sketch(rows(300), n_partitions=2, site="a", **options)
    thirds = ps.sketch(rows(300), n_partitions=3, site="a", **options)
    ps.combine(halves)
    with pytest.raises(InputError, match="is in twice"):
        ps.combine([halves[0], thirds[1]])


def test_levels_must_agree_and_can_be_given() -> None:
    def coloured(count: int, colours: list[str]) -> pa.Table:
        return rows(count).append_column("colour", pa.array([colours[i % len(colours)] for i in range(count)]))

    north, south = coloured(200, ["blue", "green"]), coloured(300, ["blue", "red"])
    found = [
        ps.sketch(table, "y", ["x0", "colour"], encode=True, site=name, sketch_size=20)
        for name, table in (("north", north), ("south", south))
    ]
    with pytest.raises(InputError, match=r"levels of column 'colour' \('green' in .*'north'.* only; 'red' in"):
        ps.combine(found)
    levels = {"colour": ["blue", "green", "red"]}
    agreed = [
        ps.sketch(table, "y", ["x0", "colour"], levels=levels, site=name, sketch="triangular")
        for name, table in (("north", north), ("south", south))
    ]
    model = ps.combine(agreed)
    pooled = ps.fit(pa.concat_tables([north, south]), "y", ["x0", "colour"], encode=True, method="exact")
    assert model.feature_names == pooled.feature_names == ("x0", "colour=green", "colour=red")
    np.testing.assert_allclose(model.coefficients, pooled.coefficients, rtol=1e-10)
    np.testing.assert_allclose(model.predict(south), pooled.predict(south), rtol=1e-10)
    assert ps.combine(agreed, features=["colour"]).feature_names == ("colour=green", "colour=red")
    with pytest.raises(InputError, match="colour"):
        ps.sketch(south, "y", ["colour"], levels={"colour": ["blue", "green"]})
    for wrong in ({"colour": "blue"}, {"colour": ["a", "a"]}, {"colour": [1]}, ["colour"]):
        with pytest.raises(InputError, match="levels"):
            ps.sketch(south, "y", ["colour"], levels=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "q"}, "no column 'q': choose among 'x0'"),
        ({"features": ["x0", "q"]}, "no column 'q'"),
        ({"features": ["(intercept)"]}, "no column"),
        ({"target": "y", "features": ["y"]}, "both the target and a feature"),
        ({"features": ["x0", "x0"]}, "named twice"),
        ({"method": "exact"}, "choose 'stack' or 'partition'"),
        ({"method": "whole"}, "choose 'stack' or 'partition'"),
        ({"alpha": -1.0}, "alpha is -1.0"),
        ({"averaging": "median"}, "averaging is 'median'"),
        ({"method": "stack", "averaging": "inverse_variance"}, "goes with the methods"),
    ],
)
def test_wrong_questions_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ps.combine([a_site("north"), a_site("south")], **options)


def test_sketches_too_small_for_the_question() -> None:
    small = [a_site(name, sketch_size=5) for name in ("north", "south")]
    with pytest.raises(InputError, match=r"sketches of 5 rows: 4 columns .* need at least 6 for a fit of each; use"):
        ps.combine(small, method="partition")
    with pytest.raises(InputError, match=r"have 5 rows together: 4 columns .* need at least 6; choose fewer features"):
        ps.combine(small[:1])
    with pytest.warns(ps.PartsketchWarning, match="infinite variance"):
        assert ps.combine(small, features=["x0"], method="partition").coefficients.shape == (1, 1)
    assert ps.combine(small, alpha=1.0).certificate.kind == "unavailable"
    with pytest.warns(ps.PartsketchWarning, match="nothing is compressed"):
        few = ps.sketch(rows(5), "y", ["x0", "x1", "x2"], site="few", sketch_size=20)
    with pytest.raises(InputError, match="stands for 5 rows"):
        ps.combine([a_site("north"), few])


def test_nothing_to_combine(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to combine"):
        ps.combine([])
    with pytest.raises(InputError, match="No file matches"):
        ps.combine(str(tmp_path / "*.psk"))
    with pytest.raises(InputError, match="Cannot combine int"):
        ps.combine([3])
    with pytest.raises(InputError, match="Name a target"):
        ps.combine(ps.sketch(rows(100)))
    with pytest.raises(InputError, match="without an intercept"):
        ps.combine(ps.sketch(rows(100), "y", fit_intercept=False), fit_intercept=True)


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
    assert "100 rows with missing values were dropped" in sentences


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sketch": "cubist"}, "sketch is 'cubist'"),
        ({"sketch": "triangular", "sketch_size": 5}, "exact summary has no such size"),
        ({"sketch_size": 0}, "sketch_size is 0"),
        ({"n_partitions": 0}, "n_partitions is 0"),
        ({"n_partitions": 1000}, "larger than the number of rows"),
        ({"partition_by": "order"}, "needs n_partitions"),
        ({"partition_by": "z", "n_partitions": 2}, "give no n_partitions"),
        ({"site": "a\nb"}, "has control characters"),
        ({"label": "x" * 1001}, "longer than 1000"),
        ({"private": True, "random_state": 1}, "takes no seed"),
        ({"private": True, "sketch": "triangular"}, "cannot be private"),
        ({"round_rows": 10}, "private sketches only"),
        ({"private": True, "round_rows": 0}, "round_rows is 0"),
    ],
)
def test_wrong_sketches_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ps.sketch(rows(100), "y", **options)


def test_odd_columns_are_refused() -> None:
    with pytest.raises(InputError, match="rename"):
        ps.sketch(pa.table({"a\nb": [1.0], "y": [1.0]}))
    with pytest.raises(InputError, match="names the intercept"):
        ps.sketch(pa.table({"(intercept)": [1.0], "y": [1.0]}))
    with pytest.raises(InputError, match="no rows"):
        ps.sketch(pa.table({"a": [None, None], "y": [1.0, 2.0]}, schema=pa.schema([("a", "f8"), ("y", "f8")])),
                  missing="drop")  # fmt: skip


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
        halves.append(Summary.from_bytes(replace(half, parts=(part,), row_count=stop - start).to_bytes()))
    total = halves[0].sum(halves[1])
    np.testing.assert_allclose(total.matrix, whole.matrix, rtol=0, atol=1e-12)
    assert (total.row_count, total.parts[0].start, total.parts[0].stop) == (300, 0, 300)


@pytest.mark.parametrize("factors", [(1.0, 1.0), (1e49, 1e49), (1e-49, 1e-49), (1e-14, 1.0), (1.0, 0.0)])
@pytest.mark.parametrize("kind", ["gaussian", "triangular"])
def test_extreme_but_valid_files_give_a_model_or_a_sentence(
    tmp_path: Path, kind: str, factors: tuple[float, float]
) -> None:
    """Anybody can write a valid file of odd numbers: no warning of NumPy, no coefficient that is not finite."""
    generator = np.random.default_rng(1)
    methods = ("partition", "stack") if kind == "gaussian" else ("exact", "average")
    for column in range(4):
        for rows in (6, 2**53):
            matrices = [generator.normal(size=(12, 4)) for _ in range(2)]
            for matrix, factor in zip(matrices, factors, strict=True):
                matrix[:, column] *= factor
            summaries = [
                Summary(matrix, ("(intercept)", "a", "b", "y"), kind, (Part(name, 0, None, None, 12, None),), rows, 1.0)
                for name, matrix in zip("ns", matrices, strict=True)
            ]
            for method in methods:
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", ps.PartsketchWarning)
                        model = ps.combine(summaries, "y", method=method)
                except InputError:
                    continue
                assert np.isfinite(model.coefficients).all()
                model.save(tmp_path / "model.json")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"row_count": 0}, "stands for no rows"),
        ({"weight_sum": 0.0}, "sum of weights of 0"),
        ({"weight_sum": 1e300}, "sum of weights of 1e"),
        ({"matrix": np.full((20, 5), 1e200)}, r"Column '\(intercept\)' .* whose powers get lost"),
        ({"matrix": np.full((20, 5), 1e-200)}, "whose powers get lost"),
        ({"matrix": np.full((20, 5), 1e-16)}, "give it the same unit at all sites"),
    ],
)
def test_files_without_sense_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ps.combine([a_site("south"), replace(a_site("north"), **changes)])
