"""What the formulas say of a state: losses, tails and costs, with the reason wherever one says nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from partsketch import theory
from partsketch.common.errors import InputError
from partsketch.report.charts.plots import Line, Mark, line_chart
from partsketch.report.charts.scales import ROUNDING, percent
from partsketch.report.explorer.state import SLIDERS, State

_POINTS = 48
TAILS = (0.5, 0.95, 0.99)


def divergence(state: State) -> float:
    """Return D of the chosen design."""
    if state.design == "alike":
        return float(state.d)
    if state.design == "gaussian":
        return theory.gaussian_design_divergence(state.n, state.d, state.k)
    if state.design == "odd":
        return theory.odd_partition_divergence(state.d, state.k, state.odd)
    return state.unlikeness * state.d if state.k > 1 else float(state.d)


def minimal_loss(state: State) -> float:
    """Return the expected loss of exact least squares, σ²(n − d)."""
    if state.n <= state.d:
        raise InputError(f"{state.n:,} rows leave nothing over for noise after {state.d:,} columns: use more rows.")
    return state.variance * (state.n - state.d)


@dataclass(frozen=True)
class Quantity:
    """A formula of the page: how it is called, in words, its function, the method whose cost goes with it."""

    name: str
    symbol: str
    words: str
    value: Callable[[State], float]
    method: str
    colour: int


def _whole(state: State) -> float:
    return theory.expected_whole_excess_loss(state.n, state.d, state.m, state.k, state.variance)


def _partition(state: State) -> float:
    return theory.expected_partition_excess_loss(state.n, state.d, state.m, state.k, state.variance, divergence(state))


def _bound(state: State) -> float:
    return theory.high_probability_excess_loss(
        state.n, state.d, state.m, state.k, state.variance, divergence(state), state.delta
    )


def _stack(state: State) -> float:
    return theory.stacked_excess_loss(minimal_loss(state), state.d, [state.m] * state.k)


def _average(state: State) -> float:
    return state.variance * (divergence(state) - state.d)


QUANTITIES = (
    Quantity("whole", "B_β", "average of fits on sketches of all rows", _whole, "whole", 1),
    Quantity("partition", "B_θ", "average of fits on sketches of partitions", _partition, "partition", 2),
    Quantity("stacked", "stacked", "one fit on all sketches stacked (approximate)", _stack, "stack", 3),
    Quantity("average", "σ²(D − d)", "average of exact fits of partitions", _average, "average", 4),
    Quantity("bound", "B′_θ", "bound for B_θ's fit on new rows; fails with chance δ at most", _bound, "partition", 5),
    Quantity("exact", "exact", "exact least squares", lambda state: 0.0, "exact", 6),
)


def told(function: Callable[[State], float], state: State) -> tuple[float | None, str]:
    """Return a finite value, or None and the reason."""
    try:
        value = function(state)
    except InputError as error:
        return None, str(error)
    return (value, "") if math.isfinite(value) else (None, "It is infinite here.")


def tails(state: State) -> tuple[list[tuple[float, float | None]], str]:
    """Return quantiles of one sketched fit's relative excess loss, and a sentence on its moments."""

    def quantile(probability: float) -> float | None:
        return told(lambda s: theory.single_sketch_excess_loss_quantile(1.0, s.d, s.m, probability), state)[0]

    if state.m <= state.d + 1:
        words = f"The mean is infinite: m must be above d + 1 = {state.d + 1:,}."
    elif state.m <= state.d + 3:
        words = f"The variance is infinite for m ≤ d + 3 = {state.d + 3:,}: averages of draws do not settle."
    else:
        words = "Mean and variance are finite."
    return [(probability, quantile(probability)) for probability in TAILS], words


def figure(state: State, axis: str) -> str:
    """Return the losses over k or over m, relative to the minimal loss, as SVG."""
    slider = next(slider for slider in SLIDERS if slider.name == axis)
    lowest = slider.lowest if axis == "k" else min(state.d + 4, slider.highest - 1)
    highest = slider.highest if axis == "k" else max(16 * (state.d + 4), 4 * state.m)
    grid = np.geomspace(lowest, min(highest, slider.highest), _POINTS).round()
    chosen = getattr(state, axis)
    places = sorted({int(place) for place in grid} | ({int(chosen)} if lowest <= chosen <= highest else set()))
    least = minimal_loss(state)
    lines = []
    for quantity in QUANTITIES[:-1]:
        points = []
        for place in places:
            value, _ = told(quantity.value, replace(state, k=place) if axis == "k" else replace(state, m=place))
            if value is not None and value > ROUNDING * least:
                points.append((float(place), value / least))
        lines.append(Line(quantity.symbol, tuple(points), quantity.colour))
    # A curve that runs off to infinity near its end would flatten all the others.
    ceiling = 1e3 * min((y for line in lines for _, y in line.points), default=1.0)
    top = max(ceiling, 10.0)
    lines = [replace(line, points=tuple((x, y) for x, y in line.points if y <= top)) for line in lines]
    if not any(line.points for line in lines):
        return ""
    words = slider.words
    mark = Mark(f"{axis} = {chosen:,}", float(chosen), None, 6)
    return line_chart(lines, [mark], f"Excess loss against {words}", words, "excess loss", percent)
