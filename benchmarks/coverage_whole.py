"""Do certificates of stacked fits, of sketches of all rows and of samples hold, and the test of unlike coefficients?

    python -m benchmarks.coverage_whole [--draws 1000] [--only stack,whole,samples,errors,test]

Stacked fits: one fit on the Gaussian sketches of all partitions. Whole: averages of fits to explicit sketches of all
rows, of every kind. Samples: the same for samples of rows, which may withhold their certificate. Errors: intervals of
the true coefficients from the stacked fit when noise differs. Test: how often partitions with shared coefficients are
said to differ (at 5%), and partitions with unlike ones.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from tests.sketches.explicit import srht_matrix

from benchmarks.coverage import LEVELS, Coverage, table
from benchmarks.coverage_designs import COLUMNS, DESIGNS, PARTITIONS, Partition
from partsketch import InputError, theory
from partsketch.simulate import draw_sketches
from partsketch.theory.many_moments import many_moments
from partsketch.theory.sketch_moments import moments_of_parts

FloatArray = NDArray[np.float64]
SIZES = (COLUMNS + 4, COLUMNS + 8, 4 * COLUMNS)


def unlike_scales(rng: np.random.Generator, noise: bool = False) -> list[Partition]:
    """Features with standard deviations from 0.3 to 3, coefficients that differ, and noise if asked."""
    parts = DESIGNS["unlike coefficients and noise" if noise else "unlike coefficients"](rng)
    return [
        (np.column_stack([X[:, :1], X[:, 1:] * scale]), y + (scale - 1) * X[:, 1:].sum(axis=1))
        for (X, y), scale in zip(parts, np.geomspace(0.3, 3, PARTITIONS), strict=True)
    ]


STACK_DESIGNS: dict[str, Callable[[np.random.Generator], list[Partition]]] = {
    **{name: make for name, make in DESIGNS.items() if name != "singular partitions"},
    "unlike scales and coefficients": unlike_scales,
    "unlike scales, coefficients and noise": lambda rng: unlike_scales(rng, noise=True),
}


class _Tally:
    """Excess losses beside their certificates."""

    def __init__(self) -> None:
        self._excess: list[float] = []
        self._certified: list[tuple[float, float]] = []
        self._inside: list[list[bool]] = []
        self.withheld = 0

    def add(self, excess: float, minimal_loss: float, make: Callable[[], theory.CertificateEstimate]) -> None:
        """Take one fit."""
        try:
            found = make()
        except InputError:
            self.withheld += 1
            return
        assert found.confidence is not None
        assert found.relative_confidence is not None
        self._excess.append(excess)
        self._certified.append((found.excess_loss, found.relative_excess_loss))
        ends = [found.confidence.interval(level) for level in LEVELS]
        relative = [found.relative_confidence.interval(level) for level in LEVELS]
        self._inside.append(
            [low <= excess <= high for low, high in ends]
            + [low <= excess / minimal_loss <= high for low, high in relative]
        )

    def line(self, name: str, size: int, minimal_loss: float) -> Coverage:
        """Return a line of the table."""
        known = bool(self._excess)
        # A line that was always withheld has no numbers.
        excess = np.array(self._excess) if known else np.array([np.nan])
        certified = np.array(self._certified) if known else np.full((1, 2), np.nan)
        mean = float(excess.mean())
        shares = np.array(self._inside).mean(axis=0) if known else np.full(6, np.nan)
        total = len(self._excess) + self.withheld
        label = name + (f", withheld {self.withheld / total:.0%}" if self.withheld else "")
        return Coverage(
            design=label,
            sketch_size=size,
            excess=mean / minimal_loss,
            certified=float(certified[:, 0].mean()) / mean,
            certified_error=float(np.std(certified[:, 0] - excess)) / mean / np.sqrt(len(excess)),
            certified_relative=float(certified[:, 1].mean()) * minimal_loss / mean,
            covered=tuple(float(share) for share in shares[:3]),
            covered_relative=tuple(float(share) for share in shares[3:]),
            draws=len(self._excess),
        )


def measure_stack(name: str, partitions: list[Partition], size: int, draws: int, seed: int = 1) -> Coverage:
    """Draw the sketches of these partitions many times and compare certificates of the stacked fit with its losses."""
    rng = np.random.default_rng(seed)
    exact = theory.moments_of(partitions)
    pooled, tally = theory.pooled_moments(exact), _Tally()
    counts = [part.row_count for part in exact]
    for factors in zip(*(draw_sketches(part, size, draws, rng) for part in exact), strict=True):
        fit = theory.stacked_fit([theory.PartitionMoments(factor, size) for factor in factors], counts)
        lost = pooled.root @ (fit.pooled.solution - pooled.solution)
        tally.add(float(lost @ lost), pooled.loss, lambda fit=fit: theory.certify_stacked(fit))  # type: ignore[misc]
    return tally.line(name, size, pooled.loss)


def sketching_matrix(kind: str, size: int, X: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return one explicit S of any kind, m × n."""
    rows, numbers = len(X), np.arange(len(X))
    if kind == "gaussian":
        return np.asarray(rng.standard_normal((size, rows)) / np.sqrt(size))
    if kind == "srht":
        return srht_matrix(rows, size, int(rng.integers(2**63)))
    if kind in ("sparse_sign", "count_sketch"):
        per_row = 8 if kind == "sparse_sign" else 1
        S = np.zeros((size, rows))
        S[np.argsort(rng.random((size, rows)), axis=0)[:per_row], numbers] = rng.choice([-1.0, 1.0], (per_row, rows))
        return np.asarray(S / np.sqrt(per_row))
    # Priority sampling by leverage, as `sketches/leverage_sample.py` does it; even scores make it a uniform sample.
    scores = np.full(rows, 1 / rows)
    if kind == "leverage_sample":
        scores = 0.9 * np.sum(np.linalg.qr(X)[0] ** 2, axis=1) / X.shape[1] + 0.1 / rows
    priorities = scores / (1 - rng.random(rows))
    order = np.argsort(-priorities)
    threshold = priorities[order[size]] if size < rows else 0.0
    chosen = order[:size]
    S = np.zeros((size, rows))
    weights = np.full(size, rows / size) if kind == "row_sample" else np.maximum(1, threshold / scores[chosen])
    S[np.arange(size), chosen] = np.sqrt(weights)
    return S


