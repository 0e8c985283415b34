"""What a file would show of single rows: checked before it is written, refused unless it is allowed by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from partsketch.common.errors import InputError
from partsketch.sources.encoding import Encoding

#: Rows that every coefficient needs, rows that an exact file needs, and the leverage that a row may have.
ROWS_PER_PARAMETER, LEAST_EXACT_ROWS, LARGEST_LEVERAGE = 10, 100, 0.2
#: Rows that a sketch may be expected to hold as they are.
MOST_PLAIN_ROWS = 0.01
#: Rows that a level needs unless another number is asked for.
LEAST_LEVEL_ROWS = 5

#: What can be allowed, and what it is.
CONCERNS = {
    "few-rows": f"fewer than {ROWS_PER_PARAMETER} rows per parameter",
    "few-exact-rows": f"an exact file of fewer than {LEAST_EXACT_ROWS} rows",
    "rare-levels": "a level, or a column that is rarely not zero, of few rows",
    "leverage": f"a row of leverage above {LARGEST_LEVERAGE}",
    "large-sketch": "a sketch with as many rows as the data",
    "plain-rows": "a sketch that holds rows as they are",
}
#: Of these rows that are read once more are needed; the others follow from counts.
OF_SINGLE_ROWS = {"rare-levels", "leverage"}


@dataclass(frozen=True)
class Concern:
    """Why a file should not be written: the name by which it is allowed, and a sentence."""

    name: str
    sentence: str


@dataclass(frozen=True)
class Facts:
    """What is known of the rows behind one file.

    Attributes
    ----------
    what
        The file in a phrase, such as "The file of partition 'north'".
    rows, columns
        Rows behind it, and columns, the ones and targets included.
    parameters
        Columns that a regression would estimate.
    sketch_rows
        Rows of a random sketch; None for exact files.
    plain_rows
        How many rows such a sketch is expected to hold as they are.
    leverage, row
        Largest leverage of a row, and its number; None where rows were not looked at again.
    nonzero
        For every column but the ones its name, and in how many rows it is not zero; empty where that is not known.
    """

    what: str
    rows: int
    columns: int
    parameters: int
    sketch_rows: int | None
    plain_rows: float = 0.0
    leverage: float | None = None
    row: int | None = None
    nonzero: tuple[tuple[str, int], ...] = ()


def check_names(allow: Iterable[str]) -> tuple[str, ...]:
    """Return what is allowed, refusing names that nothing has."""
    names = tuple(allow) if not isinstance(allow, str) else (allow,)
    for name in names:
        if name not in CONCERNS:
            raise InputError(f"allow has {name!r}: choose among {', '.join(CONCERNS)} (--allow).")
    return names


def concerns_of(facts: Facts, encoding: Encoding, least_level_rows: int) -> Iterator[Concern]:
    """Yield every reason not to write a file."""
    rows = facts.rows
    if facts.sketch_rows is not None and facts.sketch_rows >= rows:
        yield Concern(
            "large-sketch",
            f"{facts.what} has {facts.sketch_rows:,} sketch rows and stands for {rows:,} rows: nothing is compressed; "
            "use a smaller sketch_size (--sketch-size)",
        )
    if facts.plain_rows > MOST_PLAIN_ROWS:
        several = facts.plain_rows >= 1.5
        held = f"about {facts.plain_rows:,.0f} of {rows:,} rows as they are" if several else "a row as it is"
        yield Concern(
            "plain-rows",
            f"{facts.what} {'holds' if several else 'may hold'} {held}, but for a factor: whoever sees the file sees "
            f"{'them' if several else 'it'}; use a Gaussian sketch (--sketch gaussian), or a smaller one",
        )
    if rows < ROWS_PER_PARAMETER * facts.parameters:
        yield Concern(
            "few-rows",
            f"{facts.what} stands for {rows:,} rows and tells of {facts.parameters} parameters, fewer than "
            f"{ROWS_PER_PARAMETER} rows for each: it would tell of single rows",
        )
    if facts.sketch_rows is None and rows < LEAST_EXACT_ROWS:
        yield Concern(
            "few-exact-rows",
            f"{facts.what} holds exact sums of products of {rows:,} rows, fewer than {LEAST_EXACT_ROWS}: rows can be "
            "found from them; put more rows together",
        )
    for name, count in _rare(facts, encoding, least_level_rows):
        yield Concern(
            "rare-levels",
            f"{facts.what} tells of {name}, which {count} row{'' if count == 1 else 's'} of {rows:,} "
            f"{'has' if count == 1 else 'have'}, fewer than {least_level_rows}: put rare levels together, or leave the "
            "column out",
        )
        break
    if facts.leverage is not None and facts.leverage > LARGEST_LEVERAGE:
        yield Concern(
            "leverage",
            f"Row {facts.row} alone makes {facts.leverage:.0%} of what {facts.what[0].lower()}{facts.what[1:]} tells "
            f"in some direction (its leverage), more than {LARGEST_LEVERAGE:.0%}: whoever sees the file sees this row; "
            "leave it out, or bound its values",
        )


def _rare(facts: Facts, encoding: Encoding, least: int) -> Iterator[tuple[str, int]]:
    """Yield columns that few rows have, and levels without a column that few rows have."""
    counts = dict(facts.nonzero)
    for name, count in counts.items():
        if 0 < count < least:
            yield f"column {name!r}", count
    for column in encoding.columns if counts else ():
        names = encoding.indicator_names(column)
        if encoding.drop_first and all(name in counts for name in names):
            left = facts.rows - sum(counts[name] for name in names)
            if 0 < left < least:
                yield f"level {encoding.levels_of(column)[0]!r} of column {column!r}", left


def refuse(concerns: Iterable[Concern], allow: Sequence[str], stays: bool = False) -> str:
    """Refuse what is not allowed: the first in a sentence, what else there is by name.

    Of a file that stays where the rows are the same is returned as a warning; empty where there is nothing to say.
    """
    first: dict[str, Concern] = {}
    for concern in concerns:
        if concern.name not in allow:
            first.setdefault(concern.name, concern)
    if not first:
        return ""
    told, *others = first.values()
    also = f" Besides: {', '.join(other.name for other in others)}." if others else ""
    if stays:
        return (
            f"{told.sentence}. The file names no site, so it is written; with --site NAME, for a file that leaves this "
            f"place, it is refused (--allow {told.name} allows it).{also}"
        )
    raise InputError(
        f"{told.sentence}, or allow it by name (--allow {told.name}; in Python allow=[{told.name!r}]).{also}"
    )
