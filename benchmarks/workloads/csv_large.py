"""Exact least squares on one large CSV file, beside packages that parse it on all cores and form the Gram matrix."""

from __future__ import annotations

from functools import partial

from benchmarks.problem import Problem
from benchmarks.rivals import csv_gram, ours
from benchmarks.workloads.base import Case, Contestant, Figures, Target, Workload
from benchmarks.workloads.judging import judge_fit


def _cases(quick: bool) -> tuple[Case, ...]:
    problem = Problem(300_000 if quick else 3_000_000, 10)

    def make() -> None:
        path = problem.csv()
        problem.small().csv()
        problem.reference()
        with path.open("rb") as file:  # so that the page cache is warm for everyone
            while file.read(1 << 24):
                pass

    return (
        Case(
            name="file",
            title=f"{problem.rows:,} × {problem.width + 1} in one CSV file",
            contestants=(
                Contestant("ours", 'partsketch: fit(path, method="exact")', ours.fit_parquet, "ours"),
                Contestant("polars", "polars, then NumPy normal equations", csv_gram.fit_polars),
                Contestant("duckdb", "DuckDB, then NumPy normal equations", csv_gram.fit_duckdb),
            ),
            make=make,
            load=problem.csv,
            load_small=lambda: problem.small().csv(),
            judge=partial(judge_fit, problem),
            main="ours",
            in_memory=False,
        ),
    )


def _against_polars(figures: Figures) -> float:
    return float(figures["ours"]["best_seconds"] / figures["polars"]["best_seconds"])


def _of_processor(figures: Figures) -> str:
    ours, polars = (figures[name]["best_cpu_seconds"] for name in ("ours", "polars"))
    return f"{ours:.2f} s of processor against {polars:.2f} s"


def _memory(figures: Figures) -> float:
    return float(figures["ours"]["peak_bytes"]) / 1e9


_TARGETS = (
    Target(
        "file",
        "CSV: at most the time of polars and the normal equations",
        _against_polars,
        1.0,
        at_least=False,
        reason=_of_processor,
    ),
    Target("file", "CSV: peak memory of the process at most 0.4 GB", _memory, 0.4, at_least=False, timed=False),
)

WORKLOAD = Workload("csv-large", "A large CSV file", _cases, _TARGETS)
