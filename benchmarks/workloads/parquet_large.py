"""Exact least squares on a Parquet file of ten million rows: slower than reading it by how much, in how much memory?"""

from __future__ import annotations

from functools import partial

from benchmarks.problem import Problem
from benchmarks.rivals import gram_baseline, intelex, ours, read_only
from benchmarks.workloads.base import Case, Contestant, Figures, Target, Unavailable, Workload, fastest
from benchmarks.workloads.judging import judge_fit


def parquet_case(name: str, problem: Problem) -> Case:
    """Return the case of a problem in a Parquet file."""

    def make() -> None:
        path = problem.parquet()
        problem.small().parquet()
        problem.reference()
        with path.open("rb") as file:  # so that the page cache is warm for everyone
            while file.read(1 << 24):
                pass

    return Case(
        name=name,
        title=f"{problem.rows:,} × {problem.width} in a Parquet file (snappy, row groups of a million)",
        contestants=(
            Contestant("read-only", "pyarrow: only reading", read_only.read_parquet, "baseline"),
            Contestant(
                "read-only-2", "pyarrow: only reading, two threads", read_only.read_parquet_two_threads, "baseline"
            ),
            Contestant(
                "read-only-tuned",
                "pyarrow: only reading, two threads, pre_buffer=False",
                partial(read_only.read_parquet_two_threads, pre_buffer=False),
                "baseline",
            ),
            Contestant("ours", 'partsketch: fit(path, method="exact")', ours.fit_parquet, "ours"),
            Contestant("gram", "NumPy normal equations, twenty lines", gram_baseline.fit_parquet),
            Contestant(
                "gram-2",
                "NumPy normal equations, two reading threads, pre_buffer=False",
                gram_baseline.fit_parquet_two_threads,
            ),
            Contestant("intelex", "scikit-learn-intelex IncrementalLinearRegression", intelex.fit_parquet),
        ),
        make=make,
        load=problem.parquet,
        load_small=lambda: problem.small().parquet(),
        judge=partial(judge_fit, problem),
        main="ours",
        in_memory=False,
        absent=tuple(
            Unavailable(key, label, "needs all rows in memory, more than once")
            for key, label in (("scikit-learn", "scikit-learn LinearRegression"), ("lstsq", "numpy.linalg.lstsq"))
        ),
    )


def _cases(quick: bool) -> tuple[Case, ...]:
    return (parquet_case("file", Problem(1_000_000 if quick else 10_000_000, 54)),)


def _throughput(figures: Figures) -> float:
    return fastest(figures, "read-only", "read-only-2") / fastest(figures, "ours")


def _tuned_throughput(figures: Figures) -> float:
    return fastest(figures, "read-only-tuned") / fastest(figures, "ours")


def _best_throughput(figures: Figures) -> float:
    return fastest(figures, "read-only", "read-only-2", "read-only-tuned") / fastest(figures, "ours")


def _of_processor(figures: Figures) -> str:
    """Reading keeps all cores busy: whatever is done besides takes time."""
    read, ours = (float(figures[name]["best_cpu_seconds"]) for name in ("read-only-tuned", "ours"))
    return (
        f"reading, which keeps all cores busy, took {read:.2f} s of processor, the fit {ours:.2f} s: what the sums of "
        "products alone must take is said of the file of 4,000,000 rows"
    )


def _against_gram(figures: Figures) -> float:
    return fastest(figures, "gram", "gram-2") / fastest(figures, "ours")


def _memory(figures: Figures) -> float:
    return float(figures["ours"]["peak_bytes"]) / 1e9


_TARGETS = (
    Target("file", "At least 0.7 of the throughput of only reading, pyarrow's defaults", _throughput, 0.7),
    Target(
        "file",
        "The same against only reading with pre_buffer=False (added later)",
        _tuned_throughput,
        0.7,
        reason=_of_processor,
    ),
    Target(
        "file",
        "At least 0.9 of only reading, the quicker of all three ways",
        _best_throughput,
        0.9,
        reason=_of_processor,
    ),
    Target("file", "Not slower than the quicker NumPy baseline", _against_gram, 1.0),
    Target("file", "Peak memory of the process below 0.7 GB", _memory, 0.7, at_least=False, timed=False),
)

WORKLOAD = Workload("parquet-large", "A large Parquet file", _cases, _TARGETS)
