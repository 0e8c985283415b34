"""Units of columns: powers of two close to their spreads, the same bits however many threads look for them."""

from __future__ import annotations

import numpy as np
import pytest

from partsketch.common.linalg.helpers import sharing_with
from partsketch.model.spread import spread_units


@pytest.mark.parametrize("width", [20, 600])
def test_units_are_powers_of_two_close_to_the_spreads_for_any_number_of_threads(width: int) -> None:
    rng, rows = np.random.default_rng(2), 2 * width
    spreads = np.geomspace(1e-3, 1e5, width)
    columns = np.column_stack([np.ones(rows), 1e3 * spreads + spreads * rng.standard_normal((rows, width))])
    parts = [columns[:width], columns[width:]]
    units = spread_units(lambda: iter(parts), rows, 1)
    with sharing_with(2):
        assert np.array_equal(spread_units(lambda: iter(parts), rows, 1), units)
    assert units[0] == 1.0
    assert (np.frexp(units)[0] == 0.5).all()
    # Borders lie at 2^0.7 and half of that; rounding of a column a thousand spreads from zero is far below the rest.
    found = columns[:, 1:].std(axis=0) / units[1:]
    assert found.min() > 2**-0.3001
    assert found.max() < 2**0.7001


def test_strips_of_many_columns_add_up_to_what_all_rows_do() -> None:
    """Strips are shared some at a time: more of them than that, and a number that is not a multiple."""
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((5000, 520)) * np.geomspace(1.0, 1e6, 520)
    units = spread_units(lambda: iter([rows]), len(rows), 0)
    exact = np.log2(np.sqrt(np.square(rows).mean(axis=0)))
    assert np.array_equal(np.log2(units), np.floor(exact + 0.3))
