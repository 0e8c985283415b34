"""The noise of a partition, measured: what exact least squares leaves of its targets, in the pass of its sketch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.double_double import DoubleDouble
from partsketch.common.linalg.solve import sketch_rounding, solve_least_squares
from partsketch.sketches.base import Sketch, SketchSpecification, get_sketch
from partsketch.sources.base import Block, Source
from partsketch.summaries.provenance import Noise
from partsketch.summaries.summary import Summary
from partsketch.summaries.tasks import INTERCEPT, Feeder, Piece, SummaryRequest

FloatArray = NDArray[np.float64]

#: Noise below this share of a target's own squares is rounding, and is not told: a standard deviation of 1e-9.
_NOTHING_LEFT = 1e-18
#: Where a sketch holds all rows, its residual sum is that of the rows, but for the rounding of its factor.
_SAME_SUM = 1e-6
#: Makers leave out what is less likely than this, so that readers, who refuse what is a thousand times less likely,
#: refuse no honest file.
_UNLIKELY = 1e-9


class MeasuringFeeder:
    """Gives rows to the sketch and to exact sums of products; both become what they would be alone, to the last bit."""

    def __init__(
        self, source: Source, request: SummaryRequest, partition: int, segment: int, done: MeasuringFeeder | None
    ) -> None:
        alone = replace(request, measures_noise=False)
        before = (None, None) if done is None else done._both
        self._both: tuple[Feeder, Feeder] = (
            alone.feeder(source, partition, segment, before[0]),
            request.exact.feeder(source, partition, segment, before[1]),
        )

    def feed(self, block: Block, begin: int, end: int) -> None:
        """Take rows begin to end of a block."""
        for feeder in self._both:
            feeder.feed(block, begin, end)

    def finish(self) -> Piece:
        """Return the piece of the sketch, the sums beside it."""
        sketch, sums = self._both
        return replace(sketch.finish(), beside=sums.finish())


def is_cheap_beside(specification: SketchSpecification, width: int) -> bool:
    """Tell whether exact sums of products cost no more than the sketch itself, or nothing: then noise is measured."""
    sketch = get_sketch(specification.kind)
    if not sketch.is_random or specification.size is None:
        return False
    exact = get_sketch("triangular").cost.flops(width, width, 1)
    # Kinds that are not made of dense products are quicker than sums of products, whatever they count.
    dense = sketch.cost.is_dense and sketch.cost.flops(specification.size, width, 1) >= exact
    return sketch.sums_products or dense


def measured_noise(exact: Summary, targets: Sequence[str]) -> tuple[Noise, ...]:
    """Return the noise of all targets from the exact summary of a partition; none where rounding is all that is left.

    Without degrees of freedom there is none either. All targets or none: features are the columns that have no noise.
    """
    if not targets:
        return ()
    sums, own, rank = _residuals(exact.rows.moved(-exact.centre), exact.columns, targets, 0.0, exact.row_count)
    freedom = exact.row_count - rank
    if freedom < 1 or not np.all(np.isfinite(sums)) or np.any(sums <= _NOTHING_LEFT * own):
        return ()
    return tuple(Noise(name, float(value), freedom) for name, value in zip(targets, sums, strict=True))


def with_noise(summary: Summary, noise: tuple[Noise, ...]) -> Summary:
    """Return the summary that tells this noise, unless its own numbers speak against it: then rounding made them."""
    if not noise or not may_be_noise(summary, noise, get_sketch(summary.kind), _UNLIKELY):
        return summary
    return summary.told(summary.parts, replace(summary.about, noise=noise))


def may_be_noise(summary: Summary, noise: Sequence[Noise], sketch: Sketch, chance: float) -> bool:
    """Tell whether a sketch may be one of rows with this noise: False if that is less likely than `chance`.

    With e the residuals of exact least squares and r the rank, the residual sum of squares of a Gaussian sketch of m
    rows is `‖e‖²/m` times a chi-square of m − r degrees of freedom, whatever the rows are; that of an orthogonal one is
    `‖e‖² p/m` times a beta variate of (m − r)/2 and (p − m)/2. Of other kinds, and of sketches with no more rows than
    the rank, nothing is known.
    """
    rows, size = summary.row_count, summary.height
    rank = rows - noise[0].freedom
    if sketch.law is None or not sketch.law.is_exact or size <= rank:
        return True
    names = [one.target for one in noise]
    centred = summary.rows.moved(-summary.centre)
    if summary.low is None:
        centred = DoubleDouble(centred.high, np.zeros_like(centred.high))
    sums, _, found = _residuals(centred, summary.columns, names, sketch_rounding(rows), None)
    if found != rank:
        return False
    shares = sums / np.array([one.residual_sum for one in noise])
    rotation = sketch.law.rotation(rows)
    return all(_is_likely(float(share), size, rank, rotation, chance) for share in shares)


def _is_likely(share: float, size: int, rank: int, rotation: float, chance: float) -> bool:
    """Whether a sketch may have this share of the residual sum of squares of its rows."""
    from scipy.special import betainc, chdtr, chdtrc

    if math.isinf(rotation):
        below, above = chdtr(size - rank, size * share), chdtrc(size - rank, size * share)
    elif size >= rotation:
        return abs(share - 1) <= _SAME_SUM
    else:
        part = min(share * size / rotation, 1.0)
        one, other = (size - rank) / 2, (rotation - size) / 2
        below, above = betainc(one, other, part), betainc(other, one, 1 - part)
    return bool(below >= chance and above >= chance)


def _residuals(
    rows: DoubleDouble, columns: tuple[str, ...], targets: Sequence[str], rounding: float, most_rank: int | None
) -> tuple[FloatArray, FloatArray, int]:
    """Return residual sums of squares of targets on all other columns, their own sums of squares, and the rank."""
    features = tuple(name for name in columns if name not in set(targets))
    places = [columns.index(name) for name in (*features, *targets)]
    high, low = rows.high[:, places], rows.low[:, places] if rows.low.any() else None
    free = int(bool(features) and features[0] == INTERCEPT)
    found = solve_least_squares(high, features, len(targets), free, rounding, low, None, most_rank)
    return found.residual_sums, np.sum(high[:, len(features) :] ** 2, axis=0), found.rank
