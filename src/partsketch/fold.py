"""Merging many pieces in one fixed order, whoever made them and whenever they arrive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class OrderedFold(Generic[T]):
    """Merge pieces numbered 0, 1, 2, … along a binary tree that depends on the numbers alone.

    Rounding depends on the order of summation, so the order is part of the result. A tree also keeps only
    logarithmically many pieces, whatever their number, and adds up rounding errors more slowly than a chain.
    """

    def __init__(self, merge: Callable[[T, T], T]) -> None:
        self._merge = merge
        self._next = 0
        self._stack: list[tuple[int, T | None]] = []

    def push(self, index: int, piece: T) -> None:
        """Add the piece of this number; numbers left out count as empty, and come in increasing order."""
        if index < self._next:
            raise ValueError(f"piece {index} came after piece {self._next - 1}")
        while self._next < index:
            self._carry(None)
        self._carry(piece)

    def _carry(self, piece: T | None) -> None:
        self._next += 1
        level = 0
        while self._stack and self._stack[-1][0] == level:
            piece = self._join(self._stack.pop()[1], piece)
            level += 1
        self._stack.append((level, piece))

    def _join(self, first: T | None, second: T | None) -> T | None:
        if first is None or second is None:
            return second if first is None else first
        return self._merge(first, second)

    def result(self) -> T | None:
        """Return everything merged, or None when there was nothing."""
        piece: T | None = None
        for _, earlier in reversed(self._stack):
            piece = self._join(earlier, piece)
        return piece
