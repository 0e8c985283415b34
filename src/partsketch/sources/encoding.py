"""One-hot encoding of text columns: levels found once, first level dropped beside an intercept."""

from __future__ import annotations

from collections.abc import Iterable
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

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return tuple(name for name, _ in self.levels)

    def levels_of(self, column: str) -> tuple[str, ...]:
        """Return all levels of an encoded column."""
        return dict(self.levels)[column]

    def indicator_names(self, column: str) -> tuple[str, ...]:
        """Return the feature names `column=level` that an encoded column becomes."""
        return tuple(f"{column}={level}" for level in self.levels_of(column)[int(self.drop_first) :])

    def source_columns(self, feature_names: Iterable[str]) -> tuple[str, ...]:
        """Return the columns of the data behind these feature names: what `features` has to be to obtain them."""
        column_of = {name: column for column in self.columns for name in self.indicator_names(column)}
        return tuple(dict.fromkeys(column_of.get(name, name) for name in feature_names))


NOTHING_ENCODED = Encoding()