def rows_of(
    tails: str, variable_noise: bool, seed: int, rows: int = 240, columns: int = COLUMNS
) -> tuple[FloatArray, FloatArray]:
    """Return rows with Gaussian or heavy-tailed features, and noise that is constant or grows with a feature."""
    rng = np.random.default_rng(seed)
    freedom = {"Gaussian": None, "t3": 3.0, "t2.5": 2.5, "t2": 2.0}[tails]
    X = rng.standard_normal((rows, columns)) if freedom is None else rng.standard_t(freedom, (rows, columns))
    X[:, 0] = 1.0
    return X, X.sum(axis=1) + rng.standard_normal(rows) * (np.abs(X[:, 1]) if variable_noise else 1.0)


def measure_whole(
    kind: str, data: tuple[FloatArray, FloatArray], size: int, sketches: int, draws: int, name: str, seed: int = 1
) -> Coverage:
    """Draw explicit sketches of all rows many times and compare certificates of the averaged fit with its losses."""
    rng = np.random.default_rng(seed)
    X, y = data
    pooled, tally = theory.pooled_moments([data]), _Tally()
    for _ in range(draws):
        matrices = [sketching_matrix(kind, size, X, rng) @ np.column_stack([X, y]) for _ in range(sketches)]
        parts = [theory.read_sketch(matrix, source_rows=len(X)) for matrix in matrices]
        lost = pooled.root @ (np.mean([part.solution for part in parts], axis=0) - pooled.solution)

        def make(
            matrices: list[FloatArray] = matrices, parts: list[theory.PartitionMoments] = parts
        ) -> theory.CertificateEstimate:
            if kind not in ("row_sample", "leverage_sample"):
                return theory.certify_whole(parts, len(X), kind)
            # The first column is one: sampled rows show their chances there.
            chances = [np.minimum(1 / rows[:, 0] ** 2, 1.0) for rows in matrices]
            samples = [
                theory.RowSample(rows, chance, np.zeros(size), part.rank)
                for rows, chance, part in zip(matrices, chances, parts, strict=True)
            ]
            return theory.certify_row_samples(samples, len(X))

        tally.add(float(lost @ lost), pooled.loss, make)
    return tally.line(name, size, pooled.loss)


def stack_rows(draws: int, seed: int = 1) -> Iterator[Coverage]:
    """Yield the lines for stacked fits."""
    for name, make in STACK_DESIGNS.items():
        for size in SIZES:
            yield measure_stack(f"stack, {name}", make(np.random.default_rng(seed)), size, draws, seed)


