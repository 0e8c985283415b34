"""Tables to draw from: whole numbers from a place of their own, in a unit of their own.

A column is (whole + shift) · 2^unit with |whole| below 2³⁴ and |shift| below 2⁵⁰, so that moving it and changing its
unit are exact in float64: two such tables say the same, and fits to them must too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Kinds of columns; "dummies" are three, the others one.
KINDS = (
    "normal", "cents", "zero", "constant", "duplicate", "nearly duplicate", "dummies", "rare level", "identifier",
    "timestamp", "tiny", "huge", "one huge row",
)  # fmt: skip

_LIMIT = 2**21


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Whole numbers with their shifts and units; `y` likewise."""

    whole: IntArray
    shifts: IntArray
    units: IntArray
    target: IntArray
    target_shift: int
    target_unit: int
    kinds: tuple[str, ...]
    seed: int

    def __repr__(self) -> str:
        columns = ", ".join(
            f"{kind} + {shift}, times 2^{unit}"
            for kind, shift, unit in zip(self.kinds, self.shifts, self.units, strict=True)
        )
        target = f"target + {self.target_shift}, times 2^{self.target_unit}"
        return f"{len(self.target)} rows from seed {self.seed}: [{columns}], {target}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # Hypothesis would print every number.
        printer.text(repr(self))

    @property
    def features(self) -> FloatArray:
        """The columns as float64, exactly."""
        return np.ldexp((self.whole + self.shifts).astype(np.float64), self.units)

    @property
    def y(self) -> FloatArray:
        """The target as float64, exactly."""
        return np.ldexp((self.target + self.target_shift).astype(np.float64), self.target_unit)

    def changed(self, change: Change) -> Table:
        """Return the same table in another order, from other places, in other units."""
        order = list(change.order)
        return replace(
            self,
            whole=self.whole[:, order],
            shifts=(self.shifts + np.array(change.shifts))[order],
            units=(self.units + np.array(change.units))[order],
            target_shift=self.target_shift + change.target_shift,
            target_unit=self.target_unit + change.target_unit,
            kinds=tuple(self.kinds[number] for number in order),
        )


@dataclass(frozen=True)
class Change:
    """Another order of the columns, and for each (in the old order) how far it moves and by which power of two."""

    order: tuple[int, ...]
    shifts: tuple[int, ...]
    units: tuple[int, ...]
    target_shift: int
    target_unit: int


def _column(kind: str, rows: int, generator: np.random.Generator) -> tuple[IntArray, int, int]:
    """Return whole numbers, shift and unit of one column."""
    normal = np.clip(np.rint(1024 * generator.normal(size=rows)), -_LIMIT, _LIMIT).astype(np.int64)
    if kind == "cents":
        return generator.integers(0, 10**6, rows), 0, 0
    if kind in ("zero", "constant"):
        return np.zeros(rows, dtype=np.int64), 0 if kind == "zero" else int(generator.integers(1, 2**31)), -5
    if kind == "rare level":
        return (np.arange(rows) == generator.integers(0, rows)).astype(np.int64), 0, 0
    if kind == "identifier":
        return np.arange(rows, dtype=np.int64), 2**49, 4
    if kind == "timestamp":
        return generator.integers(0, 4000, rows), 2**50 + 12345, 8
    if kind in ("tiny", "huge"):
        return normal, 0, -500 if kind == "tiny" else 480
    if kind == "one huge row":
        normal[generator.integers(0, rows)] = _LIMIT
        return normal // 256, 0, 0
    return normal, 0, -10


def _columns(
    kinds: list[str], rows: int, generator: np.random.Generator
) -> tuple[list[tuple[IntArray, int, int]], list[str]]:
    found: list[tuple[IntArray, int, int]] = []
    named: list[str] = []
    for kind in kinds:
        if kind == "dummies":
            levels = generator.integers(0, 3, rows)
            found += [((levels == level).astype(np.int64), 0, 0) for level in range(3)]
            named += [kind] * 3
            continue
        if kind in ("duplicate", "nearly duplicate") and found:
            whole, shift, unit = found[int(generator.integers(0, len(found)))]
            if kind == "nearly duplicate" and np.abs(whole).max() < 2**13:
                # They differ by parts of 2⁻⁸ or 2⁻²¹ of the unit: 10⁻⁵ or 10⁻⁹ of the spread of normal columns.
                power = int(generator.choice([8, 21]))
                whole, shift, unit = (whole << power) + generator.integers(-4, 5, rows), shift << power, unit - power
                if abs(shift) >= 2**50:
                    whole, shift, unit = found[0]
            found.append((whole, shift, unit))
        else:
            found.append(_column(kind, rows, generator))
        named.append(kind)
    return found, named


