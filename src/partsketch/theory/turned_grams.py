"""Sums over partitions of products of small matrices, a part of the partitions at a time: they may be thousands."""

from __future__ import annotations

#: Partitions whose matrices are made together.
_TOGETHER = 512


def parts_of(count: int) -> list[slice]:
    """Return parts of many partitions: a matrix of each is made for a part at a time."""
    return [slice(start, start + _TOGETHER) for start in range(0, count, _TOGETHER)]
