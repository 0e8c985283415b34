"""Exact least squares on sparse rows: well-conditioned, where LSQR is at its best, and ill-conditioned."""

from __future__ import annotations

from functools import partial

from benchmarks.problem import Arrays, FloatArray
from benchmarks.rivals import ours, scikit_learn, sparse_solvers
from benchmarks.sparse_problem import SparseProblem, with_ones
from benchmarks.workloads.base import Case, Contestant, Figures, Target, Workload, times
from benchmarks.workloads.judging import judge_fit


def _iterated(arrays: Arrays) -> FloatArray:
    return ours.fit_estimator(arrays, route="iterate")


def _case(name: str, problem: SparseProblem, kind: str, warm_up_rows: int) -> Case:
    # The column of ones is made before the clock starts, in favour of those who need it.
    return Case(
        name=name,
        title=f"{problem.rows:,} × {problem.width}, {kind}",
        contestants=(
            Contestant("ours", 'partsketch: SketchedRegression("exact")', ours.fit_estimator, "ours"),
            Contestant("iterate", 'partsketch: route="iterate"', _iterated, "ours"),
            Contestant("sklearn", "scikit-learn LinearRegression (LSQR, tol=1e-6)", scikit_learn.fit_arrays),
            Contestant(
                "sklearn-12",
                "scikit-learn LinearRegression(tol=1e-12)",
                partial(scikit_learn.fit_arrays, tol=1e-12),
            ),
            Contestant("lsqr", "scipy.sparse.linalg.lsqr, 1e-12", sparse_solvers.lsqr, prepare=with_ones),
            Contestant("lsmr", "scipy.sparse.linalg.lsmr, 1e-12", sparse_solvers.lsmr, prepare=with_ones),
            Contestant("gram", "sparse normal equations", sparse_solvers.normal_equations, prepare=with_ones),
        ),
        make=problem.make,
        load=problem.arrays,
        load_small=lambda: problem.arrays().head(warm_up_rows),
        judge=partial(judge_fit, problem),
        main="ours",
        in_memory=True,
    )


def _cases(quick: bool) -> tuple[Case, ...]:
    part = 10 if quick else 1
    plain = SparseProblem(1_000_000 // part, 2000, 0.01)
    pairs = SparseProblem(200_000 // part, 300, 0.01, 1e-8)
    return (
        # As many rows as it takes for the small version to go the same way as the large one.
        _case("plain", plain, "1% of the entries stored", 50_000),
        _case("pairs", pairs, "pairs of columns that differ by 10⁻⁸", 10_000),
    )


def _error(name: str, figures: Figures) -> float:
    return float(figures[name]["forward_error"])


_TARGETS = (
    Target("plain", "Sparse rows: not slower than LinearRegression(tol=1e-12)", times("sklearn-12", "ours"), 1.0),
    Target(
        "plain",
        "Sparse rows: at most 0.9 of the time of LinearRegression(tol=1e-12)",
        times("ours", "sklearn-12"),
        0.9,
        False,
    ),
    Target(
        "plain",
        "Sparse rows: relative error at most that of LinearRegression(tol=1e-12)",
        lambda figures: _error("ours", figures) / _error("sklearn-12", figures),
        1.0,
        False,
        timed=False,
    ),
    Target(
        "plain", "Sparse rows: not slower than LinearRegression with its default, 1e-6", times("sklearn", "ours"), 1.0
    ),
    # ε times the condition number 10⁸ is 2·10⁻⁸.
    Target("pairs", "Pairs of columns: relative error at most 1e-6", partial(_error, "ours"), 1e-6, False, timed=False),
    Target(
        "pairs",
        "Pairs of columns, by refinement: relative error at most 1e-6",
        partial(_error, "iterate"),
        1e-6,
        False,
        timed=False,
    ),
)

WORKLOAD = Workload("sparse", "Exact least squares on sparse rows", _cases, _TARGETS)
