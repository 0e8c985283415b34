"""How columns of the data become features: text columns one-hot encoded, or the design of a formula."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from partsketch.sources.formula.design import Design


@dataclass(frozen=True)
class Encoding:
    """Levels of every encoded column, in the order of the columns.

    Attributes
    ----------
    levels
        Pairs (column name, levels in increasing order), all levels, the dropped one included.
    drop_first
        Whether the first level of each column has no indicator of its own (it is the reference level).
    design
        The design of a formula, which then makes all features and targets; None without a formula.
    """

    levels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    drop_first: bool = True
    design: Design | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return tuple(name for name, _ in self.levels)

    @property
    def needs_pass(self) -> bool:
        """Whether a pass over the data found something of it."""
        return bool(self.levels) or (self.design is not None and self.design.needs_pass)

    def levels_of(self, column: str) -> tuple[str, ...]:
        """Return all levels of an encoded column."""
        return dict(self.levels)[column]

    def indicator_names(self, column: str) -> tuple[str, ...]:
        """Return the feature names `column=level` that an encoded column becomes."""
        return tuple(f"{column}={level}" for level in self.levels_of(column)[int(self.drop_first) :])

    def narrowed(self, feature_names: Sequence[str], target_names: Sequence[str] = ()) -> Encoding:
        """Return what is needed to make these features; text of which all indicators are gone is not encoded."""
        if self.design is not None:
            known = {*self.design.feature_names, *self.design.target_names}
            names = [name for name in feature_names if name in known]
            return replace(self, design=self.design.narrowed(names).with_targets(target_names))
        kept = set(feature_names)
        return Encoding(
            tuple(pair for pair in self.levels if kept & set(self.indicator_names(pair[0]))), self.drop_first
        )

    def expanded(self, name: str) -> tuple[str, ...]:
        """Return the features that an encoded column, or a term of a formula, became; else the name itself."""
        if self.design is not None:
            return self.design.columns_of(name) or (name,)
        return self.indicator_names(name) if name in self.columns else (name,)

    def source_columns(self, feature_names: Iterable[str]) -> tuple[str, ...]:
        """Return the columns of the data behind these feature names: what `features` has to be to obtain them."""
        if self.design is not None:
            return self.design.narrowed(tuple(feature_names)).feature_columns
        column_of = {name: column for column in self.columns for name in self.indicator_names(column)}
        return tuple(dict.fromkeys(column_of.get(name, name) for name in feature_names))


NOTHING_ENCODED = Encoding()
