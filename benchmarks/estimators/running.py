"""Draws sketches and measures what each estimator loses, as a share of the minimal loss."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from benchmarks.estimators.designs import Design, real, synthetic
from benchmarks.problem import FloatArray
from partsketch import InputError, theory
from partsketch.sketches.orthogonal import orthogonal_rows
from partsketch.theory.partition_certificate import row_shares

#: Draws from the same rows, before rows are drawn anew.
_SAME_ROWS = 10

ESTIMATORS = ("average", "inverse_variance", "stack", "auto", "orthogonal_stack", "orthogonal_auto")


def run(quick: bool) -> dict[str, Any]:
    """Return the losses of all estimators for all designs and k = 5, 20."""
    rows = []
    for k in (5, 20):
        designs = [*synthetic(k)] if quick else [*synthetic(k), *real(k, False), *real(k, True)]
        for design in designs:
            draws = 20 if quick else 800 if design.is_drawn else design.draws
            rows.append(measured(design, draws))
            shown = ", ".join(f"{name} {100 * value:.3g}%" for name, value in rows[-1]["losses"].items())
            print(f"estimators / {design.name}, k = {k}: {shown}, bound {100 * rows[-1]['bound']:.3g}%", flush=True)
    return {"rows": rows}


def measured(design: Design, draws: int) -> dict[str, Any]:
    """Return mean losses, their standard errors, the bound, what "auto" took, and bytes."""
    rng = np.random.default_rng(17)
    losses: dict[str, list[float]] = {name: [] for name in (*ESTIMATORS, "attaining", "known_noise", "stepped")}
    bounds: list[float] = []
    prices: list[float] = []
    taken: list[str] = []
    for number in range(draws):
        if number == 0 or (design.is_drawn and number % _SAME_ROWS == 0):
            parts, noise = design.make(rng)
            pooled = theory.pooled_moments(parts)
        for name, solution in _estimates(parts, design.sketch_size, rng, pooled, noise, (bounds, prices), taken):
            away = pooled.root @ (solution - pooled.solution)
            losses[name].append(float(away @ away) / pooled.loss)
    kept = {name: values for name, values in losses.items() if values}
    columns = parts[0].columns
    return {
        "name": design.name, "k": design.count, "sketch_size": design.sketch_size, "columns": columns,
        "shared": design.shared, "draws": draws,
        "losses": {name: float(np.mean(values)) for name, values in kept.items() if name in ESTIMATORS},
        "standard_errors": {name: float(np.std(values) / math.sqrt(draws)) for name, values in kept.items()},
        "bound": float(np.mean(bounds)),
        # The fit that attains the bound had the same sketches: their ratio is known far better than either.
        "over_attaining": float(np.mean(losses["orthogonal_auto"]) / np.mean(losses["attaining"])),
        # Weights by information with the step from α to a*, all from the sketches.
        "stepped": float(np.mean(losses["stepped"]) / np.mean(losses["attaining"])),
        # Generalised least squares that knows the noise, and what estimating it costs at the least.
        "attainable": float(np.mean(losses["known_noise"]) + np.mean(prices)) / float(np.mean(losses["attaining"])),
        # The same for the fit that goes the step as well.
        "attainable_stepped": 1 + float(np.mean(prices) / np.mean(losses["attaining"])),
        "taken": {name: taken.count(name) for name in sorted(set(taken))},
        "bytes": {
            "coefficients": 8 * columns,
            "sketch": 8 * design.sketch_size * (columns + 1),
            "exact": 4 * (columns + 1) * (columns + 2),
        },
    }  # fmt: skip


def _estimates(
    parts: list[theory.PartitionMoments],
    size: int,
    rng: np.random.Generator,
    pooled: theory.PartitionMoments,
    noise: FloatArray,
    known: tuple[list[float], list[float]],
    taken: list[str],
) -> Iterator[tuple[str, FloatArray]]:
    """Yield every estimate from one set of Gaussian and one of orthogonal sketches."""
    counts = [part.row_count for part in parts]
    gaussian = [rng.standard_normal((size, len(part.factor))) @ part.factor / math.sqrt(size) for part in parts]
    moments = theory.sketch_moments(gaussian, counts)
    yield "average", moments.coefficients.mean(axis=0)
    # Weights by inverse variance are for partitions of full rank.
    with suppress(InputError):
        yield "inverse_variance", theory.sketch_weights(moments).values @ moments.coefficients
    yield "stack", theory.stacked_fit(moments.sketches, counts).pooled.solution
    yield "auto", _auto(moments, taken)
    seeds = rng.integers(2**60, size=len(parts))
    turned = [
        orthogonal_rows(part.factor, size, part.row_count, int(seed)) for part, seed in zip(parts, seeds, strict=True)
    ]
    moments = theory.sketch_moments(turned, counts, sketch="orthogonal")
    yield "orthogonal_stack", theory.stacked_fit(moments.sketches, counts, "orthogonal").pooled.solution
    fitted = _auto(moments, None)
    yield "orthogonal_auto", fitted
    yield "stepped", fitted + _step(turned, counts, fitted)
    # Rows of H itself: a sketch is scaled by √(p/m), one with all rows is not.
    scales = np.sqrt([min(size / count, 1.0) for count in counts])
    rows = [scale * matrix for scale, matrix in zip(scales, turned, strict=True)]
    bounds, prices = known
    bound, weighted, attaining = _best(rows, parts, pooled, noise)
    bounds.append(bound / pooled.loss)
    prices.append(_price(rows, pooled, noise) / pooled.loss)
    yield "known_noise", weighted
    yield "attaining", attaining


def _auto(moments: theory.SketchMoments, taken: list[str] | None) -> FloatArray:
    choice = theory.choose_stack(moments)
    if taken is not None:
        taken.append(choice.taken)
    counts = moments.row_counts.astype(int).tolist()
    fit = theory.stacked_fit(moments.sketches, counts, moments.law, choice.weights).pooled.solution
    average = row_shares(moments) @ moments.coefficients
    return np.asarray((1 - choice.share) * fit + choice.share * average)


def _best(
    rows: list[FloatArray], parts: list[theory.PartitionMoments], pooled: theory.PartitionMoments, noise: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Return the least expected loss of an unbiased linear fit to these rows, and two fits that know σ_i².

    The first is generalised least squares a_w; the second knows G as well and attains the bound. In coordinates in
    which G is the identity it is `a_w + Σ (H_iX_i)ᵀ(H_iy_i − H_iX_i a_w)`.
    """
    features = [matrix[:, :-1] @ pooled.inverse_root for matrix in rows]
    grams = [(part.root @ pooled.inverse_root).T @ (part.root @ pooled.inverse_root) for part in parts]
    scaled = [matrix / math.sqrt(variance) for matrix, variance in zip(features, noise, strict=True)]
    targets = [matrix[:, -1] / math.sqrt(variance) for matrix, variance in zip(rows, noise, strict=True)]
    weighted = np.linalg.lstsq(np.vstack(scaled), np.concatenate(targets))[0]
    step = sum(x.T @ (matrix[:, -1] - x @ weighted) for x, matrix in zip(features, rows, strict=True))
    bound = theory.least_orthogonal_excess_loss(features, grams, noise)
    return bound, pooled.inverse_root @ weighted, pooled.inverse_root @ (weighted + step)


def _step(sketches: list[FloatArray], counts: list[int], fitted: FloatArray) -> FloatArray:
    """Return the step from a fit of the true coefficients towards exact least squares, as far as the sketches show it.

    `Ĝ⁻¹ Σ (H_iX_i)ᵀ(H_iy_i − H_iX_i a)`, Ĝ by the sketches: a row of theirs is one of H_i times √(p_i/m_i).
    """
    gram = sum(matrix[:, :-1].T @ matrix[:, :-1] for matrix in sketches)
    moved = sum(
        min(len(matrix) / count, 1.0) * matrix[:, :-1].T @ (matrix[:, -1] - matrix[:, :-1] @ fitted)
        for matrix, count in zip(sketches, counts, strict=True)
    )
    return np.asarray(np.linalg.lstsq(np.asarray(gram), np.asarray(moved))[0])


def _price(rows: list[FloatArray], pooled: theory.PartitionMoments, noise: FloatArray) -> float:
    """Return what estimating σ_i² costs; nothing where all are the same, and are taken for it."""
    if np.ptp(noise) == 0:
        return 0.0
    features = [matrix[:, :-1] @ pooled.inverse_root for matrix in rows]
    return theory.price_of_estimated_noise(features, np.eye(pooled.rank), noise)
