"""Sums of products without rounding, against rational numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from partsketch.common.linalg.double_double import DoubleDouble
from partsketch.sketches.kernels.gram_slices import add_exact_gram


@pytest.mark.parametrize("rows", [1, 7, 60])
@pytest.mark.parametrize("kind", ["plain", "units", "counts", "uneven"])
def test_sums_are_exact_to_thirty_digits(kind: str, rows: int) -> None:
    """Columns of full precision, of other units, of few digits, and with entries far below the largest."""
    draw = np.random.default_rng(rows)
    columns = draw.normal(size=(5, rows))
    if kind == "units":
        columns *= 10.0 ** np.array([[-140], [-30], [0], [3], [140]])
    elif kind == "counts":
        columns = np.round(8 * columns)
        columns[2] = 0.0
    elif kind == "uneven":
        columns[:, ::3] *= 2.0**12
    # What is there already has the size of what is added, and low parts of its own.
    sizes = np.outer(*2 * [np.abs(columns).max(axis=1)])
    high = sizes * draw.normal(size=(5, 5))
    before = DoubleDouble.of(high, high * 2.0**-55 * draw.random((5, 5)))
    found = add_exact_gram(DoubleDouble.of(*before), columns)
    # Three slices hold a column of normal numbers; two doubles have 106 binary digits, and sums lose a few. Of columns
    # whose usual entries are 2⁻¹² of the largest 2⁻⁵⁷ of a usual entry is left out of every product.
    allowed = rows * Fraction(2) ** -69 if kind == "uneven" else Fraction(2) ** -100
    rational = [[Fraction(value) for value in column] for column in columns.tolist()]
    for i in range(5):
        for j in range(5):
            wanted = sum((a * b for a, b in zip(rational[i], rational[j], strict=True)), Fraction(0))
            wanted += Fraction(before.high[i, j]) + Fraction(before.low[i, j])
            error = Fraction(found.high[i, j]) + Fraction(found.low[i, j]) - wanted
            assert abs(error) <= allowed * Fraction(sizes[i, j]), (i, j, float(error))
