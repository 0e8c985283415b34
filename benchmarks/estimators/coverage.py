"""How often intervals of weighted stacks hold what they are for: loss, true coefficients, exact least squares."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.estimators.designs import COLUMNS, SIZE
from benchmarks.problem import FloatArray
from partsketch import theory
from partsketch.sketches.orthogonal import orthogonal_rows

LEVELS = (0.9, 0.95, 0.99)

#: Draws from the same rows: coverage is over rows and sketches.
_SAME_ROWS = 5

_SEED = 20261122


@dataclass(frozen=True)
class Setting:
    """Partitions of 500 rows with noise from 0.2 to 4, or all but one of 100 rows and that of 3,000."""

    name: str
    count: int
    size: int
    kind: str
    noise: str

    def draw(self, rng: np.random.Generator) -> list[theory.PartitionMoments]:
        rows = np.full(self.count, 500)
        if "sizes" in self.name:
            rows = np.r_[np.full(self.count - 1, 100), 3000]
        noise = np.geomspace(0.2, 4.0, self.count) if "noise" in self.name else np.ones(self.count)
        parts = []
        for count, level in zip(rows, rng.permutation(noise), strict=True):
            X = rng.standard_normal((count, COLUMNS))
            parts.append(theory.PartitionMoments.from_rows(X, X.sum(axis=1) + level * rng.standard_normal(count)))
        return parts


def settings(noise: str) -> Iterator[Setting]:
    """Yield what is simulated, with noise that is "measured" on the rows or "estimated" from the sketches."""
    for kind in ("gaussian", "orthogonal"):
        yield Setting("uneven sizes", 5, SIZE, kind, noise)
        for count, size in ((5, SIZE), (5, COLUMNS + 4), (20, SIZE)):
            yield Setting("unlike noise", count, size, kind, noise)
        yield Setting("uneven sizes, unlike noise", 5, SIZE, kind, noise)


def run(draws: int, noise: str) -> list[dict[str, Any]]:
    """Return the coverage of every setting, of fits that were weighted by information."""
    found = []
    for setting in settings(noise):
        found.append(_covered(setting, draws))
        print(
            f"estimators / coverage, {setting.name}, k = {setting.count}, {setting.kind}, {setting.noise}: {found[-1]}",
            flush=True,
        )
    return found


def _covered(setting: Setting, draws: int) -> dict[str, Any]:
    rng = np.random.default_rng(_SEED)
    losses, claims, held = [], [], []
    for number in range(draws):
        if number % _SAME_ROWS == 0:
            parts = setting.draw(rng)
            pooled = theory.pooled_moments(parts)
        one = _fitted(setting, parts, rng)
        if one is None:
            continue
        away = pooled.root @ (one.solution - pooled.solution)
        losses.append(float(away @ away) / pooled.loss)
        claim = theory.certify_stacked(one)
        assert claim.confidence is not None
        claims.append(claim.excess_loss / pooled.loss)
        inside = [low <= away @ away <= high for low, high in map(claim.confidence.interval, LEVELS)]
        truth = _inside(one, theory.stacked_covariance(one), np.ones(COLUMNS))
        exact = _inside(one, theory.stacked_covariance_around_exact(one), pooled.solution)
        held.append([inside, truth, exact])
    shares = np.mean(np.array(held, dtype=float), axis=0)
    return {
        "name": setting.name, "k": setting.count, "sketch_size": setting.size, "kind": setting.kind,
        "noise": setting.noise, "fits": len(losses), "loss": float(np.mean(losses)),
        "certified": float(np.mean(claims) / np.mean(losses)),
        "certified_error": float(np.std(losses) / np.mean(losses) / math.sqrt(len(losses))),
        **dict(zip(("of_loss", "of_truth", "of_exact"), shares.tolist(), strict=True)),
    }  # fmt: skip


def _fitted(
    setting: Setting, parts: list[theory.PartitionMoments], rng: np.random.Generator
) -> theory.StackedFit | None:
    """Return the stack with `weighting="auto"`; None where it was not weighted by information."""
    counts, size = [part.row_count for part in parts], setting.size
    if setting.kind == "gaussian":
        rows = [rng.standard_normal((size, len(part.factor))) @ part.factor / math.sqrt(size) for part in parts]
    else:
        rows = [orthogonal_rows(part.factor, size, part.row_count, int(rng.integers(2**60))) for part in parts]
    moments = theory.sketch_moments(rows, counts, sketch=setting.kind)
    measured = None
    if setting.noise == "measured":
        measured = theory.MeasuredNoise([part.loss for part in parts], [part.row_count - part.rank for part in parts])
    choice = theory.choose_stack(moments, measured=measured)
    if choice.taken != "information":
        return None
    return theory.stacked_fit(moments.sketches, counts, setting.kind, choice.weights, choice.following, measured)


def _inside(fit: theory.StackedFit, covariance: theory.CoefficientCovariance, centre: FloatArray) -> list[float]:
    """Return the share of coefficients that the intervals of each level hold."""
    found = []
    for level in LEVELS:
        low, high = theory.confidence_intervals(fit.solution, covariance, level).T
        found.append(float(np.mean((low <= centre) & (centre <= high))))
    return found
