"""Ways to estimate the noise of partitions from their sketches, and how far each leaves the fit from the best one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.estimators.designs import SIZE, Design, synthetic
from benchmarks.estimators.noise_price import Sums
from benchmarks.problem import FloatArray
from partsketch import theory
from partsketch.sketches.orthogonal import orthogonal_rows

_SEED, _SAME_ROWS = 20261124, 10

#: Logarithms of σ² on which laws of the noise are laid out; the designs have −3.2 to 2.8.
_GRID = np.linspace(-8.0, 8.0, 321)

#: How often noise is found again from the residuals of the fit with the weights before.
_ROUNDS = 4

#: From residual sums of squares of the sketches and their degrees of freedom to weights.
Rule = Callable[[FloatArray, FloatArray], FloatArray]


def run(draws: int) -> list[dict[str, Any]]:
    """Return, for unlike noise and k = 5, 20, the loss of every rule over the bound."""
    found = []
    for k in (5, 20):
        for design in synthetic(k, lambda name: name == "unlike noise"):
            found.append({"name": design.name, "k": k, "draws": draws, "over": _measured(design, draws)})
            print(f"estimators / rules for noise, k = {k}: {found[-1]['over']}", flush=True)
    return found


def _measured(design: Design, draws: int) -> dict[str, list[float]]:
    rng = np.random.default_rng(_SEED)
    away: dict[str, list[float]] = {}
    bounds = []
    for number in range(draws):
        if number % _SAME_ROWS == 0:
            parts, noise = design.make(rng)
            pooled = theory.pooled_moments(parts)
            grams = [(part.root @ pooled.inverse_root).T @ (part.root @ pooled.inverse_root) for part in parts]
        counts = [part.row_count for part in parts]
        turned = [orthogonal_rows(part.factor, SIZE, part.row_count, int(rng.integers(2**60))) for part in parts]
        moments = theory.sketch_moments(turned, counts, sketch="orthogonal")
        scaled = [math.sqrt(SIZE / count) * matrix for count, matrix in zip(counts, turned, strict=True)]
        rows = [np.column_stack([matrix[:, :-1] @ pooled.inverse_root, matrix[:, -1]]) for matrix in scaled]
        sums = Sums(rows)
        bounds.append(theory.least_orthogonal_excess_loss([row[:, :-1] for row in rows], grams, noise) / pooled.loss)
        ends = (float(np.log(noise.min())), float(np.log(noise.max())))
        weights = {name: _weights(sums, rule) for name, rule in _rules(ends).items()}
        # Rows of a sketch are √(p/m) times those of H.
        weights["ours"] = theory.information_weights(moments) * np.array(counts) / SIZE
        # One number more from each site, of its own exact fit: no sketch tells it.
        weights["told by the sites"] = np.array([(part.row_count - part.rank) / part.loss for part in parts])
        best = sums.best(noise)[2]
        for name, values in weights.items():
            step = sums.best(1 / values)[2] - best
            away.setdefault(name, []).append(float(step @ step) / pooled.loss)
    least = float(np.mean(bounds))
    return {
        name: [1 + float(np.mean(values)) / least, float(np.std(values)) / least / math.sqrt(draws)]
        for name, values in away.items()
    }


def _weights(sums: Sums, rule: Rule) -> FloatArray:
    weights = np.ones(len(sums.sizes))
    for _ in range(_ROUNDS):
        gram, solution, _ = sums.best(1 / weights)
        leverages = weights * np.einsum("iab,ba->i", sums.grams, np.linalg.inv(gram))
        weights = rule(sums.losses(solution), sums.sizes - leverages)
    return weights


def _rules(ends: tuple[float, float]) -> dict[str, Rule]:
    inside = (ends[0] - 1e-9 <= _GRID) & (ends[1] + 1e-9 >= _GRID)
    return {
        "each by itself": lambda losses, freedom: freedom / losses,
        "normal law": lambda losses, freedom: _mean(_likelihood(losses, freedom) * _normal(losses, freedom)),
        "any law": lambda losses, freedom: _mean(_likelihood(losses, freedom) * _any(losses, freedom)),
        "even between ends": _even,
        "even between the true ends": lambda losses, freedom: _mean(_likelihood(losses, freedom) * inside),
    }


def _likelihood(losses: FloatArray, freedom: FloatArray) -> FloatArray:
    """Return the likelihood of every log σ² on the grid for each sketch, the largest one."""
    logs = -freedom[:, None] / 2 * _GRID - losses[:, None] / 2 * np.exp(-_GRID)
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))


def _mean(posterior: FloatArray) -> FloatArray:
    """Return the posterior means of 1/σ²."""
    return np.asarray(posterior @ np.exp(-_GRID) / posterior.sum(axis=1))


def _normal(losses: FloatArray, freedom: FloatArray) -> FloatArray:
    """Fit a normal law of the logarithms by maximum likelihood (EM)."""
    likelihood, centre, spread = _likelihood(losses, freedom), 0.0, 4.0
    for _ in range(60):
        law = np.exp(-((_GRID - centre) ** 2) / 2 / spread)
        shares = likelihood * law
        together = np.mean(shares / shares.sum(axis=1, keepdims=True), axis=0)
        centre = float(together @ _GRID)
        spread = max(float(together @ (_GRID - centre) ** 2), 1e-3)
    return np.asarray(np.exp(-((_GRID - centre) ** 2) / 2 / spread))


def _any(losses: FloatArray, freedom: FloatArray) -> FloatArray:
    """Fit any law of the logarithms by maximum likelihood (Kiefer and Wolfowitz; 300 steps of EM)."""
    likelihood, law = _likelihood(losses, freedom), np.full(len(_GRID), 1 / len(_GRID))
    for _ in range(300):
        shares = likelihood * law
        law = np.mean(shares / shares.sum(axis=1, keepdims=True), axis=0)
    return np.asarray(law)


def _even(losses: FloatArray, freedom: FloatArray) -> FloatArray:
    """Return posterior means of 1/σ² if logarithms are even between two ends, over which is averaged as well."""
    likelihood, logs = _likelihood(losses, freedom), np.log(losses / freedom)
    sums = np.pad(np.cumsum(likelihood, axis=1), ((0, 0), (1, 0)))
    inverse = np.pad(np.cumsum(likelihood * np.exp(-_GRID), axis=1), ((0, 0), (1, 0)))
    lows = np.arange(*np.searchsorted(_GRID, [logs.min() - 1.2, logs.min() + 0.8]))
    highs = np.arange(*np.searchsorted(_GRID, [logs.max() - 0.8, logs.max() + 1.2]))
    lengths = highs[None, :] - lows[:, None] + 1
    mass = np.maximum(sums[:, highs + 1][:, None, :] - sums[:, lows][:, :, None], 1e-300)
    # Flat in place and in the logarithm of the length.
    chance = np.log(mass).sum(axis=0) - (len(losses) + 1) * np.log(np.maximum(lengths, 1))
    chance = np.where(lengths > 3, np.exp(chance - chance[lengths > 3].max()), 0.0)
    means = (inverse[:, highs + 1][:, None, :] - inverse[:, lows][:, :, None]) / mass
    return np.asarray(np.tensordot(means, chance / chance.sum(), axes=2))


def table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of the table."""
    names = list(rows[0]["over"])
    yield "| partitions | k | draws | " + " | ".join(names) + " |"
    yield "|---|---:|---:|" + "---:|" * len(names)
    for row in rows:
        cells = [f"{value:.3f} ± {error:.3f}" for value, error in row["over"].values()]
        yield f"| {row['name']} | {row['k']} | {row['draws']} | " + " | ".join(cells) + " |"
