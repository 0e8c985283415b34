"""How the cost grows with the rows n, the columns d, the partitions k and the sketch rows m."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from benchmarks.problem import Arrays, FloatArray, Problem
from benchmarks.rivals import gram_baseline, numpy_lstsq, ours
from benchmarks.workloads.base import Case, Contestant, Workload
from benchmarks.workloads.judging import judge_fit

T = TypeVar("T")

#: Which quantity grows, its values, and the problem for each; everything else stays as it is.
ROWS = (62_500, 125_000, 250_000, 500_000, 1_000_000)
COLUMNS = (8, 16, 32, 64, 128, 256, 512)
PARTITIONS = (1, 4, 16, 64)
SKETCH_ROWS = (60, 120, 240, 480, 960)
KINDS = ("gaussian", "srht", "sparse_sign", "count_sketch")


def _exact() -> tuple[Contestant, ...]:
    return (
        Contestant("exact", "partsketch: exact", ours.fit_estimator, "ours"),
        Contestant("lstsq", "numpy.linalg.lstsq", numpy_lstsq.fit_arrays, prepare=numpy_lstsq.with_ones),
        Contestant("gram", "NumPy normal equations", gram_baseline.fit_arrays),
    )


def _sketched(partitions: int, size: int, quick: bool) -> tuple[Contestant, ...]:
    def fit(kind: str) -> Callable[[Arrays], FloatArray]:
        return partial(ours.fit_sketched, kind=kind, partitions=partitions, size=size)

    return tuple(Contestant(kind, f"partsketch: partition, {kind}", fit(kind), "ours") for kind in _some(KINDS, quick))


def _case(name: str, problem: Problem, contestants: tuple[Contestant, ...], title: str) -> Case:
    def make() -> None:
        problem.make_arrays()
        problem.reference()

    return Case(
        name=name,
        title=title,
        contestants=contestants,
        make=make,
        load=problem.arrays,
        # Every partition of the small version must keep enough rows for its sketch.
        load_small=lambda: problem.arrays().head(20_000),
        judge=partial(judge_fit, problem),
        main=contestants[0].name,
        in_memory=True,
    )


def _some(values: tuple[T, ...], quick: bool) -> tuple[T, ...]:
    """Return the values of a series; for a quick run, which shows that it works, the first and the last."""
    return (values[0], values[-1]) if quick else values


def _cases(quick: bool) -> tuple[Case, ...]:
    fewer = 10 if quick else 1
    sketched = Problem(500_000 // fewer, 54)
    return (
        *(
            _case(f"n-{rows}", Problem(rows // fewer, 54), _exact(), f"n = {rows // fewer:,}, d = 54, exact")
            for rows in _some(ROWS, quick)
        ),
        *(
            _case(f"d-{width}", Problem(100_000 // fewer, width), _exact(), f"n = {100_000 // fewer:,}, d = {width}")
            for width in _some(COLUMNS, quick)
        ),
        *(
            _case(f"k-{k}", sketched, _sketched(k, 224, quick), f"n = {sketched.rows:,}, d = 54, m = 224, k = {k}")
            for k in _some(PARTITIONS, quick)
        ),
        *(
            _case(f"m-{m}", sketched, _sketched(8, m, quick), f"n = {sketched.rows:,}, d = 54, k = 8, m = {m}")
            for m in _some(SKETCH_ROWS, quick)
        ),
    )


WORKLOAD = Workload("growth", "How cost grows with n, d, k and m", _cases, ())
