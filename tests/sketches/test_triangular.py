"""The exact factor: laws of R on easy and on hostile data, and the moments at which the fast route is left."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from partsketch import InputError
from partsketch.common.linalg.blas import gram, padded_width, tile_rows_for, triangular_factor
from partsketch.sketches.accumulator import Columns, Stream
from partsketch.sketches.base import SketchSpecification, get_sketch
from partsketch.sketches.gram import Products, inflation
from partsketch.sketches.triangular import TriangularSketch
from partsketch.sketches.triangular_accumulator import TriangularAccumulator

FloatArray = NDArray[np.float64]


def accumulate(matrix: FloatArray, tile_rows: int | None = None) -> tuple[FloatArray, TriangularAccumulator]:
    width = matrix.shape[1]
    step = tile_rows or tile_rows_for(padded_width(width))
    accumulator = TriangularAccumulator(width)
    for start in range(0, matrix.shape[0], step):
        part = matrix[start : start + step]
        tile = np.zeros((padded_width(width), part.shape[0]))
        tile[:width] = part.T
        with np.errstate(all="ignore"):
            assert accumulator.add(tile, np.arange(start, start + part.shape[0]))
    return factor_of(accumulator), accumulator


def factor_of(accumulator: TriangularAccumulator) -> FloatArray:
    return concluded(accumulator.finish())


def concluded(products: FloatArray) -> FloatArray:
    return TriangularSketch().conclude(SketchSpecification("triangular"), products, 1)


def is_plain(accumulator: TriangularAccumulator) -> bool:
    """Whether sums of products in doubles were trusted throughout."""
    return Products.read(accumulator.finish()).low is None


def assert_is_factor(factor: FloatArray, matrix: FloatArray, tolerance: float = 1e-13) -> None:
    """R is square, upper triangular, with a diagonal that is not negative, and RᵀR = AᵀA relative to column norms."""
    width = matrix.shape[1]
    assert factor.shape == (width, width)
    assert np.array_equal(factor, np.triu(factor))
    assert np.all(np.diagonal(factor) >= 0)
    norms = np.linalg.norm(matrix, axis=0)
    scale = np.where(norms > 0, norms, 1.0)
    reference = triangular_of(matrix / scale)
    scaled = factor / scale
    np.testing.assert_allclose(scaled.T @ scaled, reference.T @ reference, rtol=0, atol=tolerance)


def triangular_of(matrix: FloatArray) -> FloatArray:
    """The factor by Householder QR of everything at once, rows of either sign made positive."""
    factor = np.linalg.qr(matrix, mode="r")
    return np.asarray(factor * np.where(np.diagonal(factor) < 0, -1.0, 1.0)[:, None])


def _plain(generator: np.random.Generator) -> FloatArray:
    return generator.normal(size=(30_000, 6))


def _scales(generator: np.random.Generator) -> FloatArray:
    return generator.normal(size=(30_000, 6)) * 10.0 ** np.array([-60, -8, 0, 3, 40, 100])


def _means(generator: np.random.Generator) -> FloatArray:
    return generator.normal(size=(30_000, 6)) + 1e9 * np.array([1, 1, 1, -1, 1, 0])


def _growing(generator: np.random.Generator) -> FloatArray:
    return generator.normal(size=(30_000, 6)) * np.geomspace(1e-6, 1e6, 30_000)[:, None]


def _shrinking(generator: np.random.Generator) -> FloatArray:
    return _growing(generator)[::-1]


def _late(generator: np.random.Generator) -> FloatArray:
    matrix = generator.normal(size=(30_000, 6))
    matrix[:25_000, 2] = 0.0
    matrix[:-1, 4] = 0.0
    return matrix


def _dependent(generator: np.random.Generator) -> FloatArray:
    matrix = generator.normal(size=(30_000, 6))
    matrix[:, 3] = matrix[:, 0] - 2 * matrix[:, 1]
    return matrix


def _collinear_late(generator: np.random.Generator) -> FloatArray:
    matrix = generator.normal(size=(30_000, 6))
    matrix[12_000:] *= 1e7
    matrix[12_000:, 3] = matrix[12_000:, 0] + 1e-7 * matrix[12_000:, 3]
    return matrix


def _zero(generator: np.random.Generator) -> FloatArray:
    matrix = generator.normal(size=(30_000, 6))
    matrix[:, 1] = 0.0
    return matrix


def _constant(generator: np.random.Generator) -> FloatArray:
    return np.ones((30_000, 3))


FAMILIES: list[Callable[[np.random.Generator], FloatArray]] = [
    _plain, _scales, _means, _growing, _shrinking, _late, _dependent, _collinear_late, _zero, _constant,
]  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("tile_rows", [None, 500])
def test_factor_of_easy_and_hostile_data(
    family: Callable[[np.random.Generator], FloatArray], tile_rows: int | None
) -> None:
    matrix = family(np.random.default_rng(0))
    factor, _ = accumulate(matrix, tile_rows)
    assert_is_factor(factor, matrix, tolerance=3e-13)


@pytest.mark.parametrize("family", [_plain, _scales, _growing, _late, _collinear_late])
def test_factor_equals_householder_entry_by_entry(family: Callable[[np.random.Generator], FloatArray]) -> None:
    """Full rank: R is unique. The Gram route may lose four digits of sixteen, and here it may lose no more."""
    matrix = family(np.random.default_rng(1))
    factor, _ = accumulate(matrix, 1000)
    scale = np.linalg.norm(matrix, axis=0)
    np.testing.assert_allclose(factor / scale, triangular_of(matrix / scale), rtol=0, atol=1e-11)


def test_small_residual_directions_survive() -> None:
    """A column that the others explain but for a 1e-12th keeps its remainder to three digits or better."""
    generator = np.random.default_rng(2)
    for size, tolerance in [(1e-4, 1e-9), (1e-8, 1e-6), (1e-12, 3e-3)]:
        matrix = generator.normal(size=(40_000, 5))
        noise = generator.normal(size=40_000)
        matrix[:, 4] = matrix[:, :4].sum(axis=1) + size * noise
        factor, _ = accumulate(matrix)
        basis = np.linalg.qr(matrix[:, :4])[0]
        remainder = np.linalg.norm(noise - basis @ (basis.T @ noise)) * size
        assert factor[4, 4] == pytest.approx(remainder, rel=tolerance)


def test_plain_gram_matrix_is_left_exactly_when_it_must_be() -> None:
    generator = np.random.default_rng(3)
    tame = generator.normal(size=(20_000, 5))
    accumulator = TriangularAccumulator(5)
    for start in range(0, 10_000, 1000):
        accumulator.add(np.ascontiguousarray(tame[start : start + 1000].T), np.arange(1000))
    assert is_plain(accumulator)
    wild = tame[10_000:] * 1e5
    wild[:, 2] = wild[:, 1] + 1e-6 * wild[:, 2]
    for start in range(0, 10_000, 1000):
        accumulator.add(np.ascontiguousarray(wild[start : start + 1000].T), np.arange(1000))
    assert not is_plain(accumulator)
    matrix = np.vstack([tame[:10_000], wild])
    scale = np.linalg.norm(matrix, axis=0)
    np.testing.assert_allclose(factor_of(accumulator) / scale, triangular_of(matrix / scale), rtol=0, atol=1e-11)


@settings(max_examples=60)
@given(
    rows=st.integers(0, 60),
    width=st.integers(1, 12),
    tile_rows=st.integers(1, 30),
    seed=st.integers(0, 2**32),
    kind=st.sampled_from(["normal", "whole", "sparse", "scaled"]),
)
def test_factor_of_small_matrices(rows: int, width: int, tile_rows: int, seed: int, kind: str) -> None:
    """Shapes from nothing to tall, whole numbers with ties and zeros, scales from 1e-40 to 1e40."""
    generator = np.random.default_rng(seed)
    matrix = generator.normal(size=(rows, width))
    if kind == "whole":
        matrix = generator.integers(-2, 3, size=(rows, width)).astype(np.float64)
    if kind == "sparse":
        matrix = matrix * (generator.random((rows, width)) < 0.15)
    if kind == "scaled":
        matrix = matrix * 10.0 ** generator.uniform(-40, 40, width)
    factor, _ = accumulate(matrix, tile_rows)
    assert_is_factor(factor, matrix)


@settings(max_examples=40)
@given(cut=st.integers(0, 200), width=st.integers(1, 40), seed=st.integers(0, 2**32))
def test_merge_of_factors_is_the_factor_of_all_rows(cut: int, width: int, seed: int) -> None:
    matrix = np.random.default_rng(seed).normal(size=(200, width))
    first, second = (accumulate(part)[1].finish() for part in (matrix[:cut], matrix[cut:]))
    assert_is_factor(concluded(TriangularSketch().merge(first, second)), matrix)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("left_plain", [False, True])
def test_a_tile_that_is_not_finite_is_refused_and_leaves_no_trace(bad: float, left_plain: bool) -> None:
    generator = np.random.default_rng(4)
    good = generator.normal(size=(4, 300))
    if left_plain:
        good[2] = good[1]
    accumulators = [TriangularAccumulator(4), TriangularAccumulator(4)]
    for accumulator in accumulators:
        assert accumulator.add(good, np.arange(300))
        assert is_plain(accumulator) is not left_plain
    spoilt = good.copy()
    spoilt[3, 17] = bad
    with np.errstate(all="ignore"):
        assert not accumulators[1].add(spoilt, np.arange(300, 600))
    assert np.array_equal(accumulators[0].finish(), accumulators[1].finish())


def test_an_exact_summary_takes_neither_size_nor_seed() -> None:
    for size, seed in [(5, None), (None, 5)]:
        with pytest.raises(InputError, match="exact"):
            SketchSpecification("triangular", size, seed)
    with pytest.raises(InputError, match="choose one of"):
        get_sketch("squared")


@settings(max_examples=40)
@given(width=st.integers(1, 70), rows=st.integers(1, 200))
def test_gram_is_what_it_says(width: int, rows: int) -> None:
    columns = np.random.default_rng(width).normal(size=(width, rows))
    np.testing.assert_allclose(gram(columns), np.einsum("ir,jr->ij", columns, columns), rtol=0, atol=1e-11)


def test_tile_rows_depend_on_the_width_alone_and_are_tall() -> None:
    for width in [1, 2, 16, 17, 100, 1000, 5000]:
        assert tile_rows_for(width) >= 2 * width
        assert tile_rows_for(width) & (tile_rows_for(width) - 1) == 0


def test_factor_of_stacked_matrices_pads_to_a_square() -> None:
    assert np.array_equal(triangular_factor(np.array([[-3.0, 4.0]])), np.array([[3.0, -4.0], [0.0, 0.0]]))


def test_sums_of_nearly_dependent_columns_are_merged_with_twice_the_digits() -> None:
    """Two halves of columns that agree to nine digits: the factor of both, all digits of it, against fractions."""
    rng = np.random.default_rng(5)
    x = rng.integers(1, 1000, 40) / 8
    rows = np.column_stack([x, x + rng.integers(1, 9, 40) * 2.0**-30, rng.integers(-9, 9, 40)])
    sketch, halves = TriangularSketch(), []
    for half in (rows[:23], rows[23:]):
        accumulator = sketch.accumulator(SketchSpecification("triangular"), Stream(), Columns(2, 1, False))
        accumulator.expect_few_rows()
        assert accumulator.add(np.ascontiguousarray(half.T), np.arange(len(half)))
        halves.append(accumulator.finish())
    high, low = sketch.concluded_rows(SketchSpecification("triangular"), sketch.merge(*halves), 40)
    assert low is not None
    factor = [
        [Fraction(float(h)) + Fraction(float(c)) for h, c in zip(*pair, strict=True)]
        for pair in zip(high, low, strict=True)
    ]
    exact = [[Fraction(float(value)) for value in row] for row in rows]
    for i, j in itertools.product(range(3), repeat=2):
        found = sum((row[i] * row[j] for row in factor), Fraction(0))
        right = sum((row[i] * row[j] for row in exact), Fraction(0))
        # A double has 16 digits, two have 32; some are lost where thousands are added to nothing.
        assert abs(found - right) <= abs(right) * Fraction(1, 10**27)


def test_a_factor_of_nearly_dependent_columns_is_not_made_in_doubles() -> None:
    correlation = 1 - 2.0**-40
    products = np.array([[1.0, correlation, 0.0], [correlation, 1.0, 0.0], [0.0, 0.0, 1.0]])
    written = np.vstack([np.ones(3), products])
    factor, low = TriangularSketch().concluded_rows(SketchSpecification("triangular"), written, 10)
    assert low is not None
    # √(1 − (1 − ε)²) = √(2ε − ε²); Cholesky's factor in doubles has four digits of it.
    assert factor[1, 1] == pytest.approx(np.sqrt(2 * 2.0**-40 - 2.0**-80), rel=1e-15)


@pytest.mark.parametrize("mean", [0.0, 5.0])
@pytest.mark.parametrize("noise", [1.0, 0.03, 1e-3, 1e-5])
def test_what_many_columns_inflate_is_bounded_and_computed_where_the_bound_does_not_serve(
    noise: float, mean: float
) -> None:
    """A bound is at least the inflation, and safe; without one the inflation is that of the inverse.

    The first column are ones, and with a mean those of the others inflate it: 1 + 138·25 times.
    """
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(900, 140)) + mean
    rows[:, 0] = 1.0
    rows[:, 5] = rows[:, 4] + noise * (rows[:, 5] - mean)
    rows[:, -1] = rows[:, 7] + noise * (rows[:, -1] - mean)
    matrix = rows.T @ rows / 900
    sizes = np.diagonal(matrix)
    of_features = (np.diagonal(np.linalg.inv(matrix[:139, :139])) * sizes[:139]).max()
    exact = max(of_features / 1e4, np.linalg.inv(matrix)[-1, -1] * sizes[-1] / 1e6)
    found = inflation(matrix, 139, sizes)
    # Rounding of an inverse: 1e-16 times the inflation, 3e11 at most here, and the number of columns.
    assert found >= exact * (1 - 1e-2)
    assert found == pytest.approx(exact, rel=1e-2) or found <= 1.0
    assert (noise < 0.1) == (found == pytest.approx(exact, rel=1e-2))


def test_the_first_of_many_columns_counts_where_single_numbers_cannot_tell() -> None:
    """The target is nearly a feature, which is enough for a target, but nothing that single numbers know of."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(900, 140)) + 5.0
    rows[:, 0] = 1.0
    rows[:, -1] = rows[:, 7] + 0.2 * (rows[:, -1] - 5.0)
    matrix = rows.T @ rows / 900
    # 1 + 138·25 times for the ones, of 10⁴ that are safe.
    exact = np.linalg.inv(matrix[:139, :139])[0, 0] / 1e4
    assert exact > 0.3
    assert exact <= inflation(matrix, 139, np.diagonal(matrix)) <= 1.5 * exact


def test_units_do_not_decide_whether_the_plain_gram_matrix_serves() -> None:
    """A variance inflation factor of 6,000 is safe wherever the norms of columns lie between two powers of two."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=4096)
    for unit in (0.51, 0.75, 0.99):
        tile = np.vstack([unit * x, x + rng.normal(size=4096) / np.sqrt(6000), rng.normal(size=4096)])
        assert TriangularAccumulator(3).trusts_plain_gram(tile)
