"""The bound B'_θ of Remark 3.5 against B_θ and against quantiles over explicit sketches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partsketch import theory
from partsketch.common.linalg.blas import one_thread_each
from partsketch.paper.designs import synthetic_design
from partsketch.paper.explicit_sketches import FloatArray, in_order
from partsketch.paper.results import Row, Tables
from partsketch.paper.settings import derive_seed


@dataclass(frozen=True)
class BoundSettings:
    """Rows, columns, partitions, sketch sizes, probability of failure, number of draws, and the seed."""

    n: int
    d: int
    k: int
    sketch_sizes: tuple[int, ...]
    delta: float
    draws: int
    seed: int


def bound_experiment(settings: BoundSettings) -> Tables:
    """Draw sketches; given each, the expectation over the noise of the out-of-sample excess loss is a trace.

    Given S the estimator is `α + (1/k) Σ M_i E_i`, so the expected excess over exact least squares on fresh targets is
    `σ² ((1/k²) Σ tr(G M_i M_iᵀ) − d)`: no noise has to be drawn.

    Returns
    -------
    tables
        "sizes": one row per m with formula, bound and quantiles over the sketches. "ratios": B'_θ/B_θ for p ≫ m ≫ d,
        computed from the formulas alone.
    """
    n, d, k = settings.n, settings.d, settings.k
    X = synthetic_design("iid", n, d, np.random.default_rng(settings.seed))
    p = n // k
    parts = [X[i * p : (i + 1) * p] for i in range(k)]
    divergence = theory.divergence([part.T @ part for part in parts])

    def work(index: int) -> Row:
        m = settings.sketch_sizes[index]
        seed = derive_seed(settings.seed, m)
        values = _expected_losses(X, parts, m, settings.draws, np.random.default_rng(seed))
        bound = theory.high_probability_excess_loss(n, d, m, k, 1.0, divergence, settings.delta)
        expected = theory.expected_partition_excess_loss(n, d, m, k, 1.0, divergence)
        lower, median, upper = np.quantile(values, [settings.delta, 0.5, 1 - settings.delta])
        return {
            "sketch_size": m,
            "n": n,
            "d": d,
            "k": k,
            "delta": settings.delta,
            "expected": expected,
            "bound": bound,
            "ratio": bound / expected,
            "lower_quantile": float(lower),
            "median": float(median),
            "upper_quantile": float(upper),
            "mean": float(values.mean()),
            "share_below_bound": float(np.mean(values <= bound)),
            "draws": settings.draws,
            "seed": seed,
        }

    with one_thread_each():
        sizes = list(in_order(work, len(settings.sketch_sizes)))
    return {"sizes": sizes, "ratios": _ratios(d, k, settings.delta)}


def _expected_losses(
    X: FloatArray, parts: list[FloatArray], size: int, draws: int, rng: np.random.Generator
) -> FloatArray:
    root = np.linalg.qr(X, mode="r")
    values = np.full(draws, -float(X.shape[1]))
    for draw in range(draws):
        for part in parts:
            S = rng.standard_normal((size, len(part)))
            features = S @ part
            inverse = np.linalg.solve(features.T @ features, features.T) @ S
            values[draw] += float(np.sum((root @ inverse) ** 2)) / len(parts) ** 2
    return values


def _ratios(d: int, k: int, delta: float) -> list[Row]:
    """B'_θ/B_θ at D = d for growing m/d and p/m: the limit in which the paper calls it a proxy."""
    rows: list[Row] = []
    for rows_per_sketch_row in (10, 100, 1000, 10_000):
        for exponent in range(2, 8):
            m = d * 10**exponent // 10
            n = k * m * rows_per_sketch_row
            if m < theory.smallest_sketch_size(d, k, delta):
                continue
            bound = theory.high_probability_excess_loss(n, d, m, k, 1.0, float(d), delta)
            expected = theory.expected_partition_excess_loss(n, d, m, k, 1.0, float(d))
            entry = {"rows_per_sketch_row": rows_per_sketch_row, "sketch_size": m, "sketch_rows_per_column": m / d}
            rows.append({**entry, "bound": bound, "expected": expected, "ratio": bound / expected})
    return rows
