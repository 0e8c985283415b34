"""Merging many pieces along one fixed tree, whoever made them and in whatever order they arrive."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Generic, TypeVar

T = TypeVar("T")


class TreeFold(Generic[T]):
    """Merge pieces numbered 0, 1, 2, … along a binary tree that depends on the numbers alone.

    Node (level, index) of the tree stands for the pieces numbered index · 2^level to (index + 1) · 2^level − 1.
    Rounding depends on the order of summation, so the order is part of the result: siblings are merged, the first one
    first, and pieces left out count as empty. Nodes may come in any order and already merged to any level, so parts
    of the tree can be merged anywhere. Of pieces that come in order only logarithmically many are kept.
    """

    def __init__(self, merge: Callable[[T, T], T]) -> None:
        self._merge = merge
        self._nodes: dict[tuple[int, int], T] = {}
        self._top = 0

    def __len__(self) -> int:
        return len(self._nodes)

    def push(self, level: int, index: int, piece: T) -> None:
        """Add a node."""
        if self.covers(level, index):
            raise ValueError(f"node {index} of level {level} came twice")
        while (level, index ^ 1) in self._nodes:
            other = self._nodes.pop((level, index ^ 1))
            piece = self._merge(other, piece) if index % 2 else self._merge(piece, other)
            level, index = level + 1, index // 2
        self._nodes[level, index] = piece
        self._top = max(self._top, level)

    def covers(self, level: int, index: int) -> bool:
        """Whether this node has come, or has been merged into one above it."""
        return any((level + up, index >> up) in self._nodes for up in range(self._top - level + 1))

    def settle(self, is_known: Callable[[int, int], bool]) -> None:
        """Count as empty what has not come of the nodes of which all pieces are known, and merge on from there.

        Without this a piece whose sibling is empty would wait for it to the end.
        """
        if self._nodes:
            self._nodes = self._climbed(is_known, max(index << level for level, index in self._nodes).bit_length())
            self._top = max(level for level, _ in self._nodes)

    def change_first(self, count: int, change: Callable[[T], T]) -> None:
        """Put something else in the place of the nodes that have waited longest."""
        for place in list(islice(self._nodes, count)):
            self._nodes[place] = change(self._nodes[place])

    def nodes(self) -> list[tuple[int, int, T]]:
        """Return (level, index, piece) of what has been merged so far, in the order of the pieces' numbers."""
        places = sorted(self._nodes, key=lambda node: node[1] << node[0])
        return [(level, index, self._nodes[level, index]) for level, index in places]

    def result(self) -> T | None:
        """Return everything merged, or None when there was nothing."""
        if len(self._nodes) <= 1:
            return next(iter(self._nodes.values()), None)
        height = max(index << level for level, index in self._nodes).bit_length()
        (piece,) = self._climbed(lambda level, index: True, height).values()
        return piece

    def _climbed(self, is_known: Callable[[int, int], bool], height: int) -> dict[tuple[int, int], T]:
        """Return the nodes after merging, level by level, those whose siblings are there or known to be empty."""
        nodes = dict(self._nodes)
        for level in range(max(height, self._top)):
            for index in sorted(index for height, index in nodes if height == level):
                if (level, index) not in nodes:
                    continue  # went up with its sibling
                sibling = nodes.get((level, index ^ 1))
                if sibling is None and not is_known(level, index ^ 1):
                    continue
                piece = nodes.pop((level, index))
                if sibling is not None:
                    del nodes[level, index ^ 1]
                    piece = self._merge(sibling, piece) if index % 2 else self._merge(piece, sibling)
                nodes[level + 1, index // 2] = piece
        return nodes
