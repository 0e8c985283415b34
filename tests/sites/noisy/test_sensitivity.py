"""How far one row can move the numbers that get noise: extreme rows and any bounds, in whole numbers.

The proof is in docs/privacy.md. Here it meets the code: bounds of any place and width, and rows at their corners, at
the norm where features are clipped, far outside, and of numbers next to zero.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from partsketch.engines.local import LocalEngine
from partsketch.fitting.data_request import DataRequest
from partsketch.sites.noisy.bounds import Measures, measures_of
from partsketch.sites.noisy.mechanism import SENSITIVITY
from partsketch.sites.noisy.products import norms_of, sum_products
from partsketch.summaries.noisy_summary import BESIDE_DIAGONAL, ON_DIAGONAL, STEPS


def moved_by(row: dict[str, float], targets: list[str], bounds: dict[str, Any]) -> tuple[int, int, Measures]:
    """Return by how much a row moves the numbers, squared, its norm in steps, squared, and how it was measured."""
    source = DataRequest(pa.table({name: [value] for name, value in row.items()}), targets).open(None, True)
    measures = measures_of(source, bounds)
    sums = sum_products(source, measures, LocalEngine(1)).sums
    count = len(sums)
    squares = sum(
        ((ON_DIAGONAL if i == j else BESIDE_DIAGONAL) * sums[i][j]) ** 2 for i in range(count) for j in range(i, count)
    )
    return squares, sum(sums[i][i] for i in range(count)), measures


@st.composite
def bounded(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, float]]:
    """Bounds of a column in any unit, and a value in, at or beyond them."""
    lower = draw(st.floats(-1e6, 1e6))
    upper = lower + draw(st.floats(1e-3, 1e6))
    centre = lower + draw(st.floats(0, 1)) * (upper - lower)
    spread = draw(st.floats(0.01, 1)) * (upper - lower)
    centre, spread = min(max(centre, lower), upper), min(spread, upper - lower)
    ends = [lower, upper, centre, centre + spread, centre - spread, lower - 1e300, upper + 1e300, 5e-324]
    value = draw(st.sampled_from(ends) | st.floats(allow_nan=False, allow_infinity=False))
    return {"lower": lower, "upper": upper, "centre": centre, "spread": spread}, {"value": value}


@settings(max_examples=60, deadline=None)
@given(columns=st.lists(bounded(), min_size=2, max_size=5), targets=st.integers(1, 3))
def test_no_row_moves_the_numbers_further_than_the_sensitivity(columns: list[Any], targets: int) -> None:
    """And none is left out: a row of which the norm were beyond the steps would count as zeros."""
    targets = min(targets, len(columns) - 1)
    names = [f"c{number}" for number in range(len(columns))]
    row = {name: entry["value"] for name, (_, entry) in zip(names, columns, strict=True)}
    bounds = {name: known for name, (known, _) in zip(names, columns, strict=True)}
    squares, norm, _ = moved_by(row, names[-targets:], bounds)
    assert squares <= SENSITIVITY**2
    assert 0 < norm <= STEPS**2


def test_the_worst_rows_reach_it() -> None:
    """All corners of the bounds, and rows just inside and outside the norm of clipping.

    What is missing is that 41² is 0.06% below 2·29², and a row is rounded to a millionth of its norm.
    """
    bounds: dict[str, Any] = {
        "a": {"lower": -3, "upper": 5, "centre": 0, "spread": 1},
        "b": (-1, 1),
        "y": {"lower": -4, "upper": 2, "centre": 0, "spread": 1},
    }
    clip = moved_by({"a": 0.0, "b": 0.0, "y": 0.0}, ["y"], bounds)[2].clip
    edge = math.sqrt(clip**2 - 1)
    ends = itertools.product(
        (-3.0, 5.0, 0.0, -edge, edge, edge * (1 + 1e-9)), (-1.0, 0.0, 1.0), (-4.0, 2.0, 0.0, 1e300)
    )
    largest = max(moved_by({"a": a, "b": b, "y": y}, ["y"], bounds)[0] for a, b, y in ends)
    assert (1 - 6.1e-4) * SENSITIVITY**2 < largest <= SENSITIVITY**2


def test_the_norm_of_a_row_is_its_own() -> None:
    """Whatever rows are beside it, to the last bit: 12 columns, of which library products add up four at a time."""
    rows = np.random.default_rng(0).normal(size=(12, 50))
    together = norms_of(rows)
    for count in range(1, 50):
        np.testing.assert_array_equal(norms_of(np.ascontiguousarray(rows[:, :count])), together[:count])
        np.testing.assert_array_equal(norms_of(np.ascontiguousarray(rows[:, count:])), together[count:])
    np.testing.assert_allclose(together, np.linalg.norm(rows, axis=0), rtol=1e-15)
