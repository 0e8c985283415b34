"""Fast sketches of an array in memory, held against one read of it and against SciPy."""

from __future__ import annotations

import statistics
from functools import partial

from benchmarks.problem import Problem
from benchmarks.rivals import ours, read_array, scipy_sketches
from benchmarks.workloads.base import Case, Contestant, Figures, Target, Workload
from benchmarks.workloads.judging import judge_sketch

_KINDS = {"srht": "SRHT", "sparse_sign": "sparse sign, s = 8", "count_sketch": "CountSketch"}


def _cases(quick: bool) -> tuple[Case, ...]:
    if quick:
        return (_case(Problem(2**15, 54)),)
    rows = {54: 2**20, 200: 2**18, 8: 2**20}
    return tuple(_case(Problem(count, width)) for width, count in rows.items())


def _case(problem: Problem) -> Case:
    size = 4 * problem.width

    return Case(
        name=f"d{problem.width}",
        title=f"{problem.rows:,} × {problem.width}, sketches of {size} rows",
        contestants=(
            Contestant("read", "one read: two threads sum all entries", read_array.read_once, "baseline"),
            *(
                Contestant(kind, f"partsketch: {label}", partial(ours.sketch_bare, size=size, kind=kind), "ours")
                for kind, label in _KINDS.items()
            ),
            Contestant("dct", "SciPy: signs, dct(workers=2), m rows", partial(scipy_sketches.cosine_mixing, size=size)),
            Contestant(
                "csc",
                "SciPy: prebuilt CSC matrix @ X, s = 8",
                scipy_sketches.sparse_product,
                prepare=partial(scipy_sketches.with_sparse_matrix, size=size),
            ),
            Contestant(
                "clarkson-woodruff",
                "SciPy: clarkson_woodruff_transform",
                partial(scipy_sketches.clarkson_woodruff, size=size),
            ),
        ),
        make=problem.make_arrays,
        load=problem.arrays,
        load_small=lambda: problem.arrays().head(5000),
        judge=partial(judge_sketch, problem),
        main="sparse_sign",
        in_memory=True,
    )


def _ratio(above: str, below: str, figures: Figures) -> float:
    """Return the median over the rounds of best by best: memory is quicker in some minutes than in others."""
    rounds = zip(figures[above]["all_seconds"], figures[below]["all_seconds"], strict=True)
    return float(statistics.median(min(one) / min(other) for one, other in rounds))


def _reads(width: int, kind: str, most: float) -> Target:
    sentence = f"{_KINDS[kind]}, d = {width}: at most {most:g} times one read of X"
    return Target(f"d{width}", sentence, partial(_ratio, kind, "read"), most, at_least=False)


def _faster(width: int, kind: str, rival: str, least: float, name: str) -> Target:
    sentence = f"{_KINDS[kind]}, d = {width}: at least {least:g} times the speed of {name}"
    return Target(f"d{width}", sentence, partial(_ratio, rival, kind), least)


_TARGETS = (
    _reads(54, "srht", 4),
    _faster(54, "srht", "dct", 10, "mixing by scipy.fft.dct"),
    _reads(54, "sparse_sign", 5),
    _reads(200, "sparse_sign", 5),
    _faster(54, "sparse_sign", "csc", 1.5, "a prebuilt CSC matrix"),
    _faster(200, "sparse_sign", "csc", 1.5, "a prebuilt CSC matrix"),
    _faster(8, "sparse_sign", "csc", 1, "a prebuilt CSC matrix"),
    _reads(54, "count_sketch", 1.6),
    _reads(200, "count_sketch", 1.6),
    _faster(54, "count_sketch", "clarkson-woodruff", 2, "clarkson_woodruff_transform"),
)

WORKLOAD = Workload("fast-sketches", "Fast sketches in memory", _cases, _TARGETS)
