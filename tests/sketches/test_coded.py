"""Sums of products of coded columns are those of the dense columns that they stand for."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partsketch.common.linalg.double_double import DoubleDouble
from partsketch.sketches.coded import CodedRows, coded_products
from partsketch.sketches.gram import Products

#: What doubles leave of a sum of products of few rows, as a part of the norms of both columns.
DOUBLES = 2.0**-48
#: The same with twice the digits: 2⁻⁵⁷ of usual entries are left out of dense columns, and squares of roundings add up.
TWICE = 2.0**-90


def dense_of(rows: CodedRows) -> np.ndarray:
    """The columns that the codes stand for, less nothing, weights applied: shape (columns, rows)."""
    columns = np.zeros((rows.width, rows.dense.shape[1]))
    columns[rows.dense_at] = rows.dense
    for places, values in zip(rows.places, rows.values, strict=True):
        there = np.flatnonzero(places >= 0)
        columns[places[there], there] = 1.0 if values is None else values[there]
    return columns


def found(rows: CodedRows) -> tuple[DoubleDouble, np.ndarray]:
    matrix, centre = coded_products(rows)
    products = Products.read(matrix)
    if centre is not None:
        products = products.moved(centre)
    units = 1.0 / products.scale
    assert products.low is not None
    return DoubleDouble(products.high * units * units[:, None], products.low * units * units[:, None]), matrix


def errors(rows: CodedRows) -> np.ndarray:
    """How far each sum is from the one in rational arithmetic, as a part of the norms of both columns."""
    total, _ = found(rows)
    whole = [[Fraction(float(value)) for value in column] for column in dense_of(rows)]
    roots = [Fraction(float(root)) ** 2 for root in rows.roots] or [Fraction(1)] * rows.dense.shape[1]
    out = np.zeros((rows.width, rows.width))
    norms = [sum(w * value * value for w, value in zip(roots, column, strict=True)) for column in whole]
    for i in range(rows.width):
        for j in range(rows.width):
            exact = sum(w * a * b for w, a, b in zip(roots, whole[i], whole[j], strict=True))
            difference = abs(Fraction(float(total.high[i, j])) + Fraction(float(total.low[i, j])) - exact)
            scale = norms[i] * norms[j]
            out[i, j] = 0.0 if not difference else float(difference**2 / scale) ** 0.5 if scale else np.inf
    return out


def make(generator: np.random.Generator, count: int, sizes: list[float], **changes: Any) -> CodedRows:
    """Ones, a numeric column for each size, a group of 5 levels, one of 3, and the first times a number."""
    dense = np.array([np.ones(count), *(size * generator.normal(size=count) for size in sizes)])
    first, second = generator.integers(-1, 5, count), generator.integers(-1, 3, count)
    base = 1 + len(sizes)
    at = np.array([*range(base - 1), base + 12])
    places = np.array(
        [
            np.where(first >= 0, first + base - 1, -1),
            np.where(second >= 0, second + base + 4, -1),
            np.where(first >= 0, first + base + 7, -1),
        ],
        dtype=np.int32,
    )
    told = {
        "dense": dense,
        "dense_at": at,
        "width": base + 13,
        "targets": 1,
        "places": places,
        "values": (None, None, generator.normal(size=count)),
        "roots": np.empty(0),
        "intercept": True,
    }
    return CodedRows(**{**told, **changes})


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**20),
    count=st.integers(1, 40),
    sizes=st.lists(st.sampled_from([0.0, 1e-140, 1e-3, 1.0, 1e16, 1e140]), min_size=1, max_size=3),
    weighted=st.booleans(),
)
def test_sums_of_any_sizes(seed: int, count: int, sizes: list[float], weighted: bool) -> None:
    generator = np.random.default_rng(seed)
    # Roots that are powers of two: products with others are rounded before they are summed, as those of dense rows are.
    roots = np.ldexp(1.0, generator.integers(-3, 4, count)) if weighted else np.empty(0)
    assert errors(make(generator, count, sizes, roots=roots)).max() < DOUBLES


def test_sums_by_level_have_twice_the_digits() -> None:
    generator = np.random.default_rng(3)
    rows = make(generator, 300, [1.0, 1.0])
    off = errors(rows)
    coded = np.setdiff1d(np.arange(rows.width), rows.dense_at)
    assert off[coded].max() < TWICE


def test_a_column_that_levels_explain_is_summed_with_twice_the_digits() -> None:
    generator = np.random.default_rng(4)
    rows = make(generator, 300, [1.0, 1.0])
    # All but a hundred-thousandth of it is said by the levels of the first group.
    rows.dense[1] = rows.places[0] + 1e-5 * generator.normal(size=300)
    assert errors(rows).max() < TWICE
    assert found(rows)[0].low[1, 1] != 0.0


def test_a_column_far_from_zero_is_measured_from_its_middle() -> None:
    generator = np.random.default_rng(5)
    rows = make(generator, 200, [1.0, 1.0])
    rows.dense[1] = 1.7e15 + generator.integers(0, 1000, 200)
    matrix, centre = coded_products(rows)
    assert centre is not None
    assert centre[1] > 1e15
    # What is left of it is about its spread: the sums know the spread to all digits.
    assert 1.0 / Products.read(matrix).scale[1] < 1e6


@pytest.mark.parametrize("kind", ["none", "zero_weights", "one_level"])
def test_rows_that_say_little(kind: str) -> None:
    rows = make(np.random.default_rng(6), 30, [1.0, 1.0])
    if kind == "none":
        rows.places[:] = -1
    elif kind == "zero_weights":
        rows = make(np.random.default_rng(6), 30, [1.0, 1.0], roots=np.zeros(30))
    else:
        rows.places[0] = 2
    off = errors(rows)
    assert off.max() < DOUBLES
