"""Functions that give several columns of one: B-splines and orthogonal polynomials, as formulaic defines them."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.sources.formula.expressions import constants
from partsketch.sources.formula.values import ValueTable

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

_SPLINE = ("df", "knots", "degree", "include_intercept", "lower_bound", "upper_bound", "extrapolation")
_BEYOND = ("raise", "clip", "na", "zero", "extend")
#: Highest degree of polynomials and splines: beyond, doubles tell the columns no more apart.
_HIGHEST_DEGREE = 20
_MOST_KNOTS = 1000


@dataclass(frozen=True)
class Spline:
    """`bs(x, df=None, knots=None, degree=3, include_intercept=False, …)`; its state is the knots."""

    df: int | None
    knots: tuple[float, ...] | None
    degree: int
    include_intercept: bool
    lower_bound: float | None
    upper_bound: float | None
    extrapolation: str

    @classmethod
    def called(cls, call: ast.Call) -> Spline:
        """Read the arguments of a call."""
        given: dict[str, Any] = {"df": None, "knots": None, "degree": 3, "include_intercept": False}
        given |= {"extrapolation": "raise"}
        given |= {"lower_bound": None, "upper_bound": None, **constants(call, _SPLINE)}
        told = ast.unparse(call)
        for name, least in (("df", 1), ("degree", 0)):
            value = given[name]
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
                raise InputError(f"{name} of {told} is {value!r}: give a whole number, at least {least}.")
        degree, inner, knots = int(given["degree"] or 0), bool(given["include_intercept"]), given["knots"]
        if degree > _HIGHEST_DEGREE or (given["df"] or 0) > _MOST_KNOTS:
            raise InputError(
                f"{told} has too high a degree or too many columns: use {_HIGHEST_DEGREE} and {_MOST_KNOTS}."
            )
        if given["df"] is not None and knots is not None:
            raise InputError(f"{told} has df and knots: give one of them.")
        if given["df"] is not None and given["df"] < degree + inner:
            raise InputError(f"df of {told} is too small: give at least {degree + inner}, its degree.")
        if given["extrapolation"] not in _BEYOND:
            raise InputError(f"extrapolation of {told} is {given['extrapolation']!r}: choose {', '.join(_BEYOND)}.")
        return cls(
            given["df"],
            None if knots is None else tuple(float(knot) for knot in knots),
            degree,
            inner,
            given["lower_bound"],
            given["upper_bound"],
            given["extrapolation"],
        )

    @property
    def width(self) -> int:
        """Number of columns."""
        if self.df is not None:
            return self.df
        return len(self.knots or ()) + self.degree + int(self.include_intercept)

    @property
    def state_length(self) -> int:
        """Number of knots, those at the ends repeated."""
        return self.width + int(not self.include_intercept) + self.degree + 1

    @property
    def is_written(self) -> bool:
        """Whether knots and ends stand in the call, so that rows say nothing of them."""
        return self.df is None and self.lower_bound is not None and self.upper_bound is not None

    @property
    def fields(self) -> tuple[str, ...]:
        """What tells the columns apart in their names."""
        first = int(not self.include_intercept)
        return tuple(str(number) for number in range(first, first + self.width))

    @property
    def drops(self) -> str | None:
        """The field that is left out beside an intercept, if the basis spans one."""
        return "0" if self.include_intercept else None

    def state(self, table: ValueTable, told: str) -> tuple[float, ...]:
        """Return the knots for these values."""
        low = table.smallest if self.lower_bound is None else float(self.lower_bound)
        high = table.largest if self.upper_bound is None else float(self.upper_bound)
        if not low < high:
            raise InputError(f"{told} in the formula needs a column of different values, and all are {low:g}.")
        knots = list(self.knots or ())
        if knots != sorted(knots) or not all(low <= knot <= high for knot in knots):
            raise InputError(f"The knots of {told} in the formula must increase, from {low:g} to {high:g}.")
        if self.df is not None:
            count = self.df - self.degree - int(self.include_intercept)
            within = self.extrapolation in ("clip", "na", "zero")
            knots = table.quantiles(
                np.linspace(0, 1, count + 2)[1:-1], low if within else None, high if within else None
            )
        return tuple(float(knot) for knot in [low] * (self.degree + 1) + knots + [high] * (self.degree + 1))

    def columns(self, x: FloatArray, state: tuple[float, ...]) -> FloatArray:
        """Return the basis at these values, one row per column of the model."""
        from partsketch.sources.formula.spline_kernel import spline_basis

        knots = np.array(state)
        low, high = knots[0], knots[-1]
        outside = (x < low) | (x > high) if self.extrapolation in ("na", "zero") else None
        if self.extrapolation in ("clip", "na", "zero"):
            x = np.clip(x, low, high)
        out = np.empty((len(knots) - self.degree - 1, len(x)))
        spline_basis(np.ascontiguousarray(x), knots, self.degree, out)
        if outside is not None:
            out[:, outside] = np.nan if self.extrapolation == "na" else 0.0
        return out if self.include_intercept else out[1:]

    def refused(self, x: FloatArray, state: tuple[float, ...]) -> BoolArray | None:
        """Return where values lie outside the knots and may not."""
        if self.extrapolation != "raise":
            return None
        outside: BoolArray = (x < state[0]) | (x > state[-1])
        return outside if outside.any() else None


@dataclass(frozen=True)
class Polynomial:
    """`poly(x, degree=1, raw=False)`; its state is the recurrence of the orthogonal polynomials."""

    degree: int
    raw: bool

    @classmethod
    def called(cls, call: ast.Call) -> Polynomial:
        """Read the arguments of a call."""
        given: dict[str, Any] = {"degree": 1, "raw": False, **constants(call, ("degree", "raw"))}
        degree = given["degree"]
        if not isinstance(degree, int) or isinstance(degree, bool) or not 1 <= degree <= _HIGHEST_DEGREE:
            raise InputError(f"The degree of {ast.unparse(call)} is {degree!r}: give 1 to {_HIGHEST_DEGREE}.")
        return cls(degree, bool(given["raw"]))

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.degree

    @property
    def state_length(self) -> int:
        """Numbers of the recurrence: centres, then squared norms."""
        return 0 if self.raw else 2 * self.degree + 1

    @property
    def fields(self) -> tuple[str, ...]:
        """What tells the columns apart in their names."""
        # formulaic counts the columns of an array from 0, those of orthogonal polynomials from 1.
        return tuple(str(number) for number in range(int(not self.raw), self.degree + int(not self.raw)))

    @property
    def drops(self) -> str | None:
        """Nothing: the constant is not among the columns."""
        return None

    def state(self, table: ValueTable, told: str) -> tuple[float, ...]:
        """Return the recurrence for these values."""
        if self.raw:
            return ()
        x, counts = table.values, table.counts
        if len(x) <= self.degree:
            raise InputError(
                f"{told} in the formula needs more than {self.degree} different values; there are {len(x)}."
            )
        centres: list[float] = []
        norms = [float(counts.sum())]
        before, now = np.zeros(len(x)), np.ones(len(x))
        for k in range(self.degree):
            # The mean of x under weights, measured from its largest value, loses nothing to a column far from zero.
            weights = counts * now * now
            centres.append(float(x[0] + (weights @ (x - x[0])) / weights.sum()))
            beta = norms[k] / norms[k - 1] if k else 0.0
            before, now = now, (x - centres[k]) * now - beta * before
            norms.append(float(counts @ (now * now)))
        if not np.isfinite(norms).all() or min(norms) <= 0:
            raise InputError(
                f"{told} in the formula is too large for doubles: use a lower degree, or scale the column."
            )
        return (*centres, *norms)

    def columns(self, x: FloatArray, state: tuple[float, ...]) -> FloatArray:
        """Return the polynomials at these values, one row per column of the model."""
        if self.raw:
            return np.stack([np.power(x, k) for k in range(1, self.degree + 1)])
        centres, norms = state[: self.degree], state[self.degree :]
        out = np.empty((self.degree + 1, len(x)))
        out[0] = 1.0
        for k in range(1, self.degree + 1):
            np.multiply(x - centres[k - 1], out[k - 1], out=out[k])
            if k > 1:
                out[k] -= (norms[k - 1] / norms[k - 2]) * out[k - 2]
        out /= np.sqrt(np.array(norms))[:, None]
        return out[1:]

    def refused(self, x: FloatArray, state: tuple[float, ...]) -> BoolArray | None:
        """Polynomials go on for ever."""
        return None


Basis = Spline | Polynomial


def basis_of(call: ast.Call) -> Basis:
    """Return what a call of `bs` or `poly` asks for."""
    assert isinstance(call.func, ast.Name)
    return Spline.called(call) if call.func.id == "bs" else Polynomial.called(call)
