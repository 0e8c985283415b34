"""What is asked of the data: opened for a fit, and told in the record so that a reader can repeat it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, TypedDict, TypeVar

from partsketch.common.errors import InputError
from partsketch.engines.base import Engine
from partsketch.fitting.keywords import FitKeywords
from partsketch.fitting.options import FitOptions
from partsketch.model.model import Model
from partsketch.sources import open_source
from partsketch.sources.base import Source
from partsketch.sources.column_source import ColumnSource
from partsketch.sources.encoding import Encoding
from partsketch.sources.files.paths import are_paths, entries_of
from partsketch.sources.files.readable import open_readable
from partsketch.sources.formula.dialects import one_absorbed


class _HasIntercept(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def fit_intercept(self) -> bool: ...


#: What to do about a level that sites did not agree on, or that was not there when rows were sketched.
_AGREED = "correct it, or add it to the levels that all sites agree on (--levels) and sketch again"
SUMMARISED = "correct it, or sketch or summarise all rows again with levels that have it"
_WRITTEN = "correct it, or add it to levels=[…] in the formula"

Options = TypeVar("Options", bound=_HasIntercept)


class DataKeywords(TypedDict, total=False):
    """Keywords about columns that `partsketch.sketch` and `plan` pass on as they are given, typed."""

    weights: str | None
    encode: bool
    missing: Literal["error", "drop"]


@dataclass(frozen=True)
class DataRequest:
    """Data and the columns that are wanted of them, in the words of `partsketch.fit`.

    Attributes
    ----------
    data
        Paths, or whatever holds the rows.
    target, features, weights
        Names of columns; features None takes all that are left.
    encode
        Whether text columns are one-hot encoded.
    missing
        "error" refuses missing values, "drop" leaves their rows out.
    levels
        Levels of text columns that were agreed on, first the reference level; None finds them.
    encoding
        In place of target, features and levels: how the columns of earlier rows were made.
    """

    data: Any
    target: str | Sequence[str] | None
    features: Sequence[str] | None = None
    weights: str | None = None
    encode: bool = False
    missing: Literal["error", "drop"] = "error"
    levels: Mapping[str, Sequence[str]] | None = None
    encoding: Encoding | None = None

    @property
    def formula(self) -> str | None:
        """The formula that stands in place of the target, if one does."""
        target = self.target[0] if isinstance(self.target, list | tuple) and len(self.target) == 1 else self.target
        return target if isinstance(target, str) and "~" in target else None

    def absorbing(self, keywords: FitKeywords) -> tuple[DataRequest, FitKeywords]:
        """Return what "target ~ features | column" asks for: the formula without the column, which is absorbed."""
        formula = self.formula
        before, bar, behind = ("", "", "") if formula is None else _parts(formula)
        if not bar:
            return self, keywords
        column = behind.strip()
        name = column[1:-1] if len(column) > 2 and column[0] == column[-1] == "`" else column
        if not name or (name == column and not re.fullmatch(r"[\w.]+", name)):
            instead = one_absorbed(before.strip(), behind)
            raise InputError(f"A fit absorbs one column behind '|', unlike {formula!r}: {instead}.")
        if keywords.absorb not in (None, name):
            raise InputError(f"absorb={keywords.absorb!r} and {name!r} behind '|' in the formula: give one of them.")
        return replace(self, target=before.strip()), replace(keywords, absorb=name)

    def open(
        self,
        partition_column: str | None,
        fit_intercept: bool,
        engine: Engine | None = None,
        cluster_column: str | None = None,
    ) -> Source:
        """Open the data with these columns, that of the partitions, and one of clusters beside it."""
        formula = self.formula
        if isinstance(self.data, str) and "~" in self.data[1:] and not isinstance(self.target, str | list | tuple):
            raise InputError(f"{self.data!r} is a formula, and the data come first: write fit(data, {self.data!r}).")
        if formula is not None and self.features is not None:
            raise InputError("Give features or a formula, not both: the formula names its features.")
        source = open_source(
            self.data,
            target=None if formula else self.target,
            features=self.features,
            weights=self.weights,
            partition_column=(
                partition_column
                if cluster_column is None or partition_column is None
                else (partition_column, cluster_column)
            ),
            encode=self.encode,
            missing=self.missing,
            fit_intercept=fit_intercept,
            encoding=self.encoding if self.levels is None or formula else _encoding(self.levels, fit_intercept),
            engine=engine,
            formula=formula,
            levels=self.levels if formula else None,
        )
        # Levels that a pass over these rows found are all there: only those that a formula lists can lack one.
        written = _WRITTEN if formula and "levels" in formula else None
        known = _AGREED if self.levels is not None else SUMMARISED if self.encoding is not None else written
        return replace(source, remedy=known) if known and isinstance(source, ColumnSource) else source

    def open_for(self, options: FitOptions, engine: Engine | None = None) -> Source:
        """Open the data for a fit. When partitions are files and may be left out, those that cannot be opened are."""
        columns = (options.partition_column, options.fit_intercept, engine, options.cluster_column)
        if options.on_partition_error == "drop" and options.partition_by == "file" and are_paths(self.data):
            return open_readable(self.data, lambda data: replace(self, data=data).open(*columns))
        return self.open(*columns)

    def check_private(self, source: Source) -> None:
        """Refuse a private summary with what was found of its rows: levels and ends of splines are values of rows."""
        from partsketch.sources.formula.given import found_of_rows, levels_of_rows

        design = source.encoding.design
        told = [] if design is None else found_of_rows(design.factors, self.levels)
        if told:
            raise InputError(
                f"A private sketch would tell what was found of the rows for {told[0]!r}: agree on these numbers with "
                "all sites, and give them as levels (--levels), or write them in the formula (knots, lower_bound and "
                "upper_bound of bs)."
            )
        if design is not None:
            told = levels_of_rows(design.factors, self.levels)
        elif self.levels is None:
            told = list(source.encoding.columns)
        if told:
            example = f'{{"{told[0]}": ["first", "second"]}}'
            raise InputError(
                f"A private sketch would name the levels of {told[0]!r} that were found among the rows: agree on them "
                f"with all sites, and give them as levels (--levels, a JSON file such as {example})."
            )

    def noted_in(self, model: Model) -> Model:
        """Return the model with the data and columns that were asked for in its record.

        Rows that came from memory have no paths; the record then says so by None.
        """
        asked = {
            "paths": entries_of(self.data) if are_paths(self.data) else None,
            "targets": list(model.target_names),
            "features": None if self.features is None else [str(name) for name in self.features],
            "formula": None if model.encoding.design is None else model.encoding.design.formula,
            "weights": self.weights,
            "encode": bool(self.encode),
            "missing": self.missing,
        }
        return replace(model, record=replace(model.record, asked=asked))


def _parts(formula: str) -> tuple[str, str, str]:
    """Return what stands before the first '|' outside of brackets and quotes, the bar if there is one, and the rest."""
    depth, quote = 0, ""
    for place, mark in enumerate(formula):
        if quote:
            quote = "" if mark == quote else quote
        elif mark in "`'\"":
            quote = mark
        elif mark == "|" and not depth:
            return formula[:place], mark, formula[place + 1 :]
        depth += (mark in "([{") - (mark in ")]}") if not quote else 0
    return formula, "", ""


def as_formula_says(options: Options, source: Source) -> Options:
    """Return options with the intercept that a formula asks for, if the source has one."""
    design = source.encoding.design
    if design is None or design.intercept == options.fit_intercept:
        return options
    if design.intercept:
        raise InputError(
            "The formula says whether there is an intercept: write '- 1' in it, not fit_intercept=False "
            "(--no-intercept)."
        )
    return replace(options, fit_intercept=False)


def _encoding(levels: Mapping[str, Sequence[str]], fit_intercept: bool) -> Encoding:
    if not isinstance(levels, Mapping):
        raise InputError('levels is a mapping from columns to their levels, such as {"colour": ["blue", "red"]}.')
    for column, names in levels.items():
        texts = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
        if not texts or len(names) < 1 or len(set(names)) != len(names):
            raise InputError(f"The levels of column {column!r} must be a list of distinct texts.")
    return Encoding(tuple((column, tuple(names)) for column, names in levels.items()), drop_first=fit_intercept)
