"""Columns far from zero: standard errors, merges and stacks around a centre, against extended precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import partsketch as ps
from partsketch import LocalEngine
from partsketch.engines.gather import gather
from partsketch.sketches.base import SketchSpecification
from partsketch.sources import array_source
from partsketch.summaries.partitions import single_partition
from partsketch.summaries.tasks import SummaryRequest
from tests.by_hand import FloatArray, judged

ROWS = 600


def problem() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sensors near 1e6 with a spread of one: sums of squares in doubles would leave four digits of it."""
    draw = np.random.default_rng(9)
    spread = draw.normal(size=(ROWS, 2))
    X = np.round(spread, 6) + np.array([1e6, -3e6])
    return X, spread @ [1.0, -2.0] + 5.0 + draw.normal(size=ROWS), draw.uniform(0.5, 2.0, ROWS)


@pytest.mark.parametrize("weighted", [True, False])
def test_standard_errors_of_slopes_and_intercept(weighted: bool) -> None:
    """The judge moves columns exactly; an intercept a million spreads away has a standard error of millions."""
    X, y, w = problem()
    given = w if weighted else None
    found: Any = ps.SketchedRegression("exact").fit(X, y, given).model_
    moved = judged(X - [1e6, -3e6], y, given)
    np.testing.assert_allclose(found.coefficients[:, 0], moved.coefficients[1:], rtol=1e-8)
    errors = found.inferences[0].standard_errors
    np.testing.assert_allclose(errors[1:], moved.standard_errors[1:], rtol=1e-8)
    direction = np.array([1.0, -1e6, 3e6])
    np.testing.assert_allclose(errors[0], np.sqrt(moved.noise * direction @ moved.inverse @ direction), rtol=1e-8)
    np.testing.assert_allclose(found.certificate.minimal_loss, moved.loss, rtol=1e-9)


@pytest.mark.parametrize("kind", ["triangular", "gaussian", "count_sketch"])
def test_segments_that_lie_apart_are_merged_around_one_centre(kind: str) -> None:
    """Segments of 100 rows, one after another further from zero: the merged summary has the digits of all."""
    X, y, w = problem()
    X = X + 1e5 * (np.arange(ROWS) // 100)[:, None]
    specification = SketchSpecification(kind, 400, 3) if kind != "triangular" else SketchSpecification(kind)
    request = SummaryRequest(specification, single_partition(ROWS), True, segment_rows=100)
    whole = gather(array_source(X, y, w), request, LocalEngine(1)).summaries[0]
    if kind == "triangular":
        A = np.column_stack([np.ones(ROWS), X, y]).astype(np.longdouble)
        gram = (A * w[:, None].astype(np.longdouble)).T @ A
        np.testing.assert_allclose(whole.matrix.T @ whole.matrix, gram.astype(np.float64), rtol=1e-12)
        return
    # A sketch is linear: that of the moved columns is the sketch less so many times its column of ones.
    shift = np.array([0.0, 1.25e6, -2.75e6, 0.0])
    moved = gather(array_source(X - shift[1:3], y, w), request, LocalEngine(1)).summaries[0]
    expected = moved.matrix + moved.matrix[:, :1] * shift
    np.testing.assert_allclose(whole.matrix, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_sites_far_apart_are_stacked_around_one_centre() -> None:
    X, y, w = problem()
    table = np.column_stack([X, y, w])
    table[300:, :2] += [2e5, 1e5]
    sites = [
        ps.sketch(table[rows], "x2", ["x0", "x1"], sketch="triangular", site=str(number), weights="x3")
        for number, rows in enumerate((slice(0, 300), slice(300, ROWS)))
    ]
    shifted = table[:, :2] - [1e6, -3e6]
    expected = judged(shifted, y, w)
    for summaries in (sites, sites[::-1], [sites[0].stack(sites[1])], [sites[1].stack(sites[0])]):
        model: Any = ps.combine(summaries, method="exact")
        np.testing.assert_allclose(model.coefficients[:, 0], expected.coefficients[1:], rtol=1e-7)
        np.testing.assert_allclose(model.certificate.minimal_loss, expected.loss, rtol=1e-8)


@pytest.mark.parametrize("weighted", [True, False])
def test_rows_that_go_far_away_after_the_first_tile(weighted: bool) -> None:
    """The first tile lies around zero and is summed plainly; what comes then makes it move to another centre."""
    draw = np.random.default_rng(2)
    rows = 20_000
    spread = draw.normal(size=(rows, 2))
    X = np.round(spread, 6)
    X[9_000:] += [3e4, 1e4]
    y = spread @ [1.0, -2.0] + draw.normal(size=rows)
    w = draw.uniform(0.5, 2.0, rows) if weighted else None
    found: Any = ps.SketchedRegression("exact").fit(X, y, w).model_
    expected = judged(X - [1.5e4, 5e3], y, w)
    # The two clouds are 3e4 spreads apart: the judge, in extended precision, loses nine of nineteen digits.
    scale = expected.standard_errors[1:]
    assert np.all(np.abs(found.coefficients[:, 0] - expected.coefficients[1:]) < 1e-5 * scale)
    np.testing.assert_allclose(found.inferences[0].standard_errors[1:], scale, rtol=1e-7)
    np.testing.assert_allclose(found.certificate.minimal_loss, expected.loss, rtol=1e-9)


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray])
@pytest.mark.parametrize("weighted", [True, False])
def test_tiny_columns_in_whole_tiles_are_not_columns_of_zeros(layout: Any, weighted: bool) -> None:
    """Squares of 1e-170 are zero in doubles; 20,000 rows are two tiles that are summed where they lie, and a rest."""
    draw = np.random.default_rng(3)
    X = draw.normal(size=(20_000, 2))
    y = X @ [1.0, 2.0] + draw.normal(size=20_000)
    w = draw.uniform(0.5, 2.0, 20_000) if weighted else None
    plain = ps.SketchedRegression("exact").fit(layout(X), y, w)
    tiny = ps.SketchedRegression("exact").fit(layout(X * np.array([2.0**-565, 1.0])), y, w)
    np.testing.assert_allclose(tiny.coef_ * [2.0**-565, 1.0], plain.coef_, rtol=1e-9)
    assert (tiny.rank_, tiny.model_.record.warnings) == (3, ())
