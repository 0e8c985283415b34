"""Private sketches: randomness of the operating system, nothing told that need not be, and a bound on what is told."""

from __future__ import annotations

import json
import math
import os
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2, kstest

import partsketch as ps
from partsketch import InputError, Summary
from partsketch.sketches.base import SketchSpecification
from partsketch.sketches.system_random import fill_system_normals
from partsketch.theory.information import LOG_TWO_PI_E, sketch_information_bound

ROWS = 1234


def table(rows: int = ROWS) -> pa.Table:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(rows, 2))
    w = draw.uniform(1, 2, size=rows)
    return pa.table({"a": x[:, 0], "b": x[:, 1], "y": x @ [1.0, 2.0] + draw.normal(size=rows), "w": w})


def header_of(summary: Summary) -> dict[str, Any]:
    data = summary.to_bytes()
    (length,) = struct.unpack("<I", data[12:16])
    values: dict[str, Any] = json.loads(data[16 : 16 + length])
    return values


def test_the_numbers_are_normal_and_independent() -> None:
    """400,000 numbers of given bytes: what the operating system would give is made into normal numbers here."""
    out = np.empty((400, 1000))
    fill_system_normals(2.0, out)
    assert kstest(out.ravel() / 2.0, "norm").pvalue > 1e-6
    # Correlations of 400 rows with 1000 numbers each have standard deviation 0.032; six of them.
    correlations = np.asarray(np.corrcoef(out))[np.triu_indices(400, 1)]
    assert np.abs(correlations).max() < 6 * 0.032
    # Two numbers made of one radius and two angles are not correlated, but their squares are, by one half.
    squares = np.asarray(np.corrcoef(out**2))[np.triu_indices(400, 1)]
    assert np.abs(squares).max() < 0.35
    again = np.empty((4, 1000))
    fill_system_normals(2.0, again)
    assert not np.isin(again, out).any()


