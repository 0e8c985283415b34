"""Does the certificate of an averaged fit hold: its mean against the truth, and how often its intervals cover.

    python -m benchmarks.coverage [--draws 2000] [--only alike] [--json FILE]

Each line draws the Gaussian sketches of data sets of one design many times, exactly in law and without touching rows
again, makes the average and its certificate each time, and compares with what that very average loses. A single data
set is no more than an example: shares differ by a point or two between them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from partsketch import theory
from partsketch.simulate import draw_sketches
from partsketch.theory.many_moments import many_moments
from partsketch.theory.sketch_moments import moments_of_parts

FloatArray = NDArray[np.float64]
Partition = tuple[FloatArray, FloatArray]
LEVELS = (0.90, 0.95, 0.99)
#: Shares of fewer draws say nothing: the standard error of one of 90% would be above 4%.
_FEWEST_DRAWS = 50
COLUMNS, PARTITIONS, ROWS = 6, 8, 200
#: Of data sets and sketches: never looked at while the law of the intervals was made.
SEED = 141421
#: Data sets of a line; each has as many draws.
DATA_SETS = 20
#: Lines that are measured at once, each in a process of its own: they do not depend on one another.
JOBS = 4


@dataclass(frozen=True)
class Coverage:
    """One line of the table.

    Attributes
    ----------
    design : str
        What the partitions are like, and how they are averaged.
    sketch_size : int
        Rows m of each sketch.
    excess : float
        Mean excess loss of the averages, in units of the minimal loss.
    certified : float
        Mean certificate divided by the mean excess loss; one when unbiased.
    certified_error : float
        Standard error of that ratio.
    certified_relative : float
        The same of the relative excess loss.
    covered, covered_relative : tuple of float
        Share of intervals of 90, 95 and 99% that hold the excess loss of their fit, and the relative one.
    draws : int
        Sets of sketches; the standard error of a coverage of 95% is `√(0.0475/draws)`.
    """

    design: str
    sketch_size: int
    excess: float
    certified: float
    certified_error: float
    certified_relative: float
    covered: tuple[float, ...]
    covered_relative: tuple[float, ...]
    draws: int


def alike(rng: np.random.Generator) -> list[Partition]:
    """Partitions with one coefficient vector and one noise variance."""
    return _partitions(rng)


def unlike_coefficients(rng: np.random.Generator) -> list[Partition]:
    """Coefficients that differ between partitions by half the noise's standard deviation."""
    return _partitions(rng, scatter=0.5)


def unlike_noise(rng: np.random.Generator) -> list[Partition]:
    """Noise with standard deviations from 0.2 to 4."""
    return _partitions(rng, noise=np.geomspace(0.2, 4, PARTITIONS))


def one_noisy(rng: np.random.Generator) -> list[Partition]:
    """One of four partitions with ten times the noise of the others."""
    return _partitions(rng, noise=np.array([10.0, 1.0, 1.0, 1.0]), rows=[ROWS] * 4)


def unlike_both(rng: np.random.Generator) -> list[Partition]:
    """Coefficients and noise that differ."""
    return _partitions(rng, scatter=0.5, noise=np.geomspace(0.2, 4, PARTITIONS))


def heavy_tails(rng: np.random.Generator) -> list[Partition]:
    """Features with 2.5 degrees of freedom and noise with 2."""
    return _partitions(rng, tails=True)


def uneven(rng: np.random.Generator) -> list[Partition]:
    """Partitions of 60 to 1,600 rows with coefficients that differ."""
    return _partitions(rng, scatter=0.3, rows=[int(60 * 1.6**i) for i in range(PARTITIONS)])


def singular(rng: np.random.Generator) -> list[Partition]:
    """Indicator columns that are zero in some partitions."""
    parts = _partitions(rng, scatter=0.3)
    for index, (X, _) in enumerate(parts):
        X[:, 1 + index % 3] = 0.0 if index % 2 else X[:, 1 + index % 3]
    return [(X, X @ np.arange(1.0, COLUMNS + 1) + rng.standard_normal(len(X))) for X, _ in parts]


