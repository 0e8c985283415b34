"""Noisy and exact files put together: whether they fit together, and the sums of products of all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.sites.agreement import Named, check_agreement
from partsketch.sketches.base import get_sketch
from partsketch.summaries.noisy_summary import ColumnBounds, NoisySummary
from partsketch.summaries.summary import Summary

FloatArray = NDArray[np.float64]
NamedNoisy = tuple[str, NoisySummary]


@dataclass(frozen=True, eq=False)
class Pool:
    """Sums of products of all files, measured as the noisy ones are.

    Attributes
    ----------
    products
        Of all rows, with the noise of all promises.
    deviation
        Standard deviation of that noise on the diagonal.
    """

    noisy: tuple[NamedNoisy, ...]
    exact: tuple[Named, ...]
    products: FloatArray
    deviation: float

    @property
    def first(self) -> NoisySummary:
        """The first noisy file, with whose measures all are measured."""
        return self.noisy[0][1]

    @property
    def centre(self) -> FloatArray:
        """What is taken off each column but the ones."""
        return np.array([known.centre for known in self.first.bounds])

    @property
    def unit(self) -> FloatArray:
        """What each column but the ones is divided by then."""
        return np.array([known.spread / known.factor for known in self.first.bounds])


def pool(noisy: Sequence[NamedNoisy], exact: Sequence[Named]) -> Pool:
    """Check that files go together, and add them up."""
    _check_noisy(noisy)
    _check_exact(noisy[0], exact)
    if exact:
        check_agreement(exact)
    _check_releases(noisy, exact)
    products = np.sum([summary.products for _, summary in noisy], axis=0)
    deviation = math.sqrt(math.fsum(summary.promise.noise**2 for _, summary in noisy))
    pooled = Pool(tuple(noisy), tuple(exact), products, deviation)
    for name, summary in exact:
        products += _measured(name, summary, pooled)
    return pooled


def _check_noisy(noisy: Sequence[NamedNoisy]) -> None:
    name, first = noisy[0]
    for other_name, other in noisy[1:]:
        pair = f"{name} and {other_name}"
        if other.columns != first.columns or other.about.targets != first.about.targets:
            raise InputError(
                f"{pair} have different columns, orders or targets: give all sites the same features and targets."
            )
        if other.about.encoding != first.about.encoding:
            raise InputError(f"{pair} encode columns differently: give all sites the same levels (--levels).")
        for column, mine, theirs in zip(first.columns[1:], first.bounds, other.bounds, strict=True):
            if mine != theirs:
                raise InputError(
                    f"{pair} have different bounds of column {column!r} ({_shown(mine)}; {_shown(theirs)}): give all "
                    "sites the same bounds (--bounds)."
                )


def _shown(bounds: ColumnBounds) -> str:
    return f"{bounds.lower:g} to {bounds.upper:g}, centre {bounds.centre:g}, spread {bounds.spread:g}"


def _check_exact(noisy: NamedNoisy, exact: Sequence[Named]) -> None:
    name, first = noisy
    for other_name, other in exact:
        pair = f"{name} and {other_name}"
        if get_sketch(other.kind).is_random:
            raise InputError(
                f"{pair} hold noisy sums and a {other.kind} sketch: files with a promise go together with one another "
                "and with exact files (--sketch triangular)."
            )
        if set(other.columns) != set(first.columns):
            raise InputError(f"{pair} have different columns: give all sites the same features and targets.")
        if other.about.encoding != first.about.encoding:
            raise InputError(f"{pair} encode columns differently: give all sites the same levels (--levels).")
        if other.about.weighted:
            raise InputError(f"{other_name} has sample weights, and {name} has none: make it again without weights.")


def _check_releases(noisy: Sequence[NamedNoisy], exact: Sequence[Named]) -> None:
    """Refuse rows that are in twice."""
    seen: dict[tuple[str, str], str] = {}
    owned = [(name, summary.site, summary.label) for name, summary in noisy]
    parts = {(name, part.site, part.label) for name, summary in exact for part in summary.parts}
    for number, (name, site, label) in enumerate([*owned, *sorted(parts)]):
        other = seen.get((site, label))
        if other is not None:
            told = f", label {label!r}," if label else ""
            raise InputError(
                f"Site {site!r}{told} is in twice ({other}, {name}): leave one file out, or, if they hold different "
                "rows, make them with different labels (--label)."
            )
        # Exact files may hold different partitions of the same rows; they were compared with one another.
        if number < len(owned):
            seen[site, label] = name
    for number, (name, summary) in enumerate(noisy):
        for before, earlier in noisy[:number]:
            if summary.release == earlier.release or np.array_equal(summary.products, earlier.products):
                raise InputError(f"{before} and {name} hold the same numbers: leave one out.")


def _measured(name: str, summary: Summary, pooled: Pool) -> FloatArray:
    """Return the sums of products of an exact file, measured as the noisy ones are."""
    places = summary.places(pooled.first.columns)
    shift = np.zeros(len(summary.columns))
    shift[places[1:]] = pooled.centre
    rows = summary.rows.moved(-shift).high[:, places]
    rows[:, 1:] /= pooled.unit
    with np.errstate(over="ignore", invalid="ignore"):
        products = rows.T @ rows
    if not np.isfinite(products).all():
        raise InputError(f"{name} has numbers whose squares are beyond those of doubles, in units of the bounds.")
    return np.asarray((products + products.T) / 2)
