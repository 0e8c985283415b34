"""Whether sketch files may be combined: the same columns in the same order, kind and size, and no rows twice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from partsketch.common.errors import InputError
from partsketch.sites.twins import find_twins
from partsketch.sketches.base import get_sketch
from partsketch.sources.encoding import Encoding
from partsketch.sources.roles import listed
from partsketch.summaries.provenance import find_overlap
from partsketch.summaries.summary import Summary

Named = tuple[str, Summary]

#: Sizes of columns and weights whose squares neither overflow nor vanish.
_LARGEST, _SMALLEST = 1e153, 1e-153
#: How many times larger a column may be in one file than in another.
_LARGEST_RATIO = 1e15


def check_agreement(named: Sequence[Named]) -> None:
    """Refuse summaries that cannot be combined, in one sentence that names the files."""
    if not named:
        raise InputError("There is nothing to combine: name at least one sketch file.")
    (name, first), others = named[0], named[1:]
    for other_name, other in others:
        pair = f"{name} and {other_name}"
        if other.kind != first.kind:
            raise InputError(f"{pair} hold different sketches ({first.kind}, {other.kind}): make all of one kind.")
        if other.columns != first.columns:
            raise InputError(f"{pair} {_column_difference(name, first, other_name, other)}")
        if other.about.encoding != first.about.encoding:
            if first.about.encoding.design is not None or other.about.encoding.design is not None:
                raise InputError(f"{pair} {_design_difference(first.about.encoding, other.about.encoding)}")
            raise InputError(f"{pair} encode text columns differently: give all sites the same levels (--levels).")
        rows = first.matrix.shape[0], other.matrix.shape[0]
        if get_sketch(first.kind).is_random and rows[0] != rows[1]:
            raise InputError(
                f"{pair} have different numbers of sketch rows ({rows[0]}, {rows[1]}): make all with the same sketch "
                "size (--sketch-size)."
            )
        if other.about.weighted != first.about.weighted:
            raise InputError(f"Of {pair} only one has sample weights: give all sites weights, or none.")
    _check_magnitudes(named)
    _check_rows(named)
    _check_numbers(named)


def stay_at_home(named: Sequence[Named], others: bool = False) -> list[str]:
    """Say which file names no site among files of sites: it was made to stay with its rows.

    With a site a file is refused where it shows single rows; without one that was a warning, which no file holds.
    """
    unnamed = [name for name, summary in named if any(not part.site for part in summary.parts)]
    sites = others or any(part.site for _, summary in named for part in summary.parts)
    if not unnamed or not sites:
        return []
    more = f" (and {len(unnamed) - 1} more)" if len(unnamed) > 1 else ""
    return [
        f"{unnamed[0]}{more} names no site, and is read beside files of sites: it was made to stay with its rows, and "
        "was not refused if it shows single ones; have it made again with a site (--site NAME), which checks it."
    ]


def _check_magnitudes(named: Sequence[Named]) -> None:
    for name, summary in named:
        if summary.row_count < 1:
            raise InputError(f"{name} stands for no rows: leave it out.")
        if not _SMALLEST <= summary.weight_sum <= _LARGEST:
            raise InputError(
                f"{name} has a sum of weights of {summary.weight_sum:g}: it must be positive and not extreme."
            )
    sizes = np.stack([np.abs(summary.matrix).max(axis=0) for _, summary in named])
    # Where a column is zero, or at all sites, its size is no matter.
    low = np.where(sizes > 0, sizes, np.inf).argmin(axis=0)
    high = sizes.argmax(axis=0)
    places = np.arange(sizes.shape[1])
    smallest, largest = sizes[low, places], sizes[high, places]
    extreme = (smallest < _SMALLEST) | (largest > _LARGEST) | (largest > _LARGEST_RATIO * smallest)
    for place in np.flatnonzero(extreme & (largest > 0)):
        column, least, most = named[0][1].columns[place], smallest[place], largest[place]
        for number, size in ((low[place], least), (high[place], most)):
            if not _SMALLEST <= size <= _LARGEST:
                change = "divide" if size > _LARGEST else "multiply"
                raise InputError(
                    f"Column {column!r} of {named[number][0]} has numbers of size {size:.3g}, whose powers get lost: "
                    f"{change} it by a constant at all sites."
                )
        raise InputError(
            f"Column {column!r} has numbers of size {most:.3g} in {named[high[place]][0]}, but {least:.3g} in "
            f"{named[low[place]][0]}: give it the same unit at all sites."
        )


def _column_difference(name: str, first: Summary, other_name: str, other: Summary) -> str:
    levels, other_levels = dict(first.about.encoding.levels), dict(other.about.encoding.levels)
    for column in levels:
        if column in other_levels and levels[column] != other_levels[column]:
            only = [f"{level!r} in {name} only" for level in levels[column] if level not in other_levels[column]]
            only += [f"{level!r} in {other_name} only" for level in other_levels[column] if level not in levels[column]]
            detail = "; ".join(only[:4]) + (f"; {len(only) - 4} more" if len(only) > 4 else "")
            return (
                f"found different levels of column '{column}' ({detail or 'their order differs'}): give all sites the "
                "same levels (--levels)."
            )
    mine = [column for column in first.columns if column not in other.columns]
    theirs = [column for column in other.columns if column not in first.columns]
    if not mine and not theirs:
        return "have the same columns in different orders: give all sites the same features in the same order."
    parts = [f"{listed(only[:5])} in {where} only" for only, where in ((mine, name), (theirs, other_name)) if only]
    return f"have different columns ({'; '.join(parts)}): give all sites the same features and targets."


def _design_difference(first: Encoding, other: Encoding) -> str:
    """Say what differs between the designs of two formulas."""
    mine, theirs = first.design, other.design
    if mine is None or theirs is None or mine.formula != theirs.formula:
        return "were made by different formulas: give all sites the same one (--formula)."
    found, others = mine.found, theirs.found
    differing = [name for name in found if found[name] != others.get(name)]
    what = f"what was found for {listed(differing[:3])}" if differing else "the types of their columns"
    return (
        f"differ in {what}: every site has found its own; give all sites the same levels and numbers (--levels), such "
        "as those of one site."
    )


def _check_rows(named: Sequence[Named]) -> None:
    overlap = find_overlap([(number, part) for number, (_, summary) in enumerate(named) for part in summary.parts])
    if overlap is None:
        return
    part = overlap[0][1]
    first, second = (named[number][0] for number in sorted((overlap[0][0], overlap[1][0])))
    label = f", label {part.label!r}," if part.label else ""
    raise InputError(
        f"Site {part.site!r}{label} is in twice ({first}, {second}): leave one file out, or, if they hold different "
        "rows, make them with different labels (--label)."
    )


def _check_numbers(named: Sequence[Named]) -> None:
    """Refuse sketches that are not independent, and copies of one sketch under several names."""
    random = get_sketch(named[0][1].kind).is_random
    streams: dict[tuple[int, int], int] = {}
    twins = find_twins([summary for _, summary in named])
    if twins is not None:
        first, second = (named[number][0] for number in twins)
        if first == second:
            raise InputError(f"{first} holds the same numbers twice under different names: make it again.")
        raise InputError(f"{first} and {second} hold the same numbers under different names: leave one out.")
    for number, (name, summary) in enumerate(named):
        for part in summary.parts if random else ():
            if part.seed is None:
                continue
            other = streams.setdefault((part.seed, part.stream), number)
            if other != number:
                raise InputError(
                    f"{named[other][0]} and {name} use the same random numbers and are not independent: make one again "
                    "with another seed or site name."
                )
