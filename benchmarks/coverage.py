"""Does the certificate of an averaged fit hold: its mean against the truth, and how often its intervals cover.

    python -m benchmarks.coverage [--draws 5000] [--only alike] [--jobs 4] [--json FILE]

Each line draws the Gaussian sketches of data sets of one design many times, exactly in law and without touching rows
again, makes the average and its certificate each time, and compares with what that very average loses. A single data
set is no more than an example: shares differ by a point or two between them, so there are many, and standard errors
come from how they differ.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from unittest.mock import patch

import numpy as np

from benchmarks.coverage_designs import COLUMNS, DESIGNS, FloatArray, Partition, one_noisy
from partsketch import theory
from partsketch.simulate import draw_sketches
from partsketch.theory import excess_draws
from partsketch.theory.many_moments import many_moments
from partsketch.theory.sketch_moments import moments_of_parts

LEVELS = (0.90, 0.95, 0.99)
#: Shares of fewer draws say nothing: the standard error of one of 90% would be above 4%.
_FEWEST_DRAWS = 50
#: Of data sets and sketches: never looked at while the law of the intervals was made.
SEED = 173205
#: Draws of one data set: few, so that a line has many data sets.
DRAWS_OF_ONE = 50
#: Draws behind an interval where thousands are made, a quarter of those of a fit, each time from a stream of their
#: own: what chance does to the ends is then as often too much as too little, and a share is as well known.
INNER_DRAWS = 2048


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
        Sets of sketches; the standard error of a coverage of 95% is `√(0.0475/draws)` for a single data set.
    errors : tuple of float
        Standard errors of all shares by how data sets differ; empty for a single one.
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
    errors: tuple[float, ...] = ()


def measure(
    name: str,
    partitions: list[Partition],
    sketch_size: int,
    draws: int,
    seed: int = 1,
    weights: str = "equal",
    inner_draws: int | None = None,
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
    inner_draws : int, optional
        Draws behind an interval, each time other ones; those of a fit by default.

    Returns
    -------
    Coverage
        One line of the table.
    """
    rng = np.random.default_rng(seed)
    exact = theory.moments_of(partitions)
    pooled = theory.pooled_moments(exact)
    counts = [part.row_count for part in exact]
    sets = _sketch_sets([draw_sketches(part, sketch_size, draws, rng) for part in exact], sketch_size)
    excess, certified, relative = np.empty(draws), np.empty(draws), np.empty(draws)
    inside, inside_relative = np.zeros((draws, len(LEVELS))), np.zeros((draws, len(LEVELS)))
    for number, sketches in enumerate(sets):
        moments = moments_of_parts(sketches, counts, "gaussian")
        chosen = _weights(weights, moments)
        with _inner_draws(inner_draws, seed * draws + number):
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


def _sketch_sets(drawn: list[FloatArray], rows: int) -> Iterator[list[theory.PartitionMoments]]:
    """Yield the sketches of all partitions, draw by draw; all are solved at once, the same but for rounding."""
    factors = [factor for factors in zip(*drawn, strict=True) for factor in factors]
    read = many_moments(factors, [rows] * len(factors))
    return (read[start : start + len(drawn)] for start in range(0, len(read), len(drawn)))


def _inner_draws(count: int | None, seed: int) -> AbstractContextManager[object]:
    if count is None:
        return nullcontext()
    return patch.multiple(excess_draws, DRAWS=count, _SEED=seed)


def _holds(distribution: theory.ConfidenceDistribution | None, value: float) -> list[bool]:
    assert distribution is not None
    ends = [distribution.interval(level) for level in LEVELS]
    return [low <= value <= high for low, high in ends]


#: Lines: design, its data, weights. What the intervals are promised for, and more.
PROMISED = [(name, name, "equal") for name in (*DESIGNS,)[:5]]
OTHERS = [(name, name, "inverse variance") for name in ("alike", "unlike noise")]
OTHERS += [(name, name, "equal") for name in (*(*DESIGNS,)[5:], "one noisy partition")]
OTHERS += [("uneven sizes", "uneven sizes", "given"), ("one partition", "alike", "equal")]


