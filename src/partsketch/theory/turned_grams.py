"""Sums over partitions of products of small matrices, a part of the partitions at a time: they may be thousands."""

from __future__ import annotations

#: Numbers of matrices that are made together, a quarter of a megabyte: they stay in the cache, and memory that one
#: product gave back serves the next. In larger pieces the system takes it back, and clears it, every time.
_NUMBERS_TOGETHER = 2**15
#: Partitions whose matrices are made together, at most.
_TOGETHER = 512


def parts_of(count: int, width: int) -> list[slice]:
    """Return parts of many partitions with matrices of so many columns, which are made for a part at a time."""
    step = min(_TOGETHER, max(1, _NUMBERS_TOGETHER // max(1, width * width)))
    return [slice(start, start + step) for start in range(0, count, step)]