def whole_rows(draws: int, seed: int = 1) -> Iterator[Coverage]:
    """Yield the lines for averages of fits to sketches of all rows."""
    for kind in ("gaussian", "srht", "sparse_sign", "count_sketch"):
        for tails, variable in (("Gaussian", False), ("t3", True)):
            noise = "variable" if variable else "constant"
            for sketches, size in [(k, m) for k in (1, 4) for m in (*SIZES, 120)]:
                name = f"{kind}, {sketches} sketches, {tails} rows, {noise} noise"
                yield measure_whole(kind, rows_of(tails, variable, seed), size, sketches, draws, name, seed)


def sample_rows(draws: int, seed: int = 1) -> Iterator[Coverage]:
    """Yield the lines for samples of rows."""
    tables = [("Gaussian", False), ("Gaussian", True), ("t3", False), ("t3", True), ("t2.5", False), ("t2", False)]
    for kind in ("row_sample", "leverage_sample"):
        for tails, variable in tables:
            for size in (10 * COLUMNS, 150):
                name = f"{kind}, {tails} rows, {'variable' if variable else 'constant'} noise"
                yield measure_whole(kind, rows_of(tails, variable, seed), size, 1, draws, name, seed)
    # Large samples, and samples of few columns, in which heavy rows are harder to see.
    for columns, size in ((COLUMNS, 600), (2, 60), (2, 150), (2, 600)):
        for tails, variable in tables[:4]:
            noise = "variable" if variable else "constant"
            name = f"row_sample of 2,400 rows, {columns} columns, {tails} rows, {noise} noise"
            data = rows_of(tails, variable, seed, 2400, columns)
            yield measure_whole("row_sample", data, size, 1, draws, name, seed)


@dataclass(frozen=True)
class Rate:
    """How often something happened: a name, the setting, and shares (of 90, 95, 99% or of a test at 5%)."""

    name: str
    setting: str
    shares: tuple[float, ...]
    draws: int


def error_rows(draws: int, seed: int = 1) -> Iterator[Rate]:
    """Yield how often intervals of the stacked fit hold the true coefficients, noise redrawn each time."""
    one = np.ones(PARTITIONS)
    cases = {
        "alike": (one, one, [100] * PARTITIONS),
        "unlike noise": (one, np.geomspace(0.2, 4, PARTITIONS), [100] * PARTITIONS),
        "noisy where features are large": (np.geomspace(0.3, 3, PARTITIONS),) * 2 + ([100] * PARTITIONS,),
        "noisy where features are small": (
            np.geomspace(3, 0.3, PARTITIONS),
            np.geomspace(0.2, 4, PARTITIONS),
            [100] * PARTITIONS,
        ),
        "uneven sizes": (one, one, [100] * (PARTITIONS - 1) + [1000]),
    }
    for name, (scales, noise, counts) in cases.items():
        for size in SIZES:
            rng = np.random.default_rng(seed)
            designs = [
                scale * rng.standard_normal((count, COLUMNS)) for scale, count in zip(scales, counts, strict=True)
            ]
            inside = np.zeros((draws, len(LEVELS)))
            for draw in range(draws):
                sketches = [
                    rng.standard_normal((size, len(X)))
                    @ np.column_stack([X, level * rng.standard_normal(len(X))])
                    / np.sqrt(size)
                    for X, level in zip(designs, noise, strict=True)
                ]
                fit = theory.stacked_fit([theory.read_sketch(sketch) for sketch in sketches], counts)
                covariance = theory.stacked_covariance(fit)
                for place, level in enumerate(LEVELS):
                    ends = theory.confidence_intervals(fit.solution, covariance, level)
                    inside[draw, place] = np.mean((ends[:, 0] <= 0) & (ends[:, 1] >= 0))
            yield Rate(name, f"m = {size}", tuple(float(share) for share in inside.mean(axis=0)), draws)


def partitions_for_test(
    rng: np.random.Generator, k: int, rows: int, columns: int, kind: str, spread: float
) -> list[FloatArray]:
    """Return [X y] of partitions whose coefficients differ by `spread`, with noise of some kind."""
    parts = []
    for index in range(k):
        tails = "heavy" in kind
        X = rng.standard_t(3, (rows, columns)) if tails else rng.standard_normal((rows, columns))
        X[:, 0] = 1.0
        noise = rng.standard_t(3, rows) if tails else rng.standard_normal(rows)
        noise *= np.abs(X[:, 1]) if "grows" in kind else 1.0
        noise *= np.geomspace(0.2, 4, k)[index] if "differs" in kind else 1.0
        y = X @ (1 + spread * rng.standard_normal(columns)) + noise
        parts.append(np.column_stack([X, y]))
    return parts


