"""The eleven linear data sets of NIST's Statistical Reference Datasets (public domain), and their certified answers."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.judge import Judgement, judge

FloatArray = NDArray[np.float64]

FOLDER = Path(__file__).parent / "data" / "nist"

#: Data set → powers of x in its model; 1 for longley, which has six columns of its own.
POWERS = {
    "norris": 1,
    "pontius": 2,
    "noint1": 1,
    "noint2": 1,
    "filip": 10,
    "longley": 1,
    **{f"wampler{number}": 5 for number in range(1, 6)},
}


@dataclass(frozen=True)
class Certified:
    """One data set.

    Attributes
    ----------
    name, intercept
        Its name, and whether its model has an intercept.
    X, y
        As users have them: decimal numbers read into float64, their powers computed in float64.
    exact
        The certified answer: the fit to the decimal numbers themselves, in rational arithmetic.
    """

    name: str
    intercept: bool
    X: FloatArray
    y: FloatArray
    exact: Judgement


@cache
def certified(name: str) -> Certified:
    """Read a data set and solve it."""
    with (FOLDER / f"{name}.csv").open() as file:
        _, *rows = csv.reader(file)
    texts = list(zip(*rows, strict=True))
    raw = np.array(texts, dtype=np.float64)
    decimals = [[Fraction(text) for text in column] for column in texts]
    powers = range(1, POWERS[name] + 1)
    intercept = not name.startswith("noint")
    exact_columns = [[value**power for value in column] for column in decimals[1:] for power in powers]
    return Certified(
        name=name,
        intercept=intercept,
        X=np.column_stack([column**power for column in raw[1:] for power in powers]),
        y=raw[0],
        exact=judge(exact_columns, decimals[0], intercept=intercept, inverse=True),
    )
