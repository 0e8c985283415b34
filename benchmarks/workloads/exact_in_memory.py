"""Exact least squares with an intercept on arrays in memory (C order, float64, R² about one half)."""

from __future__ import annotations

from functools import partial

from benchmarks.problem import Problem
from benchmarks.rivals import (
    dask_rivals,
    gram_baseline,
    h2o_glm,
    intelex,
    numpy_lstsq,
    ours,
    polars_ols_rival,
    scikit_learn,
    scipy_lstsq,
    spark_mllib,
    statsmodels_ols,
)
from benchmarks.workloads.base import Case, Contestant, Figures, Target, Unavailable, Workload, fastest
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


def more_contestants() -> tuple[Contestant, ...]:
    """Everything else that a user might take."""
    with_ones = numpy_lstsq.with_ones
    return (
        Contestant("gelsy", "SciPy lstsq, gelsy", scipy_lstsq.fit_arrays, prepare=with_ones),
        Contestant("statsmodels", "statsmodels OLS, QR", statsmodels_ols.fit_arrays, prepare=with_ones),
        Contestant("sgd", "scikit-learn SGDRegressor (not OLS: an iteration)", scikit_learn.fit_gradients),
        Contestant("projection", "SparseRandomProjection + lstsq (not OLS: a sketch)", scikit_learn.fit_projected),
        Contestant("dask-lstsq", "dask.array.linalg.lstsq", dask_rivals.fit_lstsq, prepare=dask_rivals.chunked),
        Contestant("dask-ml", "dask-ml LinearRegression", dask_rivals.fit_dask_ml, prepare=dask_rivals.chunked),
        Contestant("spark", "Spark MLlib LinearRegression", spark_mllib.fit_frame, prepare=spark_mllib.as_frame),
        Contestant("polars-ols", "polars-ols", polars_ols_rival.fit_frame, prepare=polars_ols_rival.as_frame),
        Contestant("h2o", "H2O GLM", h2o_glm.fit_frame, prepare=h2o_glm.as_frame),
    )


_DUCKREG = Unavailable("duckreg", "duckreg", "compresses rows that repeat; these have none that do")


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
        absent=(_DUCKREG,),
    )


def _cases(quick: bool) -> tuple[Case, ...]:
    fewer = 10 if quick else 1
    more = () if quick else more_contestants()
    problems = {
        "d8": Problem(1_000_000 // fewer, 8),
        "d54": Problem(1_000_000 // fewer, 54),
        "d200": Problem(400_000 // fewer, 200),
        "d1000": Problem(100_000 // fewer, 1000),
        "ill": Problem(1_000_000 // fewer, 54, 1e8),
    }
    names = ("d8", "d54") if quick else tuple(problems)
    return tuple(arrays_case(name, problems[name], more) for name in names)


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
