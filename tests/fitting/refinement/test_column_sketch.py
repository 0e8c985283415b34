"""The sketch made by columns has the bits of the sketch that engines make, and its factor is that of LAPACK."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from partsketch import LocalEngine
from partsketch.common.linalg.blas import triangular_factor
from partsketch.engines.gather import gather
from partsketch.fitting.refinement.column_sketch import sketch_by_columns
from partsketch.fitting.refinement.tall_factor import tall_factor
from partsketch.sketches.base import SketchSpecification
from partsketch.sources.memory.arrays import ArraySource, array_source
from partsketch.summaries.partitions import single_partition
from partsketch.summaries.tasks import SummaryRequest


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(1, 700),
    width=st.integers(1, 40),
    targets=st.integers(0, 3),
    size=st.integers(4, 60),
    segment_rows=st.sampled_from([64, 100, 256, 1000]),
    intercept=st.booleans(),
    weighted=st.booleans(),
    threads=st.integers(1, 3),
)
def test_bits_are_those_of_the_engine(
    rows: int,
    width: int,
    targets: int,
    size: int,
    segment_rows: int,
    intercept: bool,
    weighted: bool,
    threads: int,
) -> None:
    # A segment of one row is measured from that row by the engine, which rounds otherwise.
    assume(not (intercept and rows % segment_rows == 1))
    rng = np.random.default_rng(rows)
    X, y = rng.normal(size=(rows, width)), rng.normal(size=(rows, targets))
    source = array_source(X, y if targets else None, rng.uniform(0, 2, rows) if weighted else None)
    assert isinstance(source, ArraySource)
    specification = SketchSpecification("sparse_sign", size, 7, 4)
    request = SummaryRequest(specification, single_partition(rows), intercept, segment_rows=segment_rows)
    expected = gather(source, request, LocalEngine(threads=2)).summaries[0].matrix
    found = sketch_by_columns(source, intercept, specification, segment_rows, threads)
    assert found.flags.f_contiguous
    assert np.array_equal(found, expected)


def test_many_slabs() -> None:
    """A sketch so tall that a worker takes one group of columns at a time."""
    rng = np.random.default_rng(0)
    source = array_source(rng.normal(size=(300, 100)), rng.normal(size=300))
    assert isinstance(source, ArraySource)
    specification = SketchSpecification("sparse_sign", 70_000, 7, 4)
    request = SummaryRequest(specification, single_partition(300), True)
    expected = gather(source, request, LocalEngine()).summaries[0].matrix
    assert np.array_equal(sketch_by_columns(source, True, specification, 2**18, 2), expected)


@pytest.mark.parametrize(("rows", "width"), [(1, 1), (9, 9), (9, 1), (36, 9), (100, 3), (800, 130), (520, 130)])
def test_factor_of_a_tall_matrix(rows: int, width: int) -> None:
    """Two parts, joined, where there are enough rows; the same bits with one worker. Entries are sums of `rows` terms
    of size one, each rounded: 1e-13 allows a hundred roundings of the largest."""
    matrix = np.random.default_rng(rows).normal(size=(rows, width))
    factor = tall_factor(matrix.copy(), 2)
    np.testing.assert_allclose(factor, triangular_factor(matrix), rtol=0, atol=1e-13 * np.sqrt(rows))
    assert np.array_equal(factor, tall_factor(matrix.copy(), 1))


def test_a_matrix_by_columns_is_overwritten_and_one_by_rows_is_not() -> None:
    matrix = np.random.default_rng(0).normal(size=(50, 4))
    by_columns, before = np.asfortranarray(matrix), matrix.copy()
    tall_factor(matrix, 2)
    assert np.array_equal(matrix, before)
    tall_factor(by_columns, 2)
    assert not np.array_equal(by_columns, before)
