"""The table of coefficients with a forest plot in it: an interval per model in every row, on one scale."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from partsketch.common.units import estimate_text
from partsketch.model.intervals import EXACT
from partsketch.report.charts.scales import Scale, linear_scale, short
from partsketch.report.page.entry import Entry
from partsketch.summaries.tasks import INTERCEPT

_WIDTH, _ROW = 200, 14
_COLOURS = 6
#: Among at least so many coefficients, one that reaches so many times further than the third quartile is an outlier.
_FEW, _OUTLIER = 4, 5.0


def colour_of(position: int) -> int:
    """Return the number of the colour of a model by its place in the report."""
    return position % _COLOURS + 1


@dataclass(frozen=True)
class Estimate:
    """A coefficient in one model, its intervals for the truth and for the exact fit; None where nothing can be said."""

    value: float
    lower: float | None
    upper: float | None
    error: float | None
    t_value: float | None
    p_value: float | None
    exact_lower: float | None
    exact_upper: float | None

    def text(self, value: float | None) -> str:
        """Return this value, its standard error or an end as it is shown: to the digits that the error leaves."""
        return "" if value is None else estimate_text(value, self.error)

    @property
    def leaves_out_zero(self) -> bool:
        """Whether the interval lies on one side of zero."""
        return self.lower is not None and self.upper is not None and (self.lower > 0 or self.upper < 0)


@dataclass(frozen=True)
class CoefficientRow:
    """A coefficient in all models that have it."""

    target: str
    name: str
    estimates: tuple[Estimate | None, ...]
    plot: str


@dataclass(frozen=True)
class CoefficientTable:
    """Rows in the order of the first model, the axes of both scales, and which intervals there are.

    Intervals for exact least squares are shown for one model whose fit is another one.
    """

    rows: tuple[CoefficientRow, ...]
    axis: str
    several_targets: bool
    has_intervals: bool
    has_exact_intervals: bool


def coefficient_table(entries: Sequence[Entry], level: float) -> CoefficientTable:
    """Collect the coefficients of all models."""
    found: dict[tuple[str, str], list[Estimate | None]] = {}
    for position, entry in enumerate(entries):
        of_exact = entry.model.summary(level, of=EXACT).rows
        for row, exact in zip(entry.model.summary(level).rows, of_exact, strict=True):
            estimates = found.setdefault((row.target, row.name), [None] * len(entries))
            estimates[position] = Estimate(
                value=row.coefficient,
                lower=row.lower,
                upper=row.upper,
                error=row.standard_error,
                t_value=row.t_value,
                p_value=row.p_value,
                exact_lower=exact.lower,
                exact_upper=exact.upper,
            )
    scales = _Scales.of(found)
    rows = tuple(
        CoefficientRow(target, name, tuple(estimates), scales.plot(estimates))
        for (target, name), estimates in found.items()
    )
    intervals = any(estimate.lower is not None for row in rows for estimate in row.estimates if estimate is not None)
    beside = len(entries) == 1 and not entries[0].model.inferences[0].around_exact.is_known
    beside = beside and any(estimate.exact_lower is not None for row in rows for estimate in row.estimates if estimate)
    return CoefficientTable(rows, scales.axis(), len({row.target for row in rows}) > 1, intervals, beside)


_Ends = tuple[float, float, float]


def _in_units(estimate: Estimate) -> _Ends:
    low = estimate.value if estimate.lower is None else estimate.lower
    high = estimate.value if estimate.upper is None else estimate.upper
    return low, estimate.value, high


def _held(ends: _Ends) -> _Ends:
    """Return ends that a scale can hold: an interval without an end reaches over any scale."""
    low, middle, high = ends
    return low if math.isfinite(low) else middle, middle, high if math.isfinite(high) else middle


def _in_errors(estimate: Estimate) -> _Ends | None:
    if not estimate.error or estimate.lower is None or estimate.upper is None:
        return None
    return estimate.lower / estimate.error, estimate.value / estimate.error, estimate.upper / estimate.error


def _without_outliers(intervals: Sequence[_Ends]) -> list[float]:
    """Return the ends that the scale has to hold: not those that would squash the others, which arrows point to."""
    intervals = [_held(ends) for ends in intervals]
    reaches = sorted(max(map(abs, ends)) for ends in intervals)
    # A quarter at most lies beyond five times what three quarters reach.
    limit = _OUTLIER * reaches[(3 * len(reaches)) // 4] if len(reaches) >= _FEW else math.inf
    kept = [ends for ends in intervals if max(map(abs, ends)) <= limit] or intervals
    return [end for ends in kept for end in ends]


@dataclass(frozen=True)
class _Scales:
    units: Scale
    errors: Scale

    @classmethod
    def of(cls, found: dict[tuple[str, str], list[Estimate | None]]) -> _Scales:
        # The intercept often dwarfs everything else; if it lies beyond the scale an arrow says so.
        slopes = [e for (_, name), row in found.items() if name != INTERCEPT for e in row if e is not None]
        every = slopes or [e for row in found.values() for e in row if e is not None]
        units = _without_outliers([_in_units(estimate) for estimate in every])
        errors = _without_outliers([ends for ends in map(_in_errors, every) if ends is not None])
        return cls(linear_scale([0.0, *units], 4, _WIDTH - 4), linear_scale([0.0, *errors], 4, _WIDTH - 4))

    def plot(self, estimates: Sequence[Estimate | None]) -> str:
        height = _ROW * len(estimates)
        kinds: tuple[tuple[str, Scale, Callable[[Estimate], _Ends | None]], ...] = (
            ("units", self.units, _in_units),
            ("errors", self.errors, _in_errors),
        )
        groups = []
        for name, scale, ends_of in kinds:
            parts = [f'<path class="zero" d="M{scale(0):.1f},0V{height}"/>']
            for position, estimate in enumerate(estimates):
                ends = None if estimate is None else ends_of(estimate)
                if ends is not None:
                    parts.append(_interval(scale, ends, _ROW * (position + 0.5), colour_of(position)))
            groups.append(f'<g class="{name}">{"".join(parts)}</g>')
        return f'<svg class="forest" viewBox="0 0 {_WIDTH} {height}" aria-hidden="true">{"".join(groups)}</svg>'

    def axis(self) -> str:
        groups = []
        for name, scale in (("units", self.units), ("errors", self.errors)):
            ticks = "".join(
                f'<text x="{scale(tick):.1f}" y="9" text-anchor="middle">{short(tick)}</text>'
                f'<path class="axis" d="M{scale(tick):.1f},12V16"/>'
                for tick in scale.ticks(4)
                if 12 < scale(tick) < _WIDTH - 12
            )
            groups.append(f'<g class="{name}">{ticks}</g>')
        return f'<svg class="forest" viewBox="0 0 {_WIDTH} 16" aria-hidden="true">{"".join(groups)}</svg>'


def _interval(scale: Scale, ends: _Ends, height: float, colour: int) -> str:
    low, middle, high = (scale(end) for end in ends)
    start, stop = max(0.0, min(low, _WIDTH)), max(0.0, min(high, _WIDTH))
    parts = [f'<path class="bar" d="M{start:.1f},{height}H{stop:.1f}"/>']
    if 0 <= middle <= _WIDTH:
        parts.append(f'<circle cx="{middle:.1f}" cy="{height}" r="3.5"/>')
    else:
        tip, base = (_WIDTH - 1, _WIDTH - 8) if middle > _WIDTH else (1, 8)
        parts.append(f'<path class="tip" d="M{tip},{height}L{base},{height - 4}V{height + 4}z"/>')
    return f'<g class="c{colour}">{"".join(parts)}</g>'
