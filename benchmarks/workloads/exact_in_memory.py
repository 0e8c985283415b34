"""Exact least squares with an intercept on arrays in memory (C order, float64, R² about one half)."""

from __future__ import annotations

from functools import partial

from benchmarks.problem import Problem
from benchmarks.rivals import gram_baseline, intelex, numpy_lstsq, ours, scikit_learn
from benchmarks.workloads.base import Case, Contestant, Figures, Target, Workload, fastest
from benchmarks.workloads.judging import judge_fit


def contestants() -> tuple[Contestant, ...]:
    """Everything that fits arrays in memory."""
    return (
        Contestant("ours-estimator", 'partsketch: SketchedRegression("exact")', ours.fit_estimator, "ours"),
        Contestant("ours-fit", "partsketch: fit(array, ...)", ours.fit_function, "ours", ours.as_one_array),
        Contestant("scikit-learn", "scikit-learn LinearRegression", scikit_learn.fit_arrays),
        Contestant("lstsq", "numpy.linalg.lstsq", numpy_lstsq.fit_arrays, prepare=numpy_lstsq.with_ones),
        Contestant("intelex", "scikit-learn-intelex LinearRegression", intelex.fit_arrays),
        Contestant("gram", "NumPy normal equations, twenty lines", gram_baseline.fit_arrays),
    )


def arrays_case(name: str, problem: Problem, more: tuple[Contestant, ...] = ()) -> Case:
    """Return the case of a problem in memory."""

    def make() -> None:
        problem.make_arrays()
        problem.reference()

    return Case(
        name=name,
        title=f"{problem.rows:,} × {problem.width} in memory",
        contestants=(*contestants(), *more),
        make=make,
        load=problem.arrays,
        load_small=lambda: problem.arrays().head(5000),
        judge=partial(judge_fit, problem),
        main="ours-estimator",
        in_memory=True,
    )


def _cases(quick: bool) -> tuple[Case, ...]:
    return (
        arrays_case("d54", Problem(100_000 if quick else 1_000_000, 54)),
        arrays_case("d200", Problem(40_000 if quick else 400_000, 200)),
    )


def _times(rival: str, figures: Figures) -> float:
    return float(figures[rival]["best_seconds"]) / fastest(figures, "ours-estimator")


_TARGETS = tuple(
    Target(f"d{width}", f"{label}, d = {width}: at least {limit:g} times its speed", partial(_times, rival), limit)
    for width, general in ((54, 10.0), (200, 8.0))
    for rival, label, limit in (
        ("scikit-learn", "scikit-learn", general),
        ("lstsq", "numpy.linalg.lstsq", general),
        ("intelex", "scikit-learn-intelex", 1.0),
    )
)

WORKLOAD = Workload("exact-in-memory", "Exact least squares in memory", _cases, _TARGETS)
