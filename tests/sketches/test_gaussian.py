"""The Gaussian sketch as a linear map: what it multiplies, and how its pieces add up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from partsketch import InputError
from partsketch.common.linalg.blas import padded_width, tile_rows_for
from partsketch.sketches.accumulator import Columns, Stream
from partsketch.sketches.base import SketchSpecification
from partsketch.sketches.gaussian import GaussianSketch
from partsketch.sketches.random import derive_key, fill_normals

FloatArray = NDArray[np.float64]


def sketch_matrix(size: int, seed: int, stream: int, rows: NDArray[np.int64]) -> FloatArray:
    """S itself, m×n."""
    out = np.empty((-(-size // 4) * 4, rows.size))
    fill_normals(derive_key(seed, "gaussian"), stream, rows, 1.0 / np.sqrt(size), out)
    return out[:size]


def sketched(matrix: FloatArray, size: int, seed: int, stream: int, rows: NDArray[np.int64]) -> FloatArray:
    width = matrix.shape[1]
    tile_rows = tile_rows_for(padded_width(width))
    accumulator = GaussianSketch().accumulator(
        SketchSpecification("gaussian", size, seed), Stream(stream), Columns(width - 1, 1, False)
    )
    for start in range(0, matrix.shape[0], tile_rows):
        part = matrix[start : start + tile_rows]
        tile = np.zeros((padded_width(width), part.shape[0]))
        tile[:width] = part.T
        assert accumulator.add(tile, rows[start : start + tile_rows])
    return accumulator.finish()


@settings(max_examples=25)
@given(
    size=st.integers(1, 90),
    width=st.sampled_from([1, 2, 5, 31, 32, 33, 47]),
    rows=st.integers(1, 3000),
    seed=st.integers(0, 2**64 - 1),
    stream=st.integers(0, 1000),
)
def test_sketch_is_the_product_with_its_matrix(size: int, width: int, rows: int, seed: int, stream: int) -> None:
    matrix = np.random.default_rng(width).normal(size=(rows, width))
    numbers = 3 * np.arange(rows) + 2**33
    expected = sketch_matrix(size, seed, stream, numbers) @ matrix
    got = sketched(matrix, size, seed, stream, numbers)
    assert got.shape == (size, width)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12 * np.sqrt(rows))


def test_long_sketches_are_worked_off_in_strips() -> None:
    """700 sketch rows of 4096-row tiles need many strips of 2¹⁸ numbers; no row may be missed or used twice."""
    matrix = np.random.default_rng(0).normal(size=(9000, 33))
    numbers = np.arange(9000)
    got = sketched(matrix, 701, 4, 1, numbers)
    np.testing.assert_allclose(got, sketch_matrix(701, 4, 1, numbers) @ matrix, rtol=0, atol=1e-11)


@settings(max_examples=25)
@given(cut=st.integers(0, 500), seed=st.integers(0, 2**64 - 1), size=st.integers(1, 40))
def test_sketches_of_parts_sum_to_the_sketch_of_the_whole(cut: int, seed: int, size: int) -> None:
    matrix = np.random.default_rng(1).normal(size=(500, 4))
    numbers = np.arange(500)
    first = sketched(matrix[:cut], size, seed, 3, numbers[:cut])
    second = sketched(matrix[cut:], size, seed, 3, numbers[cut:])
    whole = sketched(matrix, size, seed, 3, numbers)
    np.testing.assert_allclose(GaussianSketch().merge(first, second), whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_tile_that_is_not_finite_is_refused(bad: float) -> None:
    accumulator = GaussianSketch().accumulator(SketchSpecification("gaussian", 6, 0), Stream(), Columns(3, 1, False))
    good = np.random.default_rng(2).normal(size=(4, 50))
    assert accumulator.add(good, np.arange(50))
    spoilt = good.copy()
    spoilt[1, 49] = bad
    with np.errstate(all="ignore"):
        assert not accumulator.add(spoilt, np.arange(50, 100))


@pytest.mark.parametrize(
    ("size", "seed", "message"),
    [(None, 1, "at least one row"), (0, 1, "at least one row"), (5, None, "seed"), (5, -1, "seed"), (5, 2**64, "seed")],
)
def test_specification_refuses_what_makes_no_sense(size: int | None, seed: int | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        SketchSpecification("gaussian", size, seed)


def test_expected_gram_matrix_is_kept() -> None:
    """E[(SA)ᵀSA] = AᵀA: 400 seeds, m = 10; entries within five standard errors of the mean over seeds."""
    matrix = np.random.default_rng(3).normal(size=(60, 3))
    grams = []
    for seed in range(400):
        sketch = sketched(matrix, 10, seed, 0, np.arange(60))
        grams.append(sketch.T @ sketch)
    error = np.std(grams, axis=0, ddof=1) / np.sqrt(400)
    assert np.all(np.abs(np.mean(grams, axis=0) - matrix.T @ matrix) < 5 * error)
