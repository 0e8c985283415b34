"""What must not be combined is refused, and so are questions and sketches that make no sense."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import partsketch as ps
from partsketch import InputError, Summary
from partsketch.summaries.provenance import Part
from tests.sites.data import a_site, rows


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sketch": "cubist"}, "sketch is 'cubist'"),
        ({"sketch": "triangular", "sketch_size": 5}, "exact summary has no such size"),
        ({"sketch_size": 0}, "sketch_size is 0"),
        ({"n_partitions": 0}, "n_partitions is 0"),
        ({"n_partitions": 1000}, "larger than the number of rows"),
        ({"n_partitions": 2_000_000_000, "partition_by": "shuffle"}, "larger than the number of rows, 100: give fewer"),
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


@pytest.mark.parametrize("factors", [(1.0, 1.0), (1e49, 1e49), (1e-49, 1e-49), (1e-14, 1.0), (1.0, 0.0)])
@pytest.mark.parametrize("kind", ["gaussian", "triangular"])
def test_extreme_but_valid_files_give_a_model_or_a_sentence(
    tmp_path: Path, kind: str, factors: tuple[float, float]
) -> None:
    """Anybody can write a valid file of odd numbers: no warning of NumPy, no coefficient that is not finite."""
    generator = np.random.default_rng(1)
    methods = ("partition", "stack") if kind == "gaussian" else ("exact", "average")
    for column in range(4):
        for count in (6, 2**53):
            matrices = [generator.normal(size=(12, 4)) for _ in range(2)]
            for matrix, factor in zip(matrices, factors, strict=True):
                matrix[:, column] *= factor
            summaries = [
                Summary(
                    matrix, ("(intercept)", "a", "b", "y"), kind, (Part(name, 0, None, None, 12, None),), count, 1.0
                )
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
        ({"matrix": np.full((20, 5), 1e200)}, r"Column '\(intercept\)' .* whose powers get lost: divide it"),
        ({"matrix": np.full((20, 5), 1e-200)}, "whose powers get lost: multiply it"),
        ({"matrix": np.full((20, 5), 1e-16)}, "give it the same unit at all sites"),
    ],
)
def test_files_without_sense_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ps.combine([a_site("south"), replace(a_site("north"), **changes)])
