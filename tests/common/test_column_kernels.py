"""Kernels on columns anywhere in memory: the same as NumPy, and the same bits wherever the columns lie."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partsketch.common.linalg.blas import WIDEST_KERNEL, gram, padded_width
from partsketch.common.linalg.column_kernels import (
    STRIP_ROWS,
    column_addresses,
    copy_columns,
    copy_transposed,
    gram_of_columns,
    gram_of_rows,
)
from partsketch.common.linalg.group_products import GROUP

EPSILON = np.finfo(np.float64).eps


@settings(max_examples=60, deadline=None)
@given(st.integers(1, WIDEST_KERNEL + 8), st.integers(1, 3000), st.integers(0, 2**32 - 1))
def test_gram_equals_numpy(width: int, rows: int, seed: int) -> None:
    columns = np.random.default_rng(seed).normal(size=(width, rows))
    # Each entry is a sum of `rows` products; summed in another order it differs by at most rows · ε · Σ|products|.
    bound = rows * EPSILON * (np.abs(columns) @ np.abs(columns).T)
    assert (np.abs(gram(columns) - columns @ columns.T) <= bound).all()
    assert np.array_equal(gram(columns), gram(columns).T)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 10), st.integers(1, 2500), st.integers(0, 64), st.integers(0, 2**32 - 1))
def test_bits_do_not_depend_on_where_columns_lie(groups: int, rows: int, gap: int, seed: int) -> None:
    width = GROUP * groups
    columns = np.random.default_rng(seed).normal(size=(width, rows))
    spread = np.zeros((width, rows + gap))[:, gap:]
    spread[...] = columns
    apart = [column.copy() for column in columns]
    addresses = np.array([column.__array_interface__["data"][0] for column in apart])
    out = np.empty((width, width))
    gram_of_columns(addresses, rows, out)
    assert np.array_equal(out, gram(columns))
    assert np.array_equal(out, gram(spread))
    assert np.array_equal(out, gram(np.asfortranarray(columns)))


@settings(max_examples=60, deadline=None)
@given(
    width=st.integers(0, 40),
    targets=st.integers(0, 10),
    intercept=st.booleans(),
    rows=st.integers(1, 2500),
    gap=st.integers(0, 9),
    weighted=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_rows_give_the_bits_of_their_columns(
    width: int, targets: int, intercept: bool, rows: int, gap: int, weighted: bool, seed: int
) -> None:
    """Chunks are worked on in turn, and what an earlier, longer one left in the buffer does not matter."""
    rng = np.random.default_rng(seed)
    features, others = rng.normal(size=(rows, width)), rng.normal(size=(rows, targets))
    columns = np.concatenate([np.ones((int(intercept), rows)), features.T, others.T])
    roots = rng.uniform(0, 2, rows) if weighted else np.empty(0)
    if weighted:
        columns *= roots
    padded = padded_width(max(1, len(columns)))
    chunk, out = np.zeros((padded, STRIP_ROWS + gap)), np.empty((padded, padded))
    chunk[: len(columns)] = np.nan
    gram_of_rows(features, others, roots, 0, len(features), int(intercept), chunk, column_addresses(chunk), out)
    expected = gram(np.concatenate([columns, np.zeros((padded - len(columns), rows))]))
    assert np.array_equal(out, expected)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_show_in_the_product(value: float) -> None:
    columns = np.ones((8, 1500))
    columns[5, 1400] = value
    with np.errstate(invalid="ignore"):
        product = gram(columns)
    assert not np.isfinite(product[5, 5])
    assert np.isfinite(product[:5, :5]).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 20), st.integers(1, 200), st.integers(0, 2**32 - 1), st.data())
def test_copies(width: int, rows: int, seed: int, data: st.DataObject) -> None:
    values = np.random.default_rng(seed).normal(size=(rows, width))
    begin = data.draw(st.integers(0, rows - 1))
    tile = np.zeros((width + 2, rows + 5))
    out = tile[1 : width + 1, 3 : 3 + rows - begin]
    columns = np.ascontiguousarray(values.T)
    copy_columns(column_addresses(columns), begin, out)
    assert np.array_equal(out, columns[:, begin:])
    by_rows = np.zeros((rows + 5, width + 2))[3 : 3 + rows - begin, 1 : width + 1].T
    copy_columns(column_addresses(columns), begin, by_rows)
    assert np.array_equal(by_rows, out)
    out[...] = 0.0
    for rows_in_memory in (values[begin:], np.asfortranarray(values[begin:]), values[begin:].astype(np.float32)):
        copy_transposed(rows_in_memory, out)
        assert np.array_equal(out, rows_in_memory.T)
    # Nothing outside of the rows and columns asked for was touched.
    out[...] = 0.0
    assert not tile.any()
