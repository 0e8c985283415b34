"""Merging in a fixed order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partsketch.fold import OrderedFold

Tree = str


def join(first: Tree, second: Tree) -> Tree:
    return f"({first}{second})"


@given(st.sets(st.integers(0, 60)))
def test_every_piece_is_merged_once_and_in_order(numbers: set[int]) -> None:
    fold: OrderedFold[tuple[int, ...]] = OrderedFold(lambda first, second: first + second)
    for number in sorted(numbers):
        fold.push(number, (number,))
    assert (fold.result() or ()) == tuple(sorted(numbers))
    assert (fold.result() or ()) == tuple(sorted(numbers)), "asking twice changes nothing"


@pytest.mark.parametrize(
    ("count", "shape"), [(1, "0"), (2, "(01)"), (3, "((01)2)"), (4, "((01)(23))"), (7, "(((01)(23))((45)6))")]
)
def test_the_tree_depends_on_the_numbers_alone(count: int, shape: str) -> None:
    fold: OrderedFold[Tree] = OrderedFold(join)
    for number in range(count):
        fold.push(number, str(number))
    assert fold.result() == shape


def test_pieces_left_out_keep_the_places_of_the_others() -> None:
    """Empty segments change nothing in the order in which the others are merged."""
    fold: OrderedFold[Tree] = OrderedFold(join)
    for number in (1, 2, 3, 6):
        fold.push(number, str(number))
    assert fold.result() == "((1(23))6)"


def test_only_logarithmically_many_pieces_are_kept() -> None:
    fold: OrderedFold[int] = OrderedFold(lambda first, second: first + second)
    for number in range(10_000):
        fold.push(number, 1)
        assert len(fold._stack) <= 14
    assert fold.result() == 10_000


def test_pieces_out_of_order_are_refused() -> None:
    fold: OrderedFold[int] = OrderedFold(lambda first, second: first + second)
    fold.push(3, 1)
    for number in (0, 3):
        with pytest.raises(ValueError, match="came after"):
            fold.push(number, 1)
    assert OrderedFold(join).result() is None
