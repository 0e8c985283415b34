"""Merging along a fixed tree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partsketch.summaries.merge_tree import TreeFold

Tree = str


def join(first: Tree, second: Tree) -> Tree:
    return f"({first}{second})"


def fold_of(numbers: list[int]) -> TreeFold[Tree]:
    fold: TreeFold[Tree] = TreeFold(join)
    for number in numbers:
        fold.push(0, number, f"{number} ")
    return fold


def complete_tree(numbers: set[int], level: int, index: int) -> Tree | None:
    """The definition: a node is its two halves merged, the first one first, where empty ones change nothing."""
    if level == 0:
        return f"{index} " if index in numbers else None
    halves = [complete_tree(numbers, level - 1, 2 * index + side) for side in (0, 1)]
    there = [half for half in halves if half is not None]
    return join(*there) if len(there) == 2 else there[0] if there else None


@pytest.mark.parametrize(
    ("count", "shape"), [(1, "0"), (2, "(01)"), (3, "((01)2)"), (4, "((01)(23))"), (7, "(((01)(23))((45)6))")]
)
def test_the_tree_depends_on_the_numbers_alone(count: int, shape: str) -> None:
    assert str(fold_of(list(range(count))).result()).replace(" ", "") == shape


def test_pieces_left_out_keep_the_places_of_the_others() -> None:
    assert fold_of([1, 2, 3, 6]).result() == "((1 (2 3 ))6 )"


@given(st.permutations(range(40)), st.integers(0, 40))
def test_the_order_of_arrival_changes_nothing(order: list[int], count: int) -> None:
    numbers = order[:count]
    fold = fold_of(numbers)
    assert fold.result() == complete_tree(set(numbers), 6, 0)
    assert fold.result() == complete_tree(set(numbers), 6, 0), "asking twice changes nothing"


@given(st.permutations(range(40)), st.integers(1, 40), st.data())
def test_parts_may_be_merged_anywhere(order: list[int], count: int, data: st.DataObject) -> None:
    """Pieces are dealt to workers, whose nodes go to other workers, and so on, in any order."""
    numbers = order[:count]
    nodes: list[tuple[int, int, Tree]] = [(0, number, f"{number} ") for number in numbers]
    for _ in range(data.draw(st.integers(0, 3))):
        workers = [TreeFold(join) for _ in range(data.draw(st.integers(1, 5)))]
        for node in data.draw(st.permutations(nodes)):
            workers[data.draw(st.integers(0, len(workers) - 1))].push(*node)
        nodes = [node for worker in workers for node in worker.nodes()]
    last = TreeFold(join)
    for node in nodes:
        last.push(*node)
    assert last.result() == complete_tree(set(numbers), 6, 0)


@given(st.permutations(range(64)), st.sets(st.integers(0, 63)), st.integers(0, 64))
def test_settling_early_changes_nothing_and_leaves_little(order: list[int], empty: set[int], seen: int) -> None:
    """Of the numbers seen so far some are empty; they are told from those that are still to come."""
    known: TreeFold[bool] = TreeFold(lambda first, second: True)
    fold: TreeFold[Tree] = TreeFold(join)
    for position, number in enumerate(order):
        known.push(0, number, True)
        if number not in empty:
            fold.push(0, number, f"{number} ")
        if position >= seen:
            fold.settle(known.covers)
            assert len(fold) <= len(known)
    assert fold.result() == complete_tree(set(range(64)) - empty, 6, 0)


def test_only_logarithmically_many_pieces_are_kept() -> None:
    fold: TreeFold[int] = TreeFold(lambda first, second: first + second)
    for number in range(10_000):
        fold.push(0, number, 1)
        assert len(fold) <= 14
    assert fold.result() == 10_000


def test_nodes_come_once() -> None:
    fold = fold_of([2, 3])
    for level, index in ((0, 2), (0, 3), (1, 1)):
        with pytest.raises(ValueError, match="came twice"):
            fold.push(level, index, "again")
    # Also after what never came was counted as empty, which lifts nodes above all that were there before.
    settled = fold_of([1, 6])
    settled.settle(lambda level, index: True)
    for level, index in ((0, 1), (0, 0), (2, 1)):
        with pytest.raises(ValueError, match="came twice"):
            settled.push(level, index, "again")
    assert TreeFold(join).result() is None
    assert TreeFold(join).nodes() == []
