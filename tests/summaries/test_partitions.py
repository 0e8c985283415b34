"""How rows are cut into partitions."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from partsketch import InputError
from partsketch.sources import DenseBlock, array_source
from partsketch.summaries.partitions import (
    Partitioning,
    check_partition_sizes,
    make_partitioning,
    order_partitions,
    single_partition,
)


def rows(count: int, first: int = 0) -> DenseBlock:
    numbers = np.arange(first, first + count)
    return DenseBlock(numbers, np.zeros((count, 1)), np.zeros((count, 1)))


def shuffled(count: int, seed: int, partitions: int) -> NDArray[np.int64]:
    names = tuple(str(i) for i in range(partitions))
    return Partitioning(names, shuffle_seed=seed).assign(rows(count))


def test_more_partitions_than_can_be_named_are_refused_before_they_are() -> None:
    source = array_source(np.zeros((10, 2)), np.zeros(10))
    for by, count, words in (("shuffle", 2**31 - 1, "number of rows, 10"), ("order", 2**31 - 1, "at most 10,000,000")):
        with pytest.raises(InputError, match=words):
            make_partitioning(source, by, count, "spread", 0)


@given(n=st.integers(1, 10**12), k=st.integers(1, 300))
def test_order_sizes(n: int, k: int) -> None:
    spread = np.diff(order_partitions(n, k, "spread").bounds or ())
    assert len(spread) == k
    assert spread.sum() == n
    assert spread.max() - spread.min() <= 1
    drop = np.diff(order_partitions(n, k, "drop").bounds or ())
    assert len(drop) == k
    assert set(drop.tolist()) == {n // k}


def test_single_partition_holds_everything() -> None:
    assert single_partition(10).bounds == (0, 10)
    assert (single_partition(None).bounds or (0,))[-1] > 10**18


@pytest.mark.parametrize("k", [1, 2, 3, 7, 64, 1000])
def test_shuffled_sizes_are_about_even(k: int) -> None:
    """200,000 rows: χ² of the k sizes against even ones has mean k − 1 and variance 2(k − 1); five deviations."""
    sizes = np.bincount(shuffled(200_000, 5, k), minlength=k)
    assert len(sizes) == k
    statistic = float(((sizes - 200_000 / k) ** 2 / (200_000 / k)).sum())
    assert abs(statistic - (k - 1)) <= 5 * np.sqrt(2 * max(k - 1, 0)) + 1e-9


def test_shuffle_depends_on_seed_and_row_number_alone() -> None:
    whole = shuffled(5000, 3, 8)
    partitioning = Partitioning(tuple("abcdefgh"), shuffle_seed=3)
    parts = [partitioning.assign(rows(count, first)) for first, count in [(0, 17), (17, 2983), (3000, 2000)]]
    assert np.array_equal(np.concatenate(parts), whole)
    assert not np.array_equal(shuffled(5000, 4, 8), whole)


def test_shuffles_of_two_seeds_and_neighbouring_rows_are_unrelated() -> None:
    """100,000 rows, k = 2: agreements are binomial, with standard deviation √N/2; five are allowed."""
    first, second = shuffled(100_000, 0, 2), shuffled(100_000, 1, 2)
    for agree in (first == second, first[1:] == first[:-1]):
        assert abs(agree.sum() - agree.size / 2) < 5 * np.sqrt(agree.size) / 2


def test_a_row_stays_in_its_relative_place_when_k_doubles() -> None:
    """The high bits decide: partition i of k becomes 2i or 2i + 1 of 2k."""
    assert np.array_equal(shuffled(1000, 9, 16) // 2, shuffled(1000, 9, 8))


def test_labels_are_used_as_they_are() -> None:
    block = DenseBlock(np.arange(3), np.zeros((3, 1)), np.zeros((3, 1)), labels=np.array([1, 0, 1]))
    assert Partitioning(("a", "b")).assign(block).tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match="labels"):
        Partitioning(("a", "b")).assign(rows(2))


def test_choices_that_do_not_go_together_are_refused() -> None:
    source = array_source(np.zeros((10, 1)), np.zeros(10))
    with pytest.raises(InputError, match="needs files"):
        make_partitioning(source, "file", 2, "spread", 0)
    for partition_by in ("shuffle", "file", "site"):
        with pytest.raises(InputError, match="remainder"):
            make_partitioning(source, partition_by, 2, "drop", 0)


@given(n=st.integers(1, 400), k=st.integers(1, 400), columns=st.integers(1, 20))
def test_the_largest_possible_number_of_partitions_is_named_and_true(n: int, k: int, columns: int) -> None:
    def check(count: int) -> None:
        bounds = order_partitions(n, count, "spread").bounds or ()
        sizes = np.diff(bounds).tolist()
        check_partition_sizes(sizes, tuple(str(i) for i in range(count)), columns, "order", n)

    if n // k >= columns + 2:
        check(k)
        return
    with pytest.raises(InputError) as refusal:
        check(k)
    found = re.search(r"largest possible number of partitions is (\d+)", str(refusal.value))
    if found is None:
        assert n < columns + 2
        assert "Too few rows" in str(refusal.value)
        return
    largest = int(found.group(1))
    check(largest)
    with pytest.raises(InputError):
        check(largest + 1)


def test_a_small_partition_is_named() -> None:
    with pytest.raises(InputError, match="'north' has 2 rows"):
        check_partition_sizes([50, 2], ("south", "north"), 3, "site", 52)
