"""Sums of many groups at once are those of each group alone, whatever the segments, units and places of columns are."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import partsketch as ps
from partsketch.common.errors import InputError
from partsketch.common.linalg.double_double import DoubleDouble
from partsketch.sketches.groups import (
    Entries,
    GroupedTriangularSketch,
    factors_of,
    group_segment_rows,
    padded,
    summarise_groups,
)
from partsketch.sketches.kernels.group_sums import NEAR_ROWS, PRECISE, ROWS, SUMS

ROWS_IN_ALL, WIDTH, GROUPS = 3000, 9, 7


def made(seed: int, places: float = 0.0, near: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = np.ones((ROWS_IN_ALL, WIDTH))
    rows[:, 1:] = rng.normal(size=(ROWS_IN_ALL, WIDTH - 1)) + places * np.arange(1, WIDTH)
    if near:
        rows[:, 2] = rows[:, 1] + near * rng.normal(size=ROWS_IN_ALL)
    return rows, rng.integers(0, GROUPS, ROWS_IN_ALL) ** 2


def listed(rows: np.ndarray, groups: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    width = rows.shape[1]
    room = np.zeros((len(rows), padded(width)))
    room[:, :width] = rows
    if weights is not None:
        room[:, 0] = np.sqrt(weights)
    return summarise_groups(room, np.empty(0) if weights is None else weights, groups, width).flat


def kinds(flat: np.ndarray) -> list[int]:
    return [int(kind) for kind in Entries.read(flat).head[:, 3]]


def merged(rows: np.ndarray, groups: np.ndarray, cuts: list[int], weights: np.ndarray | None = None) -> np.ndarray:
    """Lists of the rows between the cuts, merged one after another."""
    sketch = GroupedTriangularSketch()
    parts = [
        listed(rows[first:last], groups[first:last], None if weights is None else weights[first:last])
        for first, last in zip([0, *cuts], [*cuts, len(rows)], strict=True)
    ]
    whole = parts[0]
    for part in parts[1:]:
        whole = sketch.merge(whole, part)
    return whole


def exact_pivots(rows: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return what the columns before leave of each column's sum of squares, in rational arithmetic."""
    values = [[Fraction(float(value)) for value in row] for row in rows]
    given = [Fraction(1)] * len(rows) if weights is None else [Fraction(float(weight)) for weight in weights]
    width = rows.shape[1]
    left = [
        [sum((w * row[i] * row[j] for w, row in zip(given, values, strict=True)), Fraction(0)) for j in range(width)]
        for i in range(width)
    ]
    for k in range(width):
        for i in range(k + 1, width):
            if left[k][k]:
                times = left[k][i] / left[k][k]
                left[i] = [a - times * b for a, b in zip(left[i], left[k], strict=True)]
    return np.array([float(left[k][k]) for k in range(width)])


@pytest.mark.parametrize(("places", "near"), [(0.0, 0.0), (1e6, 0.0), (0.0, 1e-7), (1e9, 1e-5)])
@pytest.mark.parametrize("weighted", [False, True])
def test_merged_lists_are_the_sums_of_all_rows(places: float, near: float, weighted: bool) -> None:
    rows, groups = made(0, places, near)
    weights = np.random.default_rng(1).uniform(0.5, 2, ROWS_IN_ALL) if weighted else None
    found = factors_of(merged(rows, groups, [1100, 1101, 1150], weights))
    assert found.groups.tolist() == sorted(set(groups.tolist()))
    assert int(found.counts.sum()) == ROWS_IN_ALL
    for place, group in enumerate(found.groups):
        chosen = groups == group
        values = (rows[chosen] - found.centres[place]).astype(np.longdouble)
        if weights is not None:
            values *= np.sqrt(weights[chosen].astype(np.longdouble))[:, None]
        expected = values.T @ values
        size = np.sqrt(np.outer(np.diagonal(expected), np.diagonal(expected)))
        high, low = found.factor(place)
        factor = high.astype(np.longdouble) + (0.0 if low is None else low)
        # Of 500 rows in doubles; with twice the digits only the long doubles here round, and the roots of weights.
        tolerance = 1e-13 if low is None else 1e-15 if weighted else 5e-17
        assert float(np.abs((factor.T @ factor - expected) / size).max()) < tolerance


