"""Do certificates hold on tables that are hostile to them: whole fits, from rows to certificate, with many seeds.

    python -m benchmarks.coverage_fits [--draws 200]

The other tables draw sketches in law. Here every number goes through the product: columns are read, shifted and
sketched, and the certificate of each fit is compared with what that fit loses against the exact one.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage import LEVELS, SEED, Coverage, table
from partsketch import PartsketchWarning, SketchedRegression

FloatArray = NDArray[np.float64]
Table = tuple[FloatArray, FloatArray, FloatArray]
ROWS, PARTITIONS, SIZE = 1600, 8, 20
METHODS = ("partition", "stack")


def hostile_tables(seed: int = SEED) -> dict[str, Table]:
    """Return features, target and weights of each table."""
    rng = np.random.default_rng(seed)
    plain, noise, one = rng.standard_normal((ROWS, 3)), rng.standard_normal(ROWS), np.ones(ROWS)
    signal = 1 + plain @ np.array([1.0, -2.0, 0.5])
    target, numbers = signal + noise, np.arange(ROWS)
    partition = numbers // (ROWS // PARTITIONS)
    order = np.argsort(target)
    rare, huge, singular = np.isin(numbers, (5, 50, 150)) * 1.0, plain.copy(), plain.copy()
    huge[37] *= 1e6
    singular[partition % 2 == 1, 2] = 0.0
    uneven = rng.exponential(size=ROWS) ** 2 * (numbers % 7 > 0)
    return {
        "a column of zeros": (np.column_stack([plain, 0 * one]), target, one),
        "a constant, 1.7 · 10¹⁸": (np.column_stack([plain, 1.7e18 * one]), target, one),
        "an identifier from 10¹⁶ on": (np.column_stack([1e16 + 2 * numbers, plain]), target, one),
        "a level of three rows": (np.column_stack([plain, rare]), target + 3 * rare, one),
        "sorted by the target": (plain[order], target[order], one),
        "one huge row": (huge, 1 + huge @ np.array([1.0, -2.0, 0.5]) + noise, one),
        "all noise in one partition": (plain, signal + noise * np.where(partition == 3, 10, 1e-3), one),
        "one target of a million": (plain, target + 1e6 * (numbers == 700), one),
        "Cauchy noise": (plain, signal + rng.standard_cauchy(ROWS), one),
        "weights, some zero": (plain, target, uneven),
        "singular partitions": (singular, target, one),
    }


def measure_fits(name: str, data: Table, method: str, draws: int) -> Coverage:
    """Fit with many seeds and compare certificates with losses."""
    features, target, weights = data
    exact = SketchedRegression("exact").fit(features, target, sample_weight=weights).predict(features)
    minimal = float(weights @ (target - exact) ** 2)
    lost, certified = np.empty(draws), np.empty((draws, 2))
    inside = np.zeros((draws, 2 * len(LEVELS)))
    for draw in range(draws):
        fit = SketchedRegression(method, n_partitions=PARTITIONS, sketch_size=SIZE, random_state=SEED + draw)
        fit.fit(features, target, sample_weight=weights)
        lost[draw] = weights @ (fit.predict(features) - exact) ** 2
        certificate = fit.certificate_
        certified[draw] = certificate.excess_loss, certificate.relative_excess_loss
        for place, (relative, level) in enumerate([(r, level) for r in (False, True) for level in LEVELS]):
            low, high = certificate.interval(level, relative)
            inside[draw, place] = low <= lost[draw] / (minimal if relative else 1.0) <= high
    mean, shares = float(lost.mean()), inside.mean(axis=0)
    return Coverage(
        design=name,
        sketch_size=SIZE,
        excess=mean / minimal,
        certified=float(certified[:, 0].mean()) / mean,
        certified_error=float(np.std(certified[:, 0] - lost)) / mean / np.sqrt(draws),
        certified_relative=float(certified[:, 1].mean()) * minimal / mean,
        covered=tuple(float(share) for share in shares[: len(LEVELS)]),
        covered_relative=tuple(float(share) for share in shares[len(LEVELS) :]),
        draws=draws,
    )


def fit_rows(draws: int) -> Iterator[Coverage]:
    """Yield a line for every table and method."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PartsketchWarning)
        for name, data in hostile_tables().items():
            for method in METHODS:
                yield measure_fits(f"{name}: {method}", data, method, draws)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=200)
    print(table(list(fit_rows(parser.parse_args().draws))))


if __name__ == "__main__":
    main()