def coverage_rows(draws: int = 5000, only: str = "", jobs: int = 1) -> Iterator[Coverage]:
    """Yield the lines for partitions alike and unlike, at m = d + 4, d + 8 and 4d, the same for the same arguments.

    Parameters
    ----------
    draws : int
        Sets of sketches per line.
    only : str
        Of the lines only those with this in their design.
    jobs : int
        Lines that are measured at once, each in a process of its own: they do not depend on one another.

    Yields
    ------
    Coverage
        One line after the other.
    """
    yield from _rows(PROMISED, draws, only, jobs)


def other_rows(draws: int = 1000, only: str = "", jobs: int = 1) -> Iterator[Coverage]:
    """Yield the lines for other weights, and for uneven, singular, sorted and single partitions."""
    yield from _rows(OTHERS, draws, only, jobs)


def _rows(cases: list[tuple[str, str, str]], draws: int, only: str, jobs: int) -> Iterator[Coverage]:
    chosen = [case for case in cases if only in f"{case[0]}, {case[2]} weights"]
    lines = [(*case, size, draws) for case in chosen for size in (COLUMNS + 4, COLUMNS + 8, 4 * COLUMNS)]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for row in pool.map(_line, lines):
            print(table([row]).splitlines()[-1], file=sys.stderr, flush=True)
            yield row


def _line(line: tuple[str, str, str, int, int]) -> Coverage:
    name, design, weights, size, draws = line
    make = one_noisy if design == "one noisy partition" else DESIGNS[design]
    found = []
    for number in range(max(draws // DRAWS_OF_ONE, 2)):
        partitions = make(np.random.default_rng([SEED, number]))
        chosen = partitions[:1] if name == "one partition" else partitions
        found.append(measure(name, chosen, size, min(draws, DRAWS_OF_ONE), SEED + number, weights, INNER_DRAWS))
    return together(found)


def together(found: list[Coverage]) -> Coverage:
    """Return one line for several data sets with as many draws each."""
    excess = np.array([one.excess for one in found])
    weights = excess / excess.sum()
    errors = np.array([one.certified_error for one in found])
    shares = np.array([(*one.covered, *one.covered_relative) for one in found])
    means = shares.mean(axis=0).tolist()
    return replace(
        found[0],
        excess=float(excess.mean()),
        certified=float(weights @ [one.certified for one in found]),
        certified_error=float(np.linalg.norm(weights * errors)),
        certified_relative=float(weights @ [one.certified_relative for one in found]),
        covered=tuple(means[: len(LEVELS)]),
        covered_relative=tuple(means[len(LEVELS) :]),
        draws=sum(one.draws for one in found),
        errors=tuple((np.std(shares, axis=0, ddof=1) / np.sqrt(len(found))).tolist()),
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
        shares = " | ".join(_shares(row))
        lines.append(
            f"| {row.design} | {row.sketch_size} | {row.excess:.3f} | {row.certified:.3f} ± {row.certified_error:.3f} "
            f"| {row.certified_relative:.3f} | {shares} |"
        )
    return "\n".join(lines)


def _shares(row: Coverage) -> list[str]:
    shares = [f"{100 * share:.1f}" for share in (*row.covered, *row.covered_relative)]
    if not row.errors:
        return shares
    return [f"{share} ± {100 * error:.1f}" for share, error in zip(shares, row.errors, strict=True)]


def main() -> None:
    """Print the table, and write it as JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=5000)
    parser.add_argument("--only", default="", help="only lines with this in their design")
    parser.add_argument("--jobs", type=int, default=1, help="lines measured at once")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    options = (arguments.draws, arguments.only, arguments.jobs)
    rows = [*coverage_rows(*options), *other_rows(*options)]
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()