def test_the_entries_are_the_bytes_of_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same bytes the sketch is the same, and it asks for four bytes per entry."""
    asked: list[int] = []

    def fixed(count: int) -> bytes:
        asked.append(count)
        return bytes(i * 97 % 251 for i in range(count))

    monkeypatch.setattr(os, "urandom", fixed)
    options: dict[str, Any] = {"private": True, "sketch_size": 8, "engine": ps.LocalEngine(1)}
    first, second = (ps.sketch(table(), "y", ["a", "b"], **options) for _ in range(2))
    assert np.array_equal(first.matrix, second.matrix)
    entries = [count for count in asked if count > 16]  # the rest names the batch
    assert sum(entries) == 2 * 4 * 8 * ROWS


def test_two_private_sketches_of_the_same_rows_differ() -> None:
    first, second = (ps.sketch(table(), "y", private=True) for _ in range(2))
    assert not np.isin(first.matrix, second.matrix).any()
    assert first.parts[0].cut != second.parts[0].cut


def test_the_sketch_has_the_right_law() -> None:
    """E ZᵀZ = AᵀA: 400 sketches of 10 rows; entries of the mean have relative deviation √(2/4000) at most."""
    rows = table(60)
    exact = ps.sketch(rows, "y", ["a", "b"], sketch="triangular")
    gram = exact.matrix.T @ exact.matrix
    options: dict[str, Any] = {"private": True, "sketch_size": 10, "engine": ps.LocalEngine(1)}
    sketches = [ps.sketch(rows, "y", ["a", "b"], **options).matrix for _ in range(400)]
    mean = sum(matrix.T @ matrix for matrix in sketches) / 400
    scale = np.sqrt(np.outer(np.diagonal(gram), np.diagonal(gram)))
    assert np.abs((mean - gram) / scale).max() < 5 * math.sqrt(2 / 4000)


@pytest.mark.parametrize("options", [{}, {"n_partitions": 2}, {"n_partitions": 2, "partition_by": "shuffle"}])
def test_the_file_tells_neither_seed_nor_row_numbers(options: dict[str, Any]) -> None:
    made: Any = ps.sketch(table(), "y", ["a", "b"], private=True, round_rows=100, site="north", **options)
    for summary in (made,) if isinstance(made, Summary) else made:
        values = header_of(summary)
        assert values["private"] is True
        assert values["rows_dropped"] is None
        assert values["row_count"] % 100 == 0
        assert values["weight_sum"] == values["row_count"]
        (part,) = values["parts"]
        assert (part["seed"], part["start"], part["stop"]) == (None, None, None)
        # Digits inside random names are no row numbers.
        told = set(re.findall(r"(?<![0-9a-zA-Z])\d+(?![0-9a-zA-Z])", json.dumps(values)))
        assert not told & {str(ROWS), str(ROWS // 2)}


@pytest.mark.parametrize(("rows", "multiple", "told"), [(1234, 1000, 1000), (1500, 1000, 2000), (3, 10, 10), (7, 1, 7)])
@pytest.mark.filterwarnings("ignore:The sketch has 20 rows and the data have")
def test_row_counts_are_rounded(rows: int, multiple: int, told: int) -> None:
    assert ps.sketch(table(rows), "y", private=True, round_rows=multiple).row_count == told


def test_sums_of_weights_are_rounded_with_the_row_count() -> None:
    rows = table()
    exact = float(np.sum(rows["w"].to_numpy()))
    summary = ps.sketch(rows, "y", ["a", "b"], weights="w", private=True, round_rows=100)
    assert summary.weight_sum == float(f"{exact:.1e}") != exact


def test_missing_rows_are_not_counted_for_others() -> None:
    rows = pa.table({"a": [1.0, None] * 50, "y": [1.0, 2.0] * 50})
    assert ps.sketch(rows, "y", private=True, missing="drop").about.rows_dropped is None


def test_a_model_from_private_files_is_approximate_when_rows_are_rounded(tmp_path: Path) -> None:
    for name in ("north", "south"):
        made = ps.sketch(table(), "y", ["a", "b"], private=True, round_rows=1000, site=name, sketch_size=60)
        made.save(tmp_path / f"{name}.psk")
    with pytest.warns(ps.PartsketchWarning, match="row counts of 2 of 2 files are rounded"):
        model = ps.combine(str(tmp_path / "*.psk"))
    assert model.certificate.kind == "approximate"
    assert "rounded to multiples of 1000" in model.certificate.reason
    assert "lose about" in model.certificate.sentence
    assert model.conf_int().shape == (3, 2)
    assert model.record.seed is None
    model.save(tmp_path / "model.json")
    assert '"seed": null' in (tmp_path / "model.json").read_text()
    exact = [ps.sketch(table(), "y", ["a", "b"], private=True, site=name, sketch_size=60) for name in ("north", "east")]
    assert ps.combine(exact, method="partition").certificate.kind == "estimated"


def test_a_private_site_is_not_combined_twice() -> None:
    options: dict[str, Any] = {"target": "y", "private": True, "sketch_size": 30}
    first, second = (ps.sketch(table(), site="north", **options) for _ in range(2))
    with pytest.raises(InputError, match="Site 'north' is in twice"):
        ps.combine([first, second])
    with pytest.raises(InputError, match="is in twice"):
        ps.combine([first, Summary.from_bytes(first.to_bytes())])
    cuts = [ps.sketch(table(), site="north", n_partitions=2, **options) for _ in range(2)]
    ps.combine(cuts[0])
    with pytest.raises(InputError, match="is in twice"):
        ps.combine([cuts[0][0], cuts[1][1]])
    with pytest.raises(InputError, match="same sketch rows"):
        cuts[0][0].sum(cuts[0][1])


def test_a_seed_and_privacy_exclude_each_other() -> None:
    with pytest.raises(InputError, match="takes no seed"):
        SketchSpecification("gaussian", 5, 1, private=True)
    with pytest.raises(InputError, match="cannot be private"):
        SketchSpecification("triangular", private=True)
    with pytest.raises(InputError, match="seed is None"):
        SketchSpecification("gaussian", 5)


def test_the_bound_of_the_paper_for_columns_that_are_not_nearly_dependent() -> None:
    draw = np.random.default_rng(1)
    sketch = draw.normal(size=(50, 6))
    bound = sketch_information_bound(sketch, 10_000, known_columns=1)
    assert bound.covered_by_paper
    assert bound.total_bits == pytest.approx(50 * 6 / 2 * math.log2(2 * math.pi * math.e))
    assert bound.bits_per_entry == pytest.approx(bound.total_bits / (10_000 * 5))
    # Units do not matter.
    again = sketch_information_bound(sketch * [1.0, 1e-3, 1e6, 7.0, 1e-9, 2.0], 10_000, known_columns=1)
    assert again.total_bits == pytest.approx(bound.total_bits)
    assert again.dependence == pytest.approx(bound.dependence)


def test_the_dependence_of_columns_is_estimated_without_bias() -> None:
    """1,500 sketches of 12 rows and 4 correlated columns; five standard errors of their mean."""
    draw = np.random.default_rng(2)
    rows = draw.normal(size=(200, 4)) @ draw.normal(size=(4, 4))
    gram = rows.T @ rows
    scale = np.sqrt(np.diagonal(gram))
    truth = -np.linalg.slogdet(gram / np.outer(scale, scale))[1] / 4
    estimates = [sketch_information_bound(draw.normal(size=(12, 200)) @ rows, 200).dependence for _ in range(1500)]
    error = np.std(estimates) / math.sqrt(1500)
    assert abs(np.mean(estimates) - truth) < 5 * error
    assert error < 0.05 * truth


def test_nearly_dependent_columns_make_the_bound_larger_and_dependent_ones_count_once() -> None:
    draw = np.random.default_rng(3)
    base = draw.normal(size=(100, 2))
    near = np.column_stack([base[:, 0], base[:, 0] + 1e-6 * base[:, 1]])
    bound = sketch_information_bound(near, 5000)
    assert not bound.covered_by_paper
    assert bound.total_bits == pytest.approx(100 * 2 / 2 * bound.dependence / math.log(2))
    assert bound.dependence > LOG_TWO_PI_E
    twice = sketch_information_bound(np.column_stack([base, base[:, 0] - base[:, 1], 0 * base[:, 0]]), 5000)
    assert twice.total_bits == pytest.approx(sketch_information_bound(base, 5000).total_bits)
    assert math.isnan(sketch_information_bound(base[:1], 5000).dependence)
    with pytest.raises(InputError, match="shape"):
        sketch_information_bound(base, 5000, known_columns=2)


@pytest.mark.parametrize(("low", "high", "size"), [(1.0, 4.0, 5), (1.0, 1.5, 3), (1.0, 100.0, 2)])
def test_the_inequality_behind_the_bound(low: float, high: float, size: int) -> None:
    """One column whose sum of squares is one of two, each with probability ½: here the information can be computed.

    ‖Z‖² m is G times a chi-square variable and tells all that Z tells of G.
    """

    points = np.geomspace(1e-9, high * float(chi2.ppf(1 - 1e-12, size)), 200_001)
    densities = {g: chi2.pdf(points / g, size) / g for g in (low, high)}
    mixture = 0.5 * densities[low] + 0.5 * densities[high]
    information = sum(
        0.5 * float(np.trapezoid(density * np.log(np.maximum(density, 1e-300) / mixture), points))
        for density in densities.values()
    )
    bound = size / 2 * (math.log(0.5 * (low + high)) - 0.5 * (math.log(low) + math.log(high)))
    assert 0 < information <= min(bound, math.log(2))
    # Not much larger than the truth while the two laws are alike: a wrong constant would show.
    if high < 2:
        assert information > 0.8 * bound
