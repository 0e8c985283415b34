"""Gram matrices of many columns: as NumPy has them, and the same bits however rows are held and whoever makes them."""

from __future__ import annotations

import numpy as np
import pytest

from partsketch.common.linalg.helpers import sharing_with
from partsketch.common.linalg.panel_kernels import STRIP_ROWS
from partsketch.common.linalg.wide_gram import WideGram, mirror, wide_gram
from partsketch.sketches.accumulator import DenseRows, FloatArray, dense_rows

EPSILON = np.finfo(np.float64).eps


def _upper(product: WideGram, width: int) -> FloatArray:
    out = np.full((width, width), np.nan)
    product.add_to(np.zeros((width, width)), np.ones(width), out)
    return np.asarray(np.triu(out))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("columns", "targets", "ones"), [(128, 0, 1), (135, 1, 1), (136, 0, 0), (129, 30, 1), (271, 2, 0)]
)
@pytest.mark.parametrize("height", [1, 2 * STRIP_ROWS + 3])
def test_rows_where_they_lie_have_the_bits_of_a_tile(
    height: int, columns: int, targets: int, ones: int, weighted: bool
) -> None:
    """Edges of panels and strips, ones and targets beside them, weights; single numbers have the bits of doubles."""
    rng = np.random.default_rng(columns)
    single = rng.normal(size=(height + 9, columns)).astype(np.float32)
    target, width = rng.normal(size=(height + 9, targets)), ones + columns + targets
    roots = rng.uniform(0.5, 2.0, height + 9) if weighted else np.empty(0)
    tile = np.hstack([np.ones((height + 9, ones)), single, target])[4 : height + 4]
    tile = tile * roots[4 : height + 4, None] if weighted else tile
    expected = _upper(WideGram(width).multiply(dense_rows(tile)), width)
    product = WideGram(width)
    for features in (single, single.astype(np.float64)):
        rows = DenseRows(np.arange(height + 9), features, target, roots)  # type: ignore[arg-type]
        # What was in the memory before does not count.
        product.multiply(rows, ones, 0, 3)
        assert np.array_equal(_upper(product.multiply(rows, ones, 4, height + 4), width), expected)
    # Each entry is a sum of `height` products; summed in another order it differs by at most height · ε · Σ|products|.
    bound = height * EPSILON * (np.abs(tile).T @ np.abs(tile))
    assert (np.abs(expected - np.triu(tile.T @ tile)) <= bound).all()
    np.testing.assert_array_equal(product.diagonal(), np.diagonal(expected))


def test_sums_are_scaled_and_mirrored_by_any_number_of_threads() -> None:
    rng = np.random.default_rng(0)
    rows, scale = rng.normal(size=(1100, 600)), np.ldexp(1.0, rng.integers(-9, 9, 600)).astype(np.float64)
    total = mirror(rng.normal(size=(600, 600)))
    found = []
    for helpers in (0, 3):
        with sharing_with(helpers):
            out = np.empty((600, 600))
            WideGram(600).multiply(dense_rows(rows)).add_to(total, scale, out)
            found.append(mirror(out))
            assert np.array_equal(wide_gram(rows), wide_gram(rows).T)
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], total + scale[:, None] * scale * wide_gram(rows))
    assert np.array_equal(np.triu(total), np.triu(total.T))