def sorted_by_target(rng: np.random.Generator) -> list[Partition]:
    """Rows in the order of the target, as in a file that somebody sorted."""
    parts = _partitions(rng)
    X, y = np.vstack([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    order = np.argsort(y)
    return list(zip(np.split(X[order], PARTITIONS), np.split(y[order], PARTITIONS), strict=True))


def _partitions(
    rng: np.random.Generator,
    scatter: float = 0.0,
    noise: FloatArray | None = None,
    tails: bool = False,
    rows: list[int] | None = None,
) -> list[Partition]:
    common = rng.standard_normal(COLUMNS)
    partitions = []
    for index, count in enumerate(rows or [ROWS] * PARTITIONS):
        X = rng.standard_t(2.5, (count, COLUMNS)) if tails else rng.standard_normal((count, COLUMNS))
        X[:, 0] = 1.0
        errors = rng.standard_t(2, count) if tails else rng.standard_normal(count)
        coefficients = common + scatter * rng.standard_normal(COLUMNS)
        partitions.append((X, X @ coefficients + errors * (1.0 if noise is None else noise[index])))
    return partitions


DESIGNS: dict[str, Callable[[np.random.Generator], list[Partition]]] = {
    "alike": alike,
    "unlike coefficients": unlike_coefficients,
    "unlike noise": unlike_noise,
    "unlike coefficients and noise": unlike_both,
    "heavy tails": heavy_tails,
    "uneven sizes": uneven,
    "singular partitions": singular,
    "sorted by the target": sorted_by_target,
}


def measure(
    name: str, partitions: list[Partition], sketch_size: int, draws: int, seed: int = 1, weights: str = "equal"
) -> Coverage:
    """Draw the sketches of these partitions many times and compare certificates with losses.

    Parameters
    ----------
    name : str
        Of the design, for the table.
    partitions : list of pairs (X_i, y_i)
        The data.
    sketch_size : int
        Rows m of each sketch.
    draws, seed : int
        Sets of sketches, and the seed of all.
    weights : str
        "equal", "given" (in proportion to 1, 2, …, k) or "inverse variance" (estimated from each set of sketches).

    Returns
    -------
    Coverage
        One line of the table.
    """
    rng = np.random.default_rng(seed)
    exact = theory.moments_of(partitions)
    pooled = theory.pooled_moments(exact)
    counts = [part.row_count for part in exact]
    # Those of all draws are solved together, which is the same but for rounding.
    drawn = (list(draw_sketches(part, sketch_size, draws, rng)) for part in exact)
    sets = zip(*(many_moments(factors, [sketch_size] * draws) for factors in drawn), strict=True)
    excess, certified, relative = np.empty(draws), np.empty(draws), np.empty(draws)
    inside, inside_relative = np.zeros((draws, len(LEVELS))), np.zeros((draws, len(LEVELS)))
    for number, sketches in enumerate(sets):
        moments = moments_of_parts(sketches, counts, "gaussian")
        chosen = _weights(weights, moments)
        certificate = theory.certify_partition(moments, chosen)
        lost = pooled.root @ (chosen.values @ moments.coefficients - pooled.solution)
        excess[number] = lost @ lost
        certified[number], relative[number] = certificate.excess_loss, certificate.relative_excess_loss
        inside[number] = _holds(certificate.confidence, excess[number])
        inside_relative[number] = _holds(certificate.relative_confidence, excess[number] / pooled.loss)
    mean = float(excess.mean())
    return Coverage(
        design=name if weights == "equal" else f"{name}, {weights} weights",
        sketch_size=sketch_size,
        excess=mean / pooled.loss,
        certified=float(certified.mean()) / mean,
        certified_error=float(np.std(certified - excess)) / mean / np.sqrt(draws),
        certified_relative=float(relative.mean()) * pooled.loss / mean,
        covered=tuple(float(share) for share in inside.mean(axis=0)),
        covered_relative=tuple(float(share) for share in inside_relative.mean(axis=0)),
        draws=draws,
    )


def _weights(kind: str, moments: theory.SketchMoments) -> theory.SketchWeights:
    if kind == "inverse variance":
        return theory.sketch_weights(moments)
    count = len(moments.sketches)
    rising = np.arange(1.0, count + 1)
    return theory.given_weights(moments, rising / rising.sum() if kind == "given" else None)


def _holds(distribution: theory.ConfidenceDistribution | None, value: float) -> list[bool]:
    assert distribution is not None
    ends = [distribution.interval(level) for level in LEVELS]
    return [low <= value <= high for low, high in ends]


def coverage_rows(draws: int = 2000, seed: int = SEED, only: str = "") -> Iterator[Coverage]:
    """Yield all lines of the table, the same for the same arguments.

    Parameters
    ----------
    draws : int
        Sets of sketches per line.
    seed : int
        Seed of data and sketches.
    only : str
        Of the lines only those with this in their design.

    Yields
    ------
    Coverage
        For every design at m = d + 4, d + 8 and 4d, then for other weights and a single partition.
    """
    cases = [(name, name, "equal") for name in (*DESIGNS, "one noisy partition")]
    cases += [("alike", "alike", "inverse variance"), ("unlike noise", "unlike noise", "inverse variance")]
    cases += [("uneven sizes", "uneven sizes", "given"), ("one partition", "alike", "equal")]
    cases = [case for case in cases if only in f"{case[0]}, {case[2]} weights"]
    lines = [(*case, size, draws, seed) for case in cases for size in (COLUMNS + 4, COLUMNS + 8, 4 * COLUMNS)]
    with ProcessPoolExecutor(JOBS, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_line, lines)


def _line(line: tuple[str, str, str, int, int, int]) -> Coverage:
    name, design, weights, size, draws, seed = line
    make = one_noisy if design == "one noisy partition" else DESIGNS[design]
    found = []
    for number in range(DATA_SETS):
        partitions = make(np.random.default_rng([seed, number]))
        chosen = partitions[:1] if name == "one partition" else partitions
        found.append(measure(name, chosen, size, max(draws // DATA_SETS, 2), seed + number, weights))
    return together(found)


def together(found: list[Coverage]) -> Coverage:
    """Return one line for several data sets with as many draws each."""
    excess = np.array([one.excess for one in found])
    shares = excess / excess.sum()
    errors = np.array([one.certified_error for one in found])
    return replace(
        found[0],
        excess=float(excess.mean()),
        certified=float(shares @ [one.certified for one in found]),
        certified_error=float(np.linalg.norm(shares * errors)),
        certified_relative=float(shares @ [one.certified_relative for one in found]),
        covered=tuple(np.mean([one.covered for one in found], axis=0).tolist()),
        covered_relative=tuple(np.mean([one.covered_relative for one in found], axis=0).tolist()),
        draws=sum(one.draws for one in found),
    )


def table(rows: list[Coverage]) -> str:
    """Return the lines as a Markdown table."""
    lines = [
        "| partitions | m | loses (of ℓ) | certified / true | relative | 90% | 95% | 99% | relative 90% | 95% | 99% |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if row.draws < _FEWEST_DRAWS:
            lines.append(f"| {row.design} | {row.sketch_size} |" + " – |" * 9)
            continue
        shares = " | ".join(f"{100 * share:.1f}" for share in (*row.covered, *row.covered_relative))
        lines.append(
            f"| {row.design} | {row.sketch_size} | {row.excess:.3f} | {row.certified:.3f} ± {row.certified_error:.3f} "
            f"| {row.certified_relative:.3f} | {shares} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Print the table, and write it as JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--only", default="", help="only lines with this in their design")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    for row in coverage_rows(arguments.draws, only=arguments.only):
        rows.append(row)
        print(table([row]).splitlines()[-1], file=sys.stderr, flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()
