"""One-hot encoding of text columns: levels found once, first level dropped beside an intercept."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Encoding:
    """Levels of every encoded column, in the order of the columns.

    Attributes
    ----------
    levels
        Pairs (column name, levels in increasing order), all levels, the dropped one included.
    drop_first
        Whether the first level of each column has no indicator of its own (it is the reference level).
    """

    levels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    drop_first: bool = True
