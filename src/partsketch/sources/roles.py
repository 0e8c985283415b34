"""Which columns are features, targets, weights and partition, and whether their types allow it."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from partsketch.common.errors import InputError
from partsketch.sources.storage import DATES, Column, Rows, in_words, parts_of_dates

#: What to do about a CSV file whose first line is a row.
_HEADLESS = "if the CSV file has no line of names, say --no-header (CsvFiles(…, header=False))"


@dataclass(frozen=True)
class Selection:
    """Names of the columns of the data that are used, by role; notes say which were left out and why."""

    features: tuple[str, ...]
    targets: tuple[str, ...]
    weights: str | None
    partition: str | None
    notes: tuple[str, ...] = ()
    clusters: str | None = None

    @property
    def used(self) -> tuple[str, ...]:
        """Every column that has to be read, once."""
        others = [] if self.weights is None else [self.weights]
        return tuple(dict.fromkeys([*self.features, *self.targets, *others, *self.labels]))

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns whose values rows are labelled with: that of the partitions, then one of clusters beside it."""
        return tuple(name for name in (self.partition, self.clusters) if name is not None)

    @property
    def only_labels(self) -> tuple[str, ...]:
        """Those of them that do not also serve as numbers."""
        return tuple(name for name in self.labels if name not in (*self.features, *self.targets, self.weights))


