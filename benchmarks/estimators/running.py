"""Draws sketches and measures what each estimator loses, as a share of the minimal loss."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from benchmarks.estimators.designs import Design, real, synthetic
from benchmarks.estimators.noise_price import least_price, price_without_numbers
from benchmarks.problem import FloatArray
from partsketch import InputError, theory
from partsketch.sketches.orthogonal import orthogonal_rows
from partsketch.theory.partition_certificate import row_shares

#: Draws from the same rows, before rows are drawn anew.
_SAME_ROWS = 10

#: Draws of which the least price of estimated noise is found: each takes a chain of its own.
_PRICED = 300

#: Partitions of a row of its own: six times 500 alike rows must not lose more with weights than without.
_ALIKE_ONLY = 6

#: Of all draws. Nothing was chosen by looking at these.
_SEED = 20261121

ESTIMATORS = ("average", "inverse_variance", "stack", "auto", "orthogonal_stack", "orthogonal_auto")


def run(quick: bool, command: str, only: Sequence[str], saved: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the losses of all estimators for all designs and k = 5, 20, and for six alike partitions.

    With `only`, those whose names begin so are measured, and the others are taken from the saved result.
    """
    before = {(row["name"], row["k"]): {"command": saved["command"], **row} for row in saved.get("rows", ())}
    rows: dict[tuple[str, int], dict[str, Any]] = dict(before)
    for k in (5, _ALIKE_ONLY, 20):
        wanted = partial(_is_asked, k=k, only=only)
        makers = [synthetic(k, wanted)]
        if not quick and k != _ALIKE_ONLY:
            makers += [real(k, False, wanted), real(k, True, wanted)]
        for design in chain(*makers):
            row = measured(design, 20 if quick else design.draws)
            rows[design.name, k] = {**row, "command": command}
            shown = ", ".join(f"{name} {100 * value:.3g}%" for name, value in row["losses"].items())
            print(f"estimators / {design.name}, k = {k}: {shown}, bound {100 * row['bound']:.3g}%", flush=True)
    if not any(row["command"] == command for row in rows.values()):
        known = "losses, coverage, rules, sites, or the beginning of a row"
        sys.exit(f"of estimators there is no part {only[0]!r}: choose {known}")
    return list(rows.values())


def _is_asked(name: str, k: int, only: Sequence[str]) -> bool:
    if k == _ALIKE_ONLY and name != "alike":
        return False
    return not only or f"{name} {k}".replace(",", "").startswith(tuple(only))


@dataclass
class _Known:
    """What is known of each set of orthogonal sketches: the bound, and what estimating noise costs.

    `distances` are those of "auto" from the fit that attains the bound: all that it loses more, on average; the others
    are those of weights whose noise is estimated from the sketches.
    """

    bounds: list[float] = field(default_factory=list)
    distances: list[float] = field(default_factory=list)
    distances_if_estimated: list[float] = field(default_factory=list)
    prices: list[float] = field(default_factory=list)
    prices_without_numbers: list[float] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)


def measured(design: Design, draws: int) -> dict[str, Any]:
    """Return mean losses, their standard errors, the bound, what "auto" took, and bytes."""
    rng = np.random.default_rng(_SEED)
    losses: dict[str, list[float]] = {name: [] for name in ESTIMATORS}
    known = _Known()
    for number in range(draws):
        if number == 0 or (design.is_drawn and number % _SAME_ROWS == 0):
            parts, noise = design.make(rng)
            pooled = theory.pooled_moments(parts)
        for name, solution in _estimates(parts, design.sketch_size, rng, pooled, noise, known):
            away = pooled.root @ (solution - pooled.solution)
            losses[name].append(float(away @ away) / pooled.loss)
    kept = {name: values for name, values in losses.items() if values}
    columns = parts[0].columns
    over, error = _ratio(known.distances, known.bounds)
    if_estimated = _ratio(known.distances_if_estimated, known.bounds)
    return {
        "name": design.name, "k": design.count, "sketch_size": design.sketch_size, "columns": columns,
        "shared": design.shared, "draws": draws, "noise": "measured",
        "losses": {name: float(np.mean(values)) for name, values in kept.items()},
        "standard_errors": {name: float(np.std(values) / math.sqrt(draws)) for name, values in kept.items()},
        "bound": float(np.mean(known.bounds)),
        # What it loses above the bound is its distance from the fit that attains it, in the mean: no other noise.
        "over_attaining": 1 + over,
        "over_attaining_error": error,
        "over_if_estimated": 1 + if_estimated[0],
        "over_if_estimated_error": if_estimated[1],
        "least_with_estimated_noise": _priced(known.prices, known.bounds),
        "least_with_estimated_noise_error": _ratio(known.prices, known.bounds[: len(known.prices)])[1],
        "without_numbers": _priced(known.prices_without_numbers, known.bounds),
        "taken": {name: known.taken.count(name) for name in sorted(set(known.taken))},
        "bytes": {
            "coefficients": 8 * columns,
            # And the noise, a sum and a count.
            "sketch": 8 * design.sketch_size * (columns + 1) + 16,
            # A triangle; our files hold the square, zeros included.
            "exact": 4 * (columns + 1) * (columns + 2),
        },
    }  # fmt: skip


