"""Many groups summed side by side: the same as each alone, and the same bits however rows are read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import partsketch as ps
from partsketch.summaries.group_walk import room_for_rows


def rows_of(kind: str, count: int = 3000, group_count: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    group = rng.integers(0, group_count, count)
    values = rng.normal(size=(count, 4))
    if kind == "group means far apart":
        values[:, :2] += (1e7 * rng.normal(size=(group_count, 2)))[group]
    elif kind == "far from zero":
        values[:, 1] = values[:, 1].round(4) + 2.0**33
    elif kind == "constant in groups":
        values[:, 2] = rng.normal(size=group_count)[group]
    elif kind == "nearly dependent":
        values[:, 1] = values[:, 0] + 1e-9 * values[:, 1]
    frame = pd.DataFrame(values, columns=list("abcd"))
    return frame.assign(g=group, w=rng.uniform(0.0, 2.0, count))


KINDS = ["plain", "group means far apart", "far from zero", "constant in groups", "nearly dependent"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", [None, "w"])
def test_a_group_is_what_it_is_alone(kind: str, weights: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    # Several segments, so that groups are merged.
    monkeypatch.setattr("partsketch.sites.sketch.group_segment_rows", lambda width, groups: 512)
    rows = rows_of(kind)
    summaries = ps.summarise(rows, list("abcd"), partition_by="g", weights=weights)
    for name, factor in zip(summaries.names, summaries.factors, strict=True):
        alone = ps.summarise(rows[rows["g"] == int(name)], list("abcd"), weights=weights).factors[0]
        assert factor.row_count == alone.row_count
        assert factor.weight_sum == pytest.approx(alone.weight_sum, rel=1e-12)
        centre = np.where(factor.centre != 0, factor.centre, alone.centre)
        mine, other = (part.rows.moved(-centre).high for part in (factor, alone))
        # Rows of the factor after the first hold what is left within the group: each column in its own size.
        sizes = np.linalg.norm(other[1:], axis=0)
        sizes[0] = 1.0
        gram, expected = mine[1:].T @ mine[1:], other[1:].T @ other[1:]
        # What is left of a constant is rounding, of the size of what was taken off.
        room = 1e-10 * np.outer(sizes, sizes) + 1e-12
        assert (np.abs(gram - expected) <= room).all()
        np.testing.assert_allclose(mine[0], other[0], rtol=1e-10, atol=1e-8)


@pytest.mark.parametrize("kind", ["plain", "far from zero", "nearly dependent"])
def test_bits_do_not_depend_on_blocks_and_threads(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("partsketch.sites.sketch.group_segment_rows", lambda width, groups: 512)
    rows = rows_of(kind)
    first, *others = (
        ps.summarise(data, list("abcd"), partition_by="g", engine=ps.LocalEngine(threads=threads, block_rows=size))
        for threads, size, data in ((1, 32768, rows), (2, 100, rows), (2, 777, rows.to_records(index=False)))
    )
    for other in others:
        assert [factor.matrix.tobytes() for factor in other.factors] == [f.matrix.tobytes() for f in first.factors]
        assert other.names == first.names


def test_within_groups_no_digits_are_lost() -> None:
    """Means of groups lie 1e7 spreads apart; deviations from them decide a fit with intercepts of partitions."""
    rows = rows_of("group means far apart")
    inner = rows.assign(a=rows["a"] - rows.groupby("g")["a"].transform("first"))
    far, near = (
        ps.summarise(data, list("abcd"), partition_by="g").fit("d", ["a", "c"], intercept="partition", vcov="CRV1")
        for data in (rows, inner)
    )
    # Differences of numbers of size 1e7 are known to 1e-9 in the first place.
    np.testing.assert_allclose(far.coefficients, near.coefficients, rtol=1e-7)
    np.testing.assert_allclose(far.standard_errors, near.standard_errors, rtol=1e-7)


def test_shuffled_rows_are_groups_too() -> None:
    rows = rows_of("plain")
    summaries = ps.summarise(rows, list("abcd"), partition_by="shuffle", n_partitions=7, random_state=4)
    assert sum(summaries.row_counts) == len(rows)
    whole = ps.summarise(rows, list("abcd"))
    np.testing.assert_allclose(summaries.fit("d").coefficients, whole.fit("d").coefficients, rtol=1e-11)


def test_what_is_not_a_number_is_named() -> None:
    rows = rows_of("plain")
    rows.loc[1234, "c"] = np.inf
    with pytest.raises(ps.InputError, match="Column 'c' has an infinite value in row 1234"):
        ps.summarise(rows, list("abcd"), partition_by="g")
    with pytest.raises(ps.InputError, match="Column 'b' has numbers of size"):
        ps.summarise(rows_of("plain").assign(b=lambda frame: frame["b"] * 1e-150), list("abcd"), partition_by="g")
    with pytest.raises(ps.InputError, match=r"too large|squares get lost"):
        ps.summarise(rows_of("plain").assign(b=lambda frame: frame["b"] * 1e160), list("abcd"), partition_by="g")


@pytest.mark.parametrize(("rows", "width"), [(9, 3), (1000, 22), (4097, 8), (70_000, 33)])
def test_rows_begin_where_lines_of_the_cache_do(rows: int, width: int) -> None:
    # The kernel that writes past the cache takes whole lines: elsewhere it would end the process.
    room = room_for_rows(rows, width)
    assert room.shape[0] == rows
    assert room.__array_interface__["data"][0] % 64 == 0
    assert room.strides[0] % 64 == 0
