"""What many partitions add to the time of one: feeders, small systems and certificates for each."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

from benchmarks.problem import Arrays, FloatArray, Problem
from benchmarks.workloads.base import Case, Contestant, Figures, Target, Workload, times


def _fitted(partitions: int, arrays: Arrays) -> FloatArray:
    import numpy as np

    from partsketch import SketchedRegression

    model = SketchedRegression("partition", n_partitions=partitions, sketch="count_sketch", random_state=1)
    model.fit(arrays.X, arrays.y)
    return np.concatenate([[model.intercept_], model.coef_])


def _multiplied(arrays: Arrays) -> FloatArray:
    """Do what cannot be left out for the sketches themselves: write them, multiply, factor and invert, by NumPy."""
    import numpy as np

    columns = arrays.X.shape[1] + 2
    rows = 20 * (columns - 1)

    def work(some: range) -> FloatArray:
        found = np.zeros((columns, columns))
        for first in some:
            sketch = arrays.X[first : first + rows, np.arange(columns) % arrays.X.shape[1]]
            found += np.linalg.inv(np.linalg.cholesky(sketch.T @ sketch + len(sketch) * np.eye(columns)))
        return found

    with ThreadPoolExecutor(2) as pool:
        return sum(pool.map(work, [range(32), range(32, 64)]), start=np.zeros((columns, columns)))


def _cases(quick: bool) -> tuple[Case, ...]:
    problem = Problem(100_000 if quick else 500_000, 54)
    return (
        Case(
            name="d54",
            title=f"{problem.rows:,} × {problem.width} in memory, CountSketch of every partition",
            contestants=(
                Contestant("one", "partsketch: 1 partition", partial(_fitted, 1), "ours"),
                Contestant("many", "partsketch: 64 partitions", partial(_fitted, 64), "ours"),
                Contestant("multiplied", "NumPy: only 64 sketches written and factored", _multiplied, "baseline"),
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
    one, many, least = (figures[name]["best_cpu_seconds"] for name in ("one", "many", "multiplied"))
    return (
        f"{many:.2f} s of processor against {one:.2f} s; each of the 64 sketches is as large as the one: to write, "
        f"multiply, factor and invert them takes NumPy {least:.2f} s, and they are solved and certified besides"
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
