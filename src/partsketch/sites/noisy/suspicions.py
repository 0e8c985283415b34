"""Bounds that look computed from the rows: said to the site, and to nobody else."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal

from partsketch.sites.noisy.bounds import Measures
from partsketch.sites.noisy.products import Products

#: Last digit of a number, in deviations of its column, from which on it agrees with the rows by chance in less than
#: one case in a hundred.
_FINE = 0.01
#: By how many deviations the same mean may differ, however it was computed.
_ROUNDING = 1e-7


def suspicious(names: tuple[str, ...], measures: Measures, products: Products) -> Iterator[str]:
    """Say which bounds, centres and spreads are those of the rows, unless that is by chance or by definition."""
    found = zip(
        names, measures.bounds, products.smallest, products.largest, products.mean, products.deviation, strict=True
    )
    # Deviations are divided by the number of rows, or by one less.
    less_one = math.sqrt(products.row_count / max(products.row_count - 1, 1))
    for name, bounds, low, high, mean, deviation in found:
        if (bounds.lower, bounds.upper) == (0.0, 1.0):
            continue
        # The same end has the same digits; means and deviations may have been summed in another order.
        rounding = _ROUNDING * deviation if math.isfinite(deviation) else 0.0
        pairs = (
            ("smallest value", low, bounds.lower, 0.0),
            ("largest value", high, bounds.upper, 0.0),
            ("mean", mean, bounds.centre, rounding),
            ("standard deviation", deviation, bounds.spread, rounding),
            ("standard deviation", deviation * less_one, bounds.spread, rounding),
        )
        equal = {
            word: None
            for word, of_rows, given, room in pairs
            if (of_rows == given and not room) or _agrees(given, of_rows, deviation, room)
        }
        if equal:
            yield (
                f"The bounds of column {name!r} are the {' and '.join(equal)} of these rows: bounds that were "
                "computed from the rows tell of them, and break the promise; take them from what is publicly known."
            )


def _agrees(given: float, of_rows: float, deviation: float, room: float) -> bool:
    """Whether a number is that of the rows to all digits that it is written with, and these are fine enough."""
    unit = 10.0 ** min(int(Decimal(repr(given)).normalize().as_tuple().exponent), 0)
    return unit <= _FINE * deviation and abs(given - of_rows) <= max(0.51 * unit, room)