def sketch_test(parts: list[FloatArray], size: int, rng: np.random.Generator) -> theory.Heterogeneity:
    """Test Gaussian sketches of these partitions."""
    return _sketch_tests([_sketches(parts, size, rng)], len(parts[0]))[0]


def _sketches(parts: list[FloatArray], size: int, rng: np.random.Generator) -> list[FloatArray]:
    return [rng.standard_normal((size, len(rows))) @ rows / np.sqrt(size) for rows in parts]


def _sketch_tests(sets: list[list[FloatArray]], rows: int) -> list[theory.Heterogeneity]:
    """Test sets of sketches of partitions of so many rows; all are solved at once."""
    sketches = [sketch for one in sets for sketch in one]
    read = iter(many_moments(sketches, [len(sketch) for sketch in sketches]))
    together = [moments_of_parts(list(islice(read, len(one))), [rows] * len(one), "gaussian") for one in sets]
    return [theory.sketch_heterogeneity(moments) for moments in together]


def _beside_random(parts: list[FloatArray], rng: np.random.Generator) -> tuple[list[FloatArray], list[FloatArray]]:
    everything = np.vstack(parts)
    labels = rng.integers(len(parts), size=len(everything))
    return parts, [everything[labels == number] for number in range(len(parts))]


def _exact_tests(pairs: list[tuple[list[FloatArray], list[FloatArray]]]) -> list[theory.Heterogeneity]:
    """Test partitions beside random ones; the factors of all are solved at once."""
    rows = [part for pair in pairs for some in pair for part in some]
    factors = [np.asarray(np.linalg.qr(part, mode="r"), dtype=np.float64) for part in rows]
    read = iter(many_moments(factors, [len(part) for part in rows]))
    together = [[list(islice(read, len(some))) for some in pair] for pair in pairs]
    return [theory.partition_heterogeneity(first, second) for first, second in together]


def rejections(
    what: str,
    shape: tuple[int, int, int, int],
    kind: str,
    spread: float,
    draws: int,
    seed: int = 1,
) -> float:
    """Return how often a test at 5% of "sketches" or "factors" says that partitions differ; `shape` is k, p, d, m."""
    rng = np.random.default_rng(seed)
    k, rows, columns, size = shape
    data = (partitions_for_test(rng, k, rows, columns, kind, spread) for _ in range(draws))
    if what == "sketches":
        found = _sketch_tests([_sketches(parts, size, rng) for parts in data], rows)
    else:
        found = _exact_tests([_beside_random(parts, rng) for parts in data])
    return float(np.mean([np.nan if one.p_value is None else one.p_value < 0.05 for one in found]))


def rejection_rows(draws: int, seed: int = 1) -> Iterator[Rate]:
    """Yield how often partitions are said to differ: with shared coefficients, then with unlike ones."""
    cases = [("constant", 0.0), ("differs", 0.0), ("grows", 0.0), ("heavy", 0.0), ("heavy, grows", 0.0)]
    cases += [("constant", 0.3), ("constant", 1.0), ("grows", 1.0)]
    for what, name in (("sketches", "sketches"), ("factors", "factors beside random partitions")):
        for shape in ((3, 200, 5, 13), (8, 200, 5, 13), (32, 50, 5, 13), (8, 1000, 10, 40)):
            for kind, spread in cases:
                k, rows, columns, size = shape
                setting = f"k = {k}, p = {rows}, d = {columns}" + (f", m = {size}" if what == "sketches" else "")
                label = f"{name}, noise {kind}, coefficients {'shared' if spread == 0 else f'differ by {spread}'}"
                yield Rate(label, setting, (rejections(what, shape, kind, spread, draws, seed),), draws)


def rate_table(rows: list[Rate], headings: tuple[str, ...]) -> str:
    """Return rates as a Markdown table."""
    lines = [f"| case | setting | {' | '.join(headings)} |", "|---" * (2 + len(headings)) + "|"]
    for row in rows:
        shares = " | ".join(f"{100 * share:.1f}" for share in row.shares)
        lines.append(f"| {row.name} | {row.setting} | {shares} |")
    return "\n".join(lines)


def main() -> None:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--only", default="stack,whole,samples,errors,test")
    arguments = parser.parse_args()
    coverages = {"stack": stack_rows, "whole": whole_rows, "samples": sample_rows}
    rates = {"errors": (error_rows, ("90%", "95%", "99%")), "test": (rejection_rows, ("rejected at 5%",))}
    for name in arguments.only.split(","):
        if name in coverages:
            text = table(list(coverages[name](arguments.draws)))
        else:
            make, headings = rates[name]
            text = rate_table(list(make(arguments.draws)), headings)
        print(text, "\n", sep="")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
