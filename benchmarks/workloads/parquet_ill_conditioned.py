"""Condition number 10⁸, rotated so that scaling columns does not help: what is fast is wrong, what is right is slow."""

from __future__ import annotations

from functools import partial

from benchmarks.problem import Problem
from benchmarks.rivals import scikit_learn
from benchmarks.workloads.base import Case, Contestant, Figures, Target, Workload, fastest
from benchmarks.workloads.exact_in_memory import arrays_case
from benchmarks.workloads.parquet_large import parquet_case

_CONDITION = 1e8


def _cases(quick: bool) -> tuple[Case, ...]:
    # By default scikit-learn cuts off directions below 1e-6 of the largest: another answer, on purpose.
    patient = Contestant(
        "scikit-learn-tol",
        "scikit-learn LinearRegression(tol=1e-15)",
        partial(scikit_learn.fit_arrays, tol=1e-15),
    )
    return (
        parquet_case("file", Problem(1_000_000 if quick else 10_000_000, 54, _CONDITION)),
        arrays_case("memory", Problem(100_000 if quick else 1_000_000, 54, _CONDITION), (patient,)),
    )


def _error(figures: Figures) -> float:
    return float(figures["ours"]["forward_error"])


def _slower(figures: Figures) -> float:
    return fastest(figures, "ours") / fastest(figures, "gram", "gram-2")


def _memory(figures: Figures) -> float:
    return float(figures["ours"]["peak_bytes"]) / 1e9


_TARGETS = (
    Target(
        "file",
        "Relative error of the coefficients at most 1e-6",
        _error,
        1e-6,
        at_least=False,
        form="{:.1e}",
        timed=False,
    ),
    Target("file", "At most 3 times the time of the quicker NumPy normal equations", _slower, 3.0, at_least=False),
    Target("file", "Peak memory of the process below 0.7 GB", _memory, 0.7, at_least=False, timed=False),
)

WORKLOAD = Workload("parquet-ill-conditioned", "Ill-conditioned features", _cases, _TARGETS)
