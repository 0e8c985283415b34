"""A hundred draws of the sketched estimators for seven numbers of partitions, without touching the rows again."""

from __future__ import annotations

import numpy as np

from benchmarks.problem import Arrays, FloatArray, Problem
from benchmarks.workloads.base import Case, Contestant, Figures, Target, Workload

_COUNTS = (1, 2, 5, 10, 20, 50, 100)
_DRAWS = 100
#: Explicit sketching takes minutes: a part of its draws is timed, and the time multiplied.
_EXPLICIT_DRAWS = 2


def draw_from_factors(arrays: Arrays) -> FloatArray:
    """One pass for the triangular factors, then draws of both estimators; returns mean losses of θ̄."""
    from partsketch.simulate import draw_excess_losses, partition_factors

    size = arrays.X.shape[1] * 2
    rng = np.random.default_rng(0)
    means = []
    for count, parts in partition_factors(arrays.X, arrays.y, _COUNTS, "drop").items():
        means.append(draw_excess_losses("partition", parts, size, _DRAWS, rng).mean())
        draw_excess_losses("whole", parts, size, _DRAWS, rng, n_sketches=count)
    return np.array(means)


def draw_explicitly(arrays: Arrays) -> FloatArray:
    """Sketch the rows of every partition anew for each draw, of θ̄ alone: β̄ would take far longer still."""
    X, y = arrays.X, arrays.y
    size = X.shape[1] * 2
    rng = np.random.default_rng(0)
    exact = np.linalg.lstsq(X, y, rcond=None)[0]
    means = []
    for count in _COUNTS:
        rows = len(X) // count
        losses = []
        for _ in range(_EXPLICIT_DRAWS):
            total = np.zeros(X.shape[1])
            for part in range(count):
                here = slice(part * rows, (part + 1) * rows)
                S = rng.standard_normal((size, rows))
                total += np.linalg.lstsq(S @ X[here], S @ y[here], rcond=None)[0]
            losses.append(np.sum((X @ (total / count - exact)) ** 2))
        means.append(np.mean(losses))
    return np.array(means)


def _cases(quick: bool) -> tuple[Case, ...]:
    problem = Problem(20_000 if quick else 100_000, 53)

    def make() -> None:
        problem.make_arrays()

    return (
        Case(
            name="draws",
            title=f"{problem.rows:,} × {problem.width}, seven numbers of partitions",
            contestants=(
                Contestant("ours", f"partsketch.simulate: {_DRAWS} draws of θ̄ and of β̄", draw_from_factors, "ours"),
                Contestant("explicit", f"NumPy: {_EXPLICIT_DRAWS} draws of θ̄, rows sketched anew", draw_explicitly),
            ),
            make=make,
            load=problem.arrays,
            load_small=lambda: problem.arrays().head(12_000),
            judge=lambda answer: {"mean_loss_at_one_partition": float(answer[0])},
            main="ours",
            in_memory=True,
        ),
    )


def _times(figures: Figures) -> float:
    scale = _DRAWS / _EXPLICIT_DRAWS
    return float(figures["explicit"]["best_seconds"] * scale / figures["ours"]["best_seconds"])


WORKLOAD = Workload(
    "simulation",
    "Draws of the estimators",
    _cases,
    (Target("draws", f"{_DRAWS} draws at least 50 times faster than sketching explicitly", _times, 50),),
)