def select(
    names: Sequence[str],
    target: str | Sequence[str] | None,
    features: Sequence[str] | None,
    weights: str | None,
    partition_column: str | None,
    cluster_column: str | None = None,
) -> Selection:
    """Give every used column its role, or say which name is wrong."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(
            f"The data has more than one column named {listed(repeated)}: give every column its own name."
            + _no_names(list(dict.fromkeys(names)))
        )
    targets = () if target is None else (target,) if isinstance(target, str) else tuple(target)
    if isinstance(features, str):
        features = (features,)
    check_names(names, targets, "target")
    # That of the partitions may be asked for as one of clusters, or of intercepts: it is called by its name alone.
    for role, name in (("weights", weights), ("", partition_column), ("", cluster_column)):
        if name is not None:
            check_names(names, (name,), role)
    if weights in targets:
        raise InputError(f"Column '{weights}' cannot be a target and the weights at once.")
    if features is None:
        reserved = {*targets, weights, partition_column, cluster_column}
        features = tuple(name for name in names if name not in reserved)
        if not features:
            raise InputError("No column is left for the features: the data has only the target, weights and partition.")
    check_names(names, features, "feature")
    if not features:
        raise InputError("The list of features is empty: name at least one column.")
    for name in features:
        if name in targets:
            raise InputError(f"Column '{name}' is both the target and a feature: remove it from the features.")
        if name == weights:
            raise InputError(f"Column '{name}' is both the weights and a feature: remove it from the features.")
    return Selection(tuple(features), targets, weights, partition_column, clusters=cluster_column)


def check_names(names: Sequence[str], wanted: Sequence[str], role: str = "") -> None:
    """Refuse names that the data do not have, or that are given twice."""
    if not names:
        raise InputError("The data has no columns.")
    known = set(names)
    for name in wanted:
        if name not in known:
            close = difflib.get_close_matches(str(name), names, n=3)
            choice = f"did you mean {listed(close, 'or')}?" if close else f"the columns are {listed(names[:20])}."
            more = f" (and {len(names) - 20} more)" if not close and len(names) > 20 else ""
            what = f"{role} column" if role else "column"
            raise InputError(
                f"There is no {what} '{name}' in the data: {choice.rstrip('.')}{more}{_end(choice)}{_no_names(names)}"
            )
    for name, count in Counter(wanted).items():
        if count > 1:
            raise InputError(f"Column '{name}' is listed more than once as {role}: list it once.")


def _no_names(names: Sequence[str]) -> str:
    """Point to files without a line of names, or with another separator, if some names look like values."""
    joined = next(((name, mark) for name in names for mark in ";\t|" if mark in name), None)
    if joined is not None:
        name, mark = joined
        spelled = "tab" if mark == "\t" else f"'{mark}'"
        return (
            f" A column is called {name!r}: if {mark!r} separates the values of a CSV file, say --separator {spelled} "
            f"(CsvFiles(…, separator={mark!r}))."
        )
    if values := all_numbers(names):
        return f" {values}"
    value = next((name for name in names if ("." in name or "," in name) and _number(name) is not None), None)
    return "" if value is None else f" A column is called '{value}': {_HEADLESS}."


def all_numbers(names: Sequence[str]) -> str:
    """Say that all names are numbers, and so probably the first row of a file; empty if they are not, or just count."""
    numbers = [_number(name) for name in names]
    if None in numbers or all(second == first + 1 for first, second in pairwise(numbers)):  # type: ignore[operator]
        return ""
    return f"All names of columns are numbers: {_HEADLESS}."


def _number(name: str) -> float | None:
    try:
        # Decimal commas too: with another separator the first line of values may have them.
        return float(name.replace(",", ".") if name.count(",") == 1 else name)
    except ValueError:
        return None


def _end(sentence: str) -> str:
    return "" if sentence.endswith("?") else "."


def by_default(columns: Sequence[Column], selection: Selection) -> Selection:
    """Return the roles without those features that nobody named and that are none unless they are named.

    These are dates, which no encoding makes numbers of, folders that were given by name, and an index of pandas.
    """
    left_out = [column for column in columns if column.name in selection.features and not column.by_default]
    if not left_out:
        return selection
    names = {column.name for column in left_out}
    features = tuple(name for name in selection.features if name not in names)
    if not features:
        what = f"{listed(sorted(names))} {'is' if len(names) == 1 else 'are'} none unless named"
        raise InputError(
            f"No column is left for the features: {what}; use a formula (--formula) or features (--features)."
        )
    return replace(selection, features=features, notes=tuple(map(left_out_note, left_out)))


def left_out_note(column: Column) -> str:
    """Say that a column is no feature since nobody named it, and how to have it."""
    if column.type_name not in DATES:
        return (
            f"Column '{column.name}' {column.aside} and was left out: name it among the features (--features) to "
            "have it."
        )
    remedy = f"take what matters of it with a formula, such as {parts_of_dates(column)}"
    return (
        f"Column '{column.name}' holds {in_words(column)} and was left out: "
        f"{remedy if parts_of_dates(column) else 'make numbers of it to have it'}."
    )


def columns_to_encode(rows: Rows, selection: Selection, encode: bool, known: Collection[str]) -> tuple[str, ...]:
    """Return the features that are encoded, refusing every other used column that is not numeric.

    Parameters
    ----------
    known
        Columns that an earlier encoding covers: they are encoded whatever their type.
    """
    by_name = {column.name: column for column in rows.columns}
    encoded = tuple(name for name in selection.features if name in known or (encode and by_name[name].kind == "text"))
    numeric = [*selection.features, *selection.targets, *([selection.weights] if selection.weights else [])]
    refused = [by_name[name] for name in numeric if name not in encoded and by_name[name].kind != "number"]
    if refused:
        raise InputError(_refusal(rows, refused, selection, encode))
    refuse_other_decimals(rows, [name for name in encoded if name not in known])
    return encoded


def refuse_other_decimals(rows: Rows, names: Sequence[str]) -> None:
    """Refuse to make categories of numbers with another decimal mark: every number would be a level."""
    for name in names:
        clue = rows.other_decimal(name)
        if clue:
            raise InputError(f"Column '{name}' is text ({clue}): if it has categories, write C({name}) in a formula.")


def _refusal(rows: Rows, refused: Sequence[Column], selection: Selection, encode: bool) -> str:
    what = listed([f"{column.name}' ({column.type_name})" for column in refused], opening="'", closing="")
    single = len(refused) == 1
    sentence = f"Column{'' if single else 's'} {what} {'is' if single else 'are'} not numeric"
    clues = [clue for clue in (rows.explain_text(column.name) for column in refused if column.kind == "text") if clue]
    sentence += f" ({'; '.join(clues)})" if clues else ""
    encodable = [column for column in refused if column.kind == "text" and column.name in selection.features]
    advice = ["correct the text" if clues else "", "name numeric columns (--features, for summaries --columns)"]
    if encodable and not encode:
        advice.append("one-hot encode text with encode=True (--encode)")
    return f"{sentence}: {' or '.join(part for part in advice if part)}."


def listed(names: Sequence[str], word: str = "and", opening: str = "'", closing: str = "'") -> str:
    """Join names as in a sentence: 'a', 'b' and 'c'."""
    quoted = [f"{opening}{name}{closing}" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {word} {quoted[-1]}"