def _ratio(above: list[float], below: list[float]) -> tuple[float, float]:
    """Return the ratio of two means from the same draws, and its standard error."""
    first, second = np.array(above), np.array(below)
    if not len(first):
        return 0.0, 0.0
    ratio = float(first.mean() / second.mean())
    return ratio, float(np.std(first - ratio * second) / second.mean() / math.sqrt(len(first)))


def _priced(prices: list[float], bounds: list[float]) -> float:
    """Return the bound with a price that was found for the first of all draws, over the bound."""
    return 1 + float(np.sum(prices) / np.sum(bounds[: len(prices)])) if prices else 1.0


def _estimates(
    parts: list[theory.PartitionMoments],
    size: int,
    rng: np.random.Generator,
    pooled: theory.PartitionMoments,
    noise: FloatArray,
    known: _Known,
) -> Iterator[tuple[str, FloatArray]]:
    """Yield every estimate from one set of Gaussian and one of orthogonal sketches."""
    counts = [part.row_count for part in parts]
    gaussian = [rng.standard_normal((size, len(part.factor))) @ part.factor / math.sqrt(size) for part in parts]
    moments = theory.sketch_moments(gaussian, counts)
    yield "average", moments.coefficients.mean(axis=0)
    # Weights by inverse variance are for partitions of full rank.
    with suppress(InputError):
        yield "inverse_variance", theory.sketch_weights(moments).values @ moments.coefficients
    yield "stack", theory.stacked_fit(moments.sketches, counts).solution
    # As files of these kinds tell it.
    measured = theory.MeasuredNoise([part.loss for part in parts], [part.row_count - part.rank for part in parts])
    yield "auto", _auto(moments, measured, known.taken)
    seeds = rng.integers(2**60, size=len(parts))
    turned = [
        orthogonal_rows(part.factor, size, part.row_count, int(seed)) for part, seed in zip(parts, seeds, strict=True)
    ]
    moments = theory.sketch_moments(turned, counts, sketch="orthogonal")
    yield "orthogonal_stack", theory.stacked_fit(moments.sketches, counts, "orthogonal").solution
    auto, estimated = _auto(moments, measured), _auto(moments, None)
    yield "orthogonal_auto", auto
    # Rows of H itself: a sketch is scaled by √(p/m), one with all rows is not.
    scales = np.sqrt([min(size / count, 1.0) for count in counts])
    rows = [scale * matrix for scale, matrix in zip(scales, turned, strict=True)]
    bound, attaining = _best(rows, parts, pooled, noise)
    known.bounds.append(bound / pooled.loss)
    for fit, distances in ((auto, known.distances), (estimated, known.distances_if_estimated)):
        away = pooled.root @ (fit - attaining)
        distances.append(float(away @ away) / pooled.loss)
    if np.ptp(noise) > 0 and len(known.prices) < _PRICED:
        whitened = [np.column_stack([row[:, :-1] @ pooled.inverse_root, row[:, -1]]) for row in rows]
        known.prices.append(least_price(whitened, noise, rng) / pooled.loss)
        known.prices_without_numbers.append(price_without_numbers(whitened, noise, rng) / pooled.loss)


def _auto(
    moments: theory.SketchMoments, measured: theory.MeasuredNoise | None, taken: list[str] | None = None
) -> FloatArray:
    choice = theory.choose_stack(moments, measured=measured)
    if taken is not None:
        taken.append(choice.taken)
    counts = moments.row_counts.astype(int).tolist()
    fit = theory.stacked_fit(moments.sketches, counts, moments.law, choice.weights).solution
    average = row_shares(moments) @ moments.coefficients
    return np.asarray((1 - choice.share) * fit + choice.share * average)


def _best(
    rows: list[FloatArray], parts: list[theory.PartitionMoments], pooled: theory.PartitionMoments, noise: FloatArray
) -> tuple[float, FloatArray]:
    """Return the least expected loss of an unbiased linear fit to these rows, and the fit that attains it.

    It knows σ_i² and G. In coordinates in which G is the identity it is `a_w + Σ (H_iX_i)ᵀ(H_iy_i − H_iX_i a_w)`, a_w
    generalised least squares.
    """
    features = [matrix[:, :-1] @ pooled.inverse_root for matrix in rows]
    grams = [(part.root @ pooled.inverse_root).T @ (part.root @ pooled.inverse_root) for part in parts]
    scaled = [matrix / math.sqrt(variance) for matrix, variance in zip(features, noise, strict=True)]
    targets = [matrix[:, -1] / math.sqrt(variance) for matrix, variance in zip(rows, noise, strict=True)]
    weighted = np.linalg.lstsq(np.vstack(scaled), np.concatenate(targets))[0]
    step = sum(x.T @ (matrix[:, -1] - x @ weighted) for x, matrix in zip(features, rows, strict=True))
    bound = theory.least_orthogonal_excess_loss(features, grams, noise)
    return bound, pooled.inverse_root @ (weighted + step)
