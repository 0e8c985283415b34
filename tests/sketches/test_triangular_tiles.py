"""Tiles that the exact accumulator takes where they lie, and memory that it uses again: the bits are the same."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from partsketch import SketchedRegression
from partsketch.common.linalg.column_kernels import column_addresses
from partsketch.sketches.accumulator import DenseRows
from partsketch.sketches.gram import Products, add_scaled
from partsketch.sketches.kernels.gram_sums import add_scaled_gram, add_tiles_of_columns, add_tiles_of_rows
from partsketch.sketches.triangular import TriangularSketch
from partsketch.sketches.triangular_accumulator import TriangularAccumulator

FloatArray = NDArray[np.float64]


@pytest.fixture(params=["plainly", "by kernels"])
def added(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all tiles count among the first of the process, which are added plainly, or none."""
    monkeypatch.setattr("partsketch.sketches.first_tiles.FIRST_TILES", 10**9 if request.param == "plainly" else -1)


def _in_one_go(rows: FloatArray, held: str, tile_rows: int) -> tuple[int, TriangularAccumulator]:
    """Give the tiles of some rows, the last column their target, where they lie; return how many were taken."""
    accumulator = TriangularAccumulator(rows.shape[1])
    if held == "rows":
        features, target = np.ascontiguousarray(rows[:, :-1]), np.ascontiguousarray(rows[:, -1:])
        given = DenseRows(np.arange(len(rows)), features, target, np.empty(0))
        return accumulator.add_dense_tiles(given, tile_rows), accumulator
    columns = np.zeros((-(-rows.shape[1] // 4) * 4, len(rows)))
    columns[: rows.shape[1]] = rows.T
    steps = np.full(len(columns), 8 * tile_rows)
    taken = accumulator.add_columns(column_addresses(columns), steps, len(rows) // tile_rows, tile_rows)
    return taken, accumulator


def _one_by_one(rows: FloatArray, tile_rows: int, tiles: int) -> TriangularAccumulator:
    accumulator = TriangularAccumulator(rows.shape[1])
    for start in range(0, tiles * tile_rows, tile_rows):
        tile = np.ascontiguousarray(rows[start : start + tile_rows].T)
        assert accumulator.add(tile, np.arange(start, start + tile_rows))
    return accumulator


@pytest.mark.usefixtures("added")
@pytest.mark.parametrize(("held", "width"), [("rows", 10), ("columns", 10), ("rows", 139)])
@pytest.mark.parametrize("growth", [1.0, 2.0, 3.0])
def test_tiles_where_they_lie_have_the_bits_of_tiles_one_by_one(held: str, width: int, growth: float) -> None:
    """Columns that grow from tile to tile make the accumulator look again and again whether it can trust the sum."""
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(20 * 300 + 17, width))
    rows[:, 4] += 10 * rows[:, 3]
    rows[:, 7] *= growth ** (np.arange(len(rows)) // 300 / 20)
    taken, found = _in_one_go(rows, held, 300)
    assert taken == 20
    assert np.array_equal(found.finish(), _one_by_one(rows, 300, 20).finish())


@pytest.mark.usefixtures("added")
@pytest.mark.parametrize(("held", "width"), [("rows", 6), ("columns", 6), ("rows", 139)])
@pytest.mark.parametrize("fault", ["nan", "inf", "dependent"])
@pytest.mark.parametrize("tile", [0, 1, 7])
def test_the_tile_that_cannot_be_trusted_is_left(held: str, width: int, fault: str, tile: int) -> None:
    """Tiles before it are taken, it is not, and what was taken is as if nothing had come after it."""
    rows = np.random.default_rng(9).normal(size=(10 * 300, width))
    here = slice(300 * tile, 300 * (tile + 1))
    if fault == "dependent":
        rows[here] *= 1e6
        rows[here, 2] = rows[here, 1] * (1 + 1e-9)
        rows[here, 3] = rows[here, 1] * (1 - 1e-9)
    else:
        rows[here, 3] = float(fault)
    taken, found = _in_one_go(rows, held, 300)
    assert taken == tile
    assert Products.read(found.finish()).low is None
    if tile:
        assert np.array_equal(found.finish(), _one_by_one(rows, 300, tile).finish())


@pytest.mark.parametrize("later", ["zero", "huge"])
def test_many_columns_whose_units_change_have_the_sums_that_they_should(later: str) -> None:
    """A column that is zero at first, or grows beyond its units, is looked at again; sums are whole at the end."""
    rows = np.random.default_rng(7).normal(size=(1200, 139))
    if later == "zero":
        rows[:600, 5] = 0.0
    else:
        rows[600:, 5] *= 2.0**70
    taken, accumulator = _in_one_go(rows, "rows", 300)
    assert taken == 4
    found = Products.read(accumulator.finish())
    # Rounding of sums of 1200 products each; units are powers of two.
    scaled = rows * found.scale
    assert np.abs(scaled).max() < 2.0**61
    bound = 1200 * 2.3e-16 * (np.abs(scaled).T @ np.abs(scaled))
    assert (np.abs(found.high - scaled.T @ scaled) <= bound).all()
    assert np.array_equal(found.high, found.high.T)


def test_columns_of_many_that_are_zero_at_first_are_judged_when_they_are_not() -> None:
    """They are small, so that no sum grows by them; but one determines the other to nine digits."""
    rows = np.random.default_rng(6).normal(size=(1200, 139))
    rows[:, 7] *= 1e-3
    rows[:, 5] = rows[:, 7] * (1 + 1e-9 * rows[:, 5])
    rows[:600, [5, 7]] = 0.0
    assert _in_one_go(rows, "rows", 300)[0] == 2


def test_an_accumulator_that_begins_again_is_like_new() -> None:
    rng = np.random.default_rng(10)
    tame, wild = rng.normal(size=(900, 5)), rng.normal(size=(900, 5))
    wild[:, 2] = wild[:, 1] + 1e-9 * wild[:, 2]
    used = TriangularAccumulator(5)
    for rows in (wild, tame, wild, tame):
        fresh = TriangularAccumulator(5)
        for accumulator in (used, fresh):
            for start in range(0, 900, 300):
                assert accumulator.add(np.ascontiguousarray(rows[start : start + 300].T), np.arange(300))
        factor = used.finish()
        kept = factor.copy()
        assert np.array_equal(factor, fresh.finish())
        assert used.restart()
        assert Products.read(used.finish()).low is None
        assert np.array_equal(factor, kept)


def test_preparing_loads_what_a_fit_of_rows_in_memory_uses() -> None:
    """A fit after it finds everything compiled: nothing is compiled or loaded while a clock runs."""
    TriangularSketch().prepare()
    kernels = (add_tiles_of_rows, add_tiles_of_columns)
    before = [len(kernel.signatures) for kernel in kernels]
    assert all(before)
    rng = np.random.default_rng(0)
    _in_one_go(rng.normal(size=(600, 9)), "rows", 300)
    _in_one_go(rng.normal(size=(600, 9)), "columns", 300)
    assert [len(kernel.signatures) for kernel in kernels] == before


@pytest.mark.parametrize("units", ["same", "others", "low"])
@pytest.mark.parametrize("empty", ["none", "in one", "in both"])
def test_merging_in_one_pass_has_the_bits_of_the_sum_of_products(units: str, empty: str) -> None:
    rng = np.random.default_rng(11)
    pieces = []
    for number in range(2):
        rows = rng.normal(size=(40, 5))
        if empty == "in both" or (empty == "in one" and number):
            rows[:, 2] = 0.0
        scale = np.ldexp(1.0, -np.arange(5) - (number if units == "others" else 0))
        product = (rows * scale).T @ (rows * scale)
        pieces.append(Products(scale, product, 1e-20 * product if units == "low" and number else None))
    merged = TriangularSketch().merge(*(piece.written() for piece in pieces))
    assert np.array_equal(merged, pieces[0].plus(pieces[1]).written())


@pytest.mark.parametrize("width", [3, 9, 54, 140])
@pytest.mark.parametrize("weighted", [False, True])
def test_single_numbers_become_doubles_on_the_way(width: int, weighted: bool) -> None:
    """The bits are those of the same numbers as doubles: whole tiles, the rest of them, and a segment's end."""
    rng = np.random.default_rng(width)
    single = rng.normal(size=(70_001, width)).astype(np.float32)
    target = single[:, 0] + rng.normal(size=len(single))
    weights = rng.uniform(0.5, 2.0, len(single)) if weighted else None
    fits = [
        SketchedRegression("exact").fit(rows, target, sample_weight=weights).coef_
        for rows in (single, single.astype(np.float64))
    ]
    assert np.array_equal(fits[0], fits[1])
    single[66_000, width - 1] = np.nan
    with pytest.raises(ValueError, match="row 66000"):
        SketchedRegression("exact").fit(single, target)


@pytest.mark.parametrize("width", [5, 54, 300])
def test_one_tile_is_added_to_the_same_bits_with_and_without_the_compiler(width: int) -> None:
    rng = np.random.default_rng(width)
    rows = rng.normal(size=(width + 3, 2 * width))
    product, scale = rows @ rows.T, np.ldexp(1.0, rng.integers(-40, 40, width)).astype(np.float64)
    total, before = 3 * product[:width, :width], rng.uniform(1.0, 2.0, width)
    plain, compiled = np.empty((width, width)), np.empty((width, width))
    assert add_scaled(total, product, scale, before, plain) == add_scaled_gram(total, product, scale, before, compiled)
    assert np.array_equal(plain, compiled)
    product[1, 1] = np.nan
    assert add_scaled(total, product, scale, before, plain) == -1.0