def ugly(kind: str) -> np.ndarray:
    """Return 90 rows of one group, in the order of their segments."""
    rng = np.random.default_rng(5)
    rows = np.ones((90, 5))
    rows[:, 1:] = rng.normal(size=(90, 4))
    if kind == "identity numbers":
        rows[:, 1] = 1e16 + 2 * np.arange(90)
        rows[:, 2] = rows[:, 1] + 2 * rng.integers(0, 40, 90)
    elif kind == "drift":
        # Two clocks that differ by a second, over years: within a segment they are well told apart.
        rows[:, 1] = 1.7e9 + np.repeat(np.arange(9) * 1e8, 10) + rng.integers(0, 5, 90)
        rows[:, 2] = rows[:, 1] + rng.integers(0, 5, 90)
    elif kind == "nearly dependent":
        rows[:, 3] = rows[:, 2] + 1e-9 * rng.normal(size=90)
    elif kind == "constant and zero":
        rows[:, 1], rows[:, 2] = 1.7e18, 0.0
    elif kind == "one huge row":
        rows[77, 1:3] = 1e12, 2e12
    elif kind == "constant until late":
        rows[:85, 2] = 123456789.0
    return rows


UGLY = ["plain", "identity numbers", "drift", "nearly dependent", "constant and zero", "one huge row"]


