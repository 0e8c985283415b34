"""How many arguments functions of formulas take: NumPy's others would write over columns, or leave rows out."""

from __future__ import annotations

import ast
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError

#: The largest whole number that is a double.
_LARGEST = int(np.finfo(np.float64).max)
#: Those that are no elementwise functions of NumPy: how many arguments, and which names others may have.
_OTHERS: dict[str, tuple[tuple[int, ...], tuple[str, ...]]] = {
    "where": ((3,), ()),
    "round": ((1, 2), ("decimals",)),
    "clip": ((1, 2, 3), ("a_min", "a_max", "min", "max")),
}


def rounded(values: NDArray[np.float64], decimals: float = 0) -> NDArray[np.float64]:
    """Round to so many decimals; all numbers of a formula are doubles, and NumPy wants a whole one."""
    return np.round(values, int(decimals))


def check_arguments(call: ast.Call, name: str, functions: Collection[str], told: str) -> None:
    """Refuse a call of an elementwise function with other arguments than it computes with."""
    counts, names = _OTHERS.get(name, ((_taken(name) if name in functions else 1,), ()))
    if len(call.args) in counts and all(keyword.arg in names for keyword in call.keywords):
        return
    number = " or ".join(map(str, counts))
    base = "; for other bases there are log2(…), log10(…) and I(log(x) / log(b))" if name == "log" else ""
    raise InputError(
        f"Cannot evaluate {told}: {name} takes {number} argument{'s' * (counts[-1] > 1)} and no others{base}."
    )


def check_constant(value: object) -> None:
    """Refuse constants that are neither real numbers of a double's size, truth nor text."""
    if not isinstance(value, int | float | str) or (isinstance(value, int) and abs(value) > _LARGEST):
        shown = repr(value) if not isinstance(value, int) else "a whole number beyond 1e308"
        raise InputError(f"Cannot use {shown} in the formula: write real numbers, or texts in quotes.")


def _taken(name: str) -> int:
    function = getattr(np, name)
    return function.nin if isinstance(function, np.ufunc) else 1