@st.composite
def tables(draw: st.DrawFn, least: int = 2, most: int = 120, tame: bool = False, most_columns: int = 5) -> Table:
    """Draw a table; `tame` leaves out what makes rounding show in a sketch."""
    kinds_allowed = [kind for kind in KINDS if not tame or kind not in ("nearly duplicate", "one huge row")]
    kinds = draw(st.lists(st.sampled_from(kinds_allowed), min_size=1, max_size=most_columns))
    rows = draw(st.integers(least, most))
    seed = draw(st.integers(0, 2**32))
    generator = np.random.default_rng(seed)
    width = sum(3 if kind == "dummies" else 1 for kind in kinds)
    if not tame and draw(st.booleans()):
        # Rows just above or below the number of columns.
        rows = max(2, width + draw(st.integers(-1, 3)))
    columns, named = _columns(kinds, rows, generator)
    whole = np.column_stack([column for column, _, _ in columns])
    sizes = np.maximum(np.abs(whole - whole[0]).max(axis=0), 1)
    signal = (whole / sizes) @ generator.normal(size=width) if draw(st.booleans()) else np.zeros(rows)
    noise = generator.normal(size=rows)
    target = np.rint(2.0**16 * np.clip(signal + noise, -16, 16)).astype(np.int64)
    return Table(
        whole=whole,
        shifts=np.array([shift for _, shift, _ in columns]),
        units=np.array([unit for _, _, unit in columns]),
        target=target,
        target_shift=draw(st.sampled_from([0, 0, 2**40])),
        target_unit=-16,
        kinds=tuple(named),
        seed=seed,
    )


@st.composite
def changes(draw: st.DrawFn, table: Table, moved: bool, target_power: int = 300) -> Change:
    """Draw a change of a table; without an intercept nothing may be moved.

    `target_power` limits the unit of the target, so that its weighted squares stay within float64.
    """
    width = table.whole.shape[1]
    places = st.sampled_from([0, 0, 1, -7, 2**20, -(2**35), 2**50]) if moved else st.just(0)
    sizes = st.sampled_from([0, 0, 1, -3, 20, -40, 300, -300])
    shifts = []
    for number in range(width):
        shift = draw(places)
        # What is far from zero already goes back to zero instead of leaving the range of exact numbers.
        shifts.append(-int(table.shifts[number]) if shift and abs(table.shifts[number]) > 2**45 else shift)
    return Change(
        order=tuple(draw(st.permutations(range(width)))),
        shifts=tuple(shifts),
        units=tuple(
            0
            if abs(int(table.units[number])) > 400 and draw(st.booleans())
            else _within(int(table.units[number]), draw(sizes))
            for number in range(width)
        ),
        target_shift=draw(st.sampled_from([0, 1, -(2**30)])) if moved else 0,
        target_unit=draw(st.sampled_from([0, 0, 5, -30, target_power, -target_power])),
    )


def _within(unit: int, power: int) -> int:
    """Return a power that keeps the column between 1e-150 and 1e150."""
    return power if abs(unit + power) <= 500 else -power if abs(unit - power) <= 500 else 0


@st.composite
def weight_lists(draw: st.DrawFn, rows: int, extreme: bool) -> FloatArray | None:
    """Draw weights, or none; `extreme` ones lie anywhere between 1e-200 and 1e200."""
    kinds = ["none", "gamma", "some zero", "moderate"]
    kind = draw(st.sampled_from([*kinds, "all huge", "all tiny", "two worlds", "anything"] if extreme else kinds))
    if kind == "none":
        return None
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    weights = generator.gamma(1.0, size=rows) + 0.01
    if kind == "some zero":
        weights[generator.random(rows) < 0.2] = 0.0
        weights[generator.integers(0, rows)] = 1.0
    elif kind == "moderate":
        weights = 10.0 ** generator.uniform(-3, 3, rows)
    elif kind == "all huge":
        weights *= 1e200
    elif kind == "all tiny":
        weights *= 1e-200
    elif kind == "two worlds":
        weights *= np.where(np.arange(rows) % 3 == 0, 1e-200, 1e200)
    elif kind == "anything":
        weights = 10.0 ** generator.uniform(-200, 200, rows)
    return weights