@pytest.mark.parametrize("kind", [*UGLY, "constant until late"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cuts", [[], [45], [*range(3, 90, 3)], [*range(1, 90)], [30, 31, 70, 72], [9, 80]])
def test_a_group_strewn_over_segments_keeps_its_digits(kind: str, cuts: list[int], weighted: bool) -> None:
    """One to ninety rows of the group in a segment, beside another one: judged in rational arithmetic."""
    mine = ugly(kind)
    weights = np.random.default_rng(2).integers(1, 9, 90).astype(float) ** 2 if weighted else None
    # Each cut of mine is a cut of all, which have a row of another group behind every row of mine.
    rows = np.repeat(mine, 2, axis=0)
    rows[1::2, 1:] = np.random.default_rng(6).normal(size=(90, 4))
    groups = np.tile([4, 9], 90)
    found = factors_of(merged(rows, groups, [2 * cut for cut in cuts], None if weights is None else weights.repeat(2)))
    assert found.groups.tolist() == [4, 9]
    high, low = found.factor(0)
    # What is left beside the ones does not depend on the place of a column.
    expected = exact_pivots(mine, weights)
    pivots = (np.diagonal(high) + (0.0 if low is None else np.diagonal(low))) ** 2
    # In doubles a column keeps all digits but the four that are given away; what is left of none is nothing beside it.
    squares = np.einsum("ij,ij->j", mine - found.centres[0], mine - found.centres[0])
    np.testing.assert_allclose(pivots, expected, rtol=2e-10, atol=float(1e-28 * squares.max()))


def test_a_group_keeps_its_rows_while_they_are_few() -> None:
    rows, _ = made(3)
    groups = np.zeros(len(rows), dtype=np.int64)
    most = 2 * WIDTH
    assert kinds(listed(rows[:most], groups[:most])) == [ROWS]
    assert kinds(listed(rows[: most + 1], groups[: most + 1])) == [SUMS]
    assert kinds(merged(rows[:most], groups[:most], [5])) == [ROWS]
    assert kinds(merged(rows[: most + 1], groups[: most + 1], [5])) == [SUMS]
    # Rows that meet sums are added to them.
    assert kinds(merged(rows[:100], groups[:100], [5])) == [SUMS]
    assert kinds(merged(rows[:100], groups[:100], [95])) == [SUMS]


def test_nearly_dependent_columns_keep_twice_the_digits() -> None:
    assert set(kinds(listed(*made(0)))) == {SUMS}
    assert set(kinds(listed(*made(0, near=1e-5)))) == {PRECISE}


def test_sums_around_other_places_keep_twice_the_digits() -> None:
    rows, groups = made(0)
    rows[1500:, 4] += 1e6
    assert set(kinds(merged(rows, groups, [1500]))) == {PRECISE}
    # Segments whose rows lie at the same place, far from zero, are measured from the same value.
    rows[:, 4] += 1e8
    assert set(kinds(merged(rows[:1500], groups[:1500], [700]))) == {SUMS}


def test_more_rows_than_are_kept_near() -> None:
    rng = np.random.default_rng(8)
    for near in (1.0, 1e-6):
        rows = np.ones((3 * NEAR_ROWS + 5, 4))
        rows[:, 1:] = rng.normal(size=(len(rows), 3)) + 1e5
        rows[:, 3] = rows[:, 2] + near * rng.normal(size=len(rows))
        found = factors_of(listed(rows, np.zeros(len(rows), dtype=np.int64)))
        values = (rows - found.centres[0]).astype(np.longdouble)
        high, low = found.factor(0)
        assert (low is None) == (near == 1.0)
        factor = high.astype(np.longdouble) + (0.0 if low is None else low)
        np.testing.assert_allclose(
            (factor.T @ factor).astype(float), (values.T @ values).astype(float), rtol=1e-13, atol=1e-9
        )


def test_factors_are_those_of_the_rows() -> None:
    rows, groups = made(2, places=3.0)
    found = factors_of(listed(rows, groups))
    for place, group in enumerate(found.groups):
        chosen = rows[groups == group] - found.centres[place]
        assert (found.counts[place], found.weights[place]) == (len(chosen), float(len(chosen)))
        expected = np.linalg.qr(chosen, mode="r")
        expected *= np.sign(np.diagonal(expected))[:, None]
        np.testing.assert_allclose(found.factor(place)[0], expected, rtol=1e-10, atol=1e-10)


def test_groups_with_fewer_rows_than_columns() -> None:
    rows, _ = made(3)
    found = factors_of(listed(rows[:8], np.array([0, 0, 0, 1, 2, 2, 2, 2])))
    for group, chosen in ((0, rows[:3]), (1, rows[3:4]), (2, rows[4:8])):
        values = DoubleDouble.of(*found.factor(group)).moved(found.centres[group]).high
        np.testing.assert_allclose(values.T @ values, chosen.T @ chosen, rtol=1e-12, atol=1e-12)


def test_far_more_numbers_of_groups_than_rows() -> None:
    rows, _ = made(3)
    found = factors_of(listed(rows[:4], np.array([10**6, 5, 10**6, 7])))
    assert found.groups.tolist() == [5, 7, 10**6]
    assert found.counts.tolist() == [1, 1, 2]


@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_numbers_whose_squares_get_lost_are_refused(size: float) -> None:
    table = pa.table({"x": [size, 2 * size, 3 * size], "y": [1.0, 2.0, 4.0], "g": [0, 0, 1]})
    with pytest.raises(InputError, match="squares"):
        ps.summarise(table, ["x", "y"], partition_by="g")


def test_segments_depend_on_columns_and_groups_alone() -> None:
    assert [group_segment_rows(22, groups) for groups in (2, 200, 1000, 20_000)] == [2**17, 2**17, 2**17, 2**18]
    assert [group_segment_rows(50, groups) for groups in (200, 1000)] == [2**16, 2**17]
    assert group_segment_rows(2000, 2) == 2**12


@pytest.mark.parametrize("column", [np.arange(70_000) % 50 - 20, np.arange(70_000) % 50 * 1e6, np.arange(70_000) % 50])
def test_bits_do_not_depend_on_the_way_rows_come(column: np.ndarray) -> None:
    """Two segments, in one block or many, on one thread or two."""
    rng = np.random.default_rng(4)
    values = {name: rng.normal(size=70_000) + 5 for name in "abcdefghijk"}
    table = pa.table({**values, "g": column})
    first = ps.summarise(table, list(values), partition_by="g")
    cut = pa.Table.from_batches(table.to_batches(max_chunksize=777))
    assert ps.summarise(cut, list(values), partition_by="g") == first
    assert ps.summarise(table.to_pandas(), list(values), partition_by="g") == first
    assert ps.summarise(table, list(values), partition_by="g", engine=ps.LocalEngine(2, block_rows=1001)) == first


def test_many_groups_have_the_factors_that_each_has_alone() -> None:
    """Of a thousand groups and more another thread makes the second half."""
    rng = np.random.default_rng(5)
    groups = np.sort(np.r_[np.arange(1100), rng.integers(0, 1100, 20_000)])
    rows = np.column_stack([np.ones(len(groups)), rng.normal(size=(len(groups), 3))])
    together = factors_of(listed(rows, groups))
    last = groups >= 540
    alone = factors_of(listed(rows[last], groups[last]))
    np.testing.assert_array_equal(together.highs[540:], alone.highs)
    np.testing.assert_array_equal(together.centres[540:], alone.centres)
    assert np.all(together.highs[:, 0] != 0)
