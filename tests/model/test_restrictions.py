"""Restrictions in words become rows of numbers, or one clear sentence."""

from __future__ import annotations

import numpy as np
import pytest

from partsketch import InputError
from partsketch.model.restrictions import read_restrictions

COLUMNS = ("(intercept)", "a", "b", "unit price", "colour=red", "x-1")


@pytest.mark.parametrize(
    ("text", "rows", "values"),
    [
        ("a = 0", [[0, 1, 0, 0, 0, 0]], [0]),
        ("a=0", [[0, 1, 0, 0, 0, 0]], [0]),
        ("a", [[0, 1, 0, 0, 0, 0]], [0]),
        ("a = 2, b = -1.5e1", [[0, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0]], [2, -15]),
        ("2*a + b*3/2 - 1 = a", [[0, 1, 1.5, 0, 0, 0]], [1]),
        ("`unit price` = 'x-1' - (intercept)", [[1, 0, 0, 1, 0, -1]], [0]),
        ('"unit price" − -2 = 0', [[0, 0, 0, 1, 0, 0]], [-2]),
        ("colour=red = 3", [[0, 0, 0, 0, 1, 0]], [3]),
        ("colour=red=3", [[0, 0, 0, 0, 1, 0]], [3]),
        ("3 = a", [[0, -1, 0, 0, 0, 0]], [-3]),
    ],
)
def test_equations_are_read(text: str, rows: list[list[float]], values: list[float]) -> None:
    matrix, constants = read_restrictions(text, COLUMNS)
    np.testing.assert_array_equal(matrix, rows)
    np.testing.assert_array_equal(constants, values)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("c = 0", "no coefficient 'c': it has '\\(intercept\\)', 'a'"),
        ("a = b = 0", "'a = b = 0' is not an equation"),
        ("a = ", "is not an equation"),
        ("", "is not an equation"),
        ("a = 0,", "is not an equation"),
        ("a * b = 0", "is not linear"),
        ("1 / a = 0", "is not linear"),
        ("a b = 0", "two terms without a sign"),
        ("2 a = 0", "two terms without a sign"),
        ("a + = 0", "ends with a sign"),
        ("a * * 2 = 0", "where a name or a number should be"),
        ("a / 0 = 0", "divides by zero"),
        ("1e999 * a = 0", "beyond what a double holds"),
        ("a - a = 0", "has no coefficient in it"),
        ("1 = 1", "has no coefficient in it"),
        ("a > 0", "from '> 0' on"),
        ("a^2 = 0", "put names with other signs in backticks"),
        ("`a = 0", "from '`a = 0' on"),
        ("x-1 = 0", "no coefficient 'x'"),
    ],
)
def test_what_is_no_equation_is_refused(text: str, fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        read_restrictions(text, COLUMNS)


def test_restrictions_are_a_text() -> None:
    with pytest.raises(InputError, match="not list"):
        read_restrictions(["a = 0"], COLUMNS)  # type: ignore[arg-type]


def test_terms_of_formulas_need_no_quotes() -> None:
    columns = ["(intercept)", "log(a)", "C(z, levels=['u', 'v'])[T.v]", "b", "b:log(a)", "log(a):b"]
    text = "log(a) = 1, 2*log(a):b - b = C(z, levels=['u', 'v'])[T.v], b:log(a) + (intercept) = 0"
    rows, values = read_restrictions(text, columns)
    np.testing.assert_array_equal(rows, [[0, 1, 0, 0, 0, 0], [0, 0, -1, -1, 0, 2], [1, 0, 0, 0, 1, 0]])
    np.testing.assert_array_equal(values, [1, 0, 0])
