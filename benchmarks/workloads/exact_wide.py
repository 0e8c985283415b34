"""Exact least squares on many columns, ill-conditioned: the factor of all rows, refinement, and their rivals."""

from __future__ import annotations

from functools import partial

from benchmarks.problem import Arrays, FloatArray, Problem
from benchmarks.rivals import numpy_lstsq, ours, tsqr
from benchmarks.workloads.base import Case, Contestant, Figures, Target, Workload, times
from benchmarks.workloads.judging import judge_fit


def _routed(route: str, arrays: Arrays) -> FloatArray:
    return ours.fit_estimator(arrays, route=route)


def _case(name: str, problem: Problem) -> Case:
    def make() -> None:
        problem.make_arrays()
        problem.reference()

    return Case(
        name=name,
        title=f"{problem.rows:,} × {problem.width}, condition {problem.condition:g}, in memory",
        contestants=(
            Contestant("ours", 'partsketch: SketchedRegression("exact")', ours.fit_estimator, "ours"),
            Contestant("factor", 'partsketch: route="factor"', partial(_routed, "factor"), "ours"),
            Contestant("iterate", 'partsketch: route="iterate"', partial(_routed, "iterate"), "ours"),
            Contestant("tsqr", "TSQR, one chain of Householder QR per core", tsqr.fit_arrays),
            Contestant("lstsq", "numpy.linalg.lstsq (gelsd)", numpy_lstsq.fit_arrays, prepare=numpy_lstsq.with_ones),
        ),
        make=make,
        load=problem.arrays,
        # Enough rows for the automatic choice to take the way it takes later.
        load_small=lambda: problem.arrays().head(60 * problem.width),
        judge=partial(judge_fit, problem),
        main="ours",
        in_memory=True,
        budget_seconds=20.0,
    )


def _cases(quick: bool) -> tuple[Case, ...]:
    if quick:
        return (_case("d500", Problem(20_000, 500, 1e8)),)
    return (
        _case("d500", Problem(200_000, 500, 1e8)),
        _case("d1000", Problem(100_000, 1000, 1e8)),
    )


def _error_ratio(figures: Figures) -> float:
    return float(figures["ours"]["forward_error"]) / float(figures["lstsq"]["forward_error"])


_TARGETS = tuple(
    target
    for case in ("d500", "d1000")
    for target in (
        Target(case, f"{case}: at least twice as fast as TSQR", times("tsqr", "ours"), 2.0),
        Target(case, f"{case}: at least 4 times as fast as gelsd", times("lstsq", "ours"), 4.0),
        Target(case, f"{case}: forward error at most 10 times gelsd's", _error_ratio, 10.0, False, timed=False),
    )
)

WORKLOAD = Workload("exact-wide", "Exact least squares on many ill-conditioned columns", _cases, _TARGETS)
