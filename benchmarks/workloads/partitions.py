"""What many partitions add to the time of one: feeders, small systems and certificates for each."""

from __future__ import annotations

from functools import partial

from benchmarks.problem import Arrays, FloatArray, Problem
from benchmarks.workloads.base import Case, Contestant, Figures, Target, Workload, times


def _fitted(partitions: int, arrays: Arrays) -> FloatArray:
    import numpy as np

    from partsketch import SketchedRegression

    model = SketchedRegression("partition", n_partitions=partitions, sketch="count_sketch", random_state=1)
    model.fit(arrays.X, arrays.y)
    return np.concatenate([[model.intercept_], model.coef_])


def _cases(quick: bool) -> tuple[Case, ...]:
    problem = Problem(100_000 if quick else 500_000, 54)
    return (
        Case(
            name="d54",
            title=f"{problem.rows:,} × {problem.width} in memory, CountSketch of every partition",
            contestants=(
                Contestant("one", "partsketch: 1 partition", partial(_fitted, 1), "ours"),
                Contestant("many", "partsketch: 64 partitions", partial(_fitted, 64), "ours"),
            ),
            make=problem.make_arrays,
            load=problem.arrays,
            load_small=lambda: problem.small().arrays(),
            judge=lambda answer: {},
            main="one",
            in_memory=True,
        ),
    )


def _of_processor(figures: Figures) -> str:
    one, many = (figures[name]["best_cpu_seconds"] for name in ("one", "many"))
    return (
        f"{many:.2f} s of processor against {one:.2f} s; each of the 64 sketches is as large as the one, "
        "and is written, multiplied, solved and certified"
    )


_TARGETS = (
    Target(
        "d54",
        "64 partitions, CountSketch, d = 54: at most 2.5 times the time of one partition",
        times("many", "one"),
        2.5,
        at_least=False,
        reason=_of_processor,
    ),
)

WORKLOAD = Workload("partitions", "Many partitions", _cases, _TARGETS)
