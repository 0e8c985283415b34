"""Shapes on which others have been ahead: few columns, very many, single precision, and a Gaussian sketch of a file."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.problem import TARGET, Arrays, FloatArray, Problem
from benchmarks.rivals import gram_baseline, intelex, ours, read_only
from benchmarks.workloads.base import Case, Contestant, Figures, Target, Workload, fastest, times
from partsketch.engines.local import usable_cores

_OURS = Contestant("ours", 'partsketch: SketchedRegression("exact")', ours.fit_estimator, "ours")
_INTELEX = Contestant("intelex", "scikit-learn-intelex LinearRegression", intelex.fit_arrays)
_GRAM = Contestant("gram", "NumPy normal equations, twenty lines", gram_baseline.fit_arrays)


def _in_double(arrays: Arrays) -> Arrays:
    return Arrays(arrays.X.astype(np.float64), arrays.y)


def _squared(arrays: Arrays) -> FloatArray:
    return np.asarray(arrays.X.T @ arrays.X)


#: What nobody who multiplies doubles can do without.
_SQUARED = Contestant(
    "squared", "NumPy: only the products of all columns, in doubles", _squared, "baseline", prepare=_in_double
)


def _multiplied(arrays: Arrays, kind: type[np.floating]) -> FloatArray:
    """Multiply as many numbers as all pairs of columns take, in squares, at which the library is quickest."""
    (rows, columns), side = arrays.X.shape, 640
    left, right = (np.full((side, side), 1 / side, dtype=kind) for _ in range(2))
    out = np.empty_like(left)
    for _ in range(round(rows * columns * (columns + 1) / 2 / side**3)):
        np.matmul(left, right, out=out)
    return np.asarray(out)


#: What nobody can do without who multiplies doubles, and who multiplies single numbers.
_IN_DOUBLES, _IN_SINGLES = (
    Contestant(name, f"NumPy: only as many multiplications, in {text}", partial(_multiplied, kind=kind), "baseline")
    for name, text, kind in (("doubles", "doubles", np.float64), ("singles", "single numbers", np.float32))
)


def _of_multiplications(figures: Figures) -> str:
    if any("best_seconds" not in figures.get(name, {}) for name in ("doubles", "singles")):
        return ""
    doubles, singles = fastest(figures, "doubles"), fastest(figures, "singles")
    return (
        f"as many multiplications in doubles, which all digits take, need {doubles:.2f} s by the library at its "
        f"quickest, {doubles / fastest(figures, 'intelex'):.2f} times the time of the rival, and {singles:.2f} s in "
        "single numbers, of which the processor multiplies twice as many at a time"
    )


def _of_squares(rival: str, rest: str = "") -> Callable[[Figures], str]:
    def said(figures: Figures) -> str:
        if "best_seconds" not in figures.get("squared", {}):
            return ""
        alone = fastest(figures, "squared")
        return (
            f"the products of all columns alone, in doubles, by the library and on all cores, take {alone:.2f} s, "
            f"{alone / fastest(figures, rival):.2f} times the time of the rival{rest}"
        )

    return said


def _of_one_thread(figures: Figures) -> str:
    mine, theirs = (float(figures[name]["best_cpu_seconds"]) for name in ("ours", "intelex"))
    return (
        f"{mine:.3f} s of processor against {theirs:.3f} s: the sums are made by all threads, but checks of the input, "
        "coefficients, standard errors and the record by one"
    )


_FACTORS = "; the rest are factors of all columns that show whether doubles can be trusted, and an inverse for errors"


_FILE = Problem(4_000_000, 54)


def _single(problem: Problem) -> Arrays:
    arrays = problem.arrays()
    return Arrays(arrays.X.astype(np.float32), arrays.y)


def _in_single(arrays: Arrays) -> Arrays:
    """Return the target in single precision too: the rival would make doubles of everything otherwise."""
    return Arrays(arrays.X, arrays.y.astype(np.float32))


def _case(name: str, problem: Problem, rivals: tuple[Contestant, ...], single: bool = False) -> Case:
    kind = ", float32" if single else ""
    return Case(
        name=name,
        title=f"{problem.rows:,} × {problem.width} in memory{kind}",
        contestants=(_OURS, *rivals),
        make=problem.make_arrays,
        load=partial(_single, problem) if single else problem.arrays,
        load_small=lambda: (_single(problem) if single else problem.arrays()).head(5000),
        judge=lambda answer: {},
        main="ours",
        in_memory=True,
        budget_seconds=6.0,
    )


def _stacked(path: Path) -> FloatArray:
    import partsketch

    model = partsketch.fit(str(path), target=TARGET, method="stack", n_partitions=4, random_state=0)
    return np.concatenate([model.intercept, model.coefficients[:, 0]])


def _products(path: Path) -> FloatArray:
    """Multiply as many numbers as the sketches do, in squares, at which the library is quickest, on all cores."""
    import pyarrow.parquet as pq

    about, side = pq.ParquetFile(path).metadata, 1024
    columns = about.num_columns + 1
    sketch_rows = 4 * (columns - 1)
    square = np.ones((side, side))
    for _ in range(round(sketch_rows * columns * about.num_rows / side**3)):
        square = np.ones((side, side)) @ square / side
    return square


def _normals(path: Path) -> FloatArray:
    """Make as many normal numbers as the sketches need and forget them, on all cores."""
    import pyarrow.parquet as pq

    from partsketch.sketches.random import derive_key, fill_normals

    about, height, at_once, threads = pq.ParquetFile(path).metadata, 56, 1024, usable_cores()
    sketch_rows = 4 * about.num_columns

    def work(thread: int) -> None:
        out = np.empty((height, at_once))
        for begin in range(thread * at_once, about.num_rows, threads * at_once):
            rows = np.arange(begin, begin + at_once)
            for first in range(0, sketch_rows, height):
                fill_normals(derive_key(0, "gaussian"), 0, rows, 1.0, out[: sketch_rows - first], first)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    return np.zeros(1)


def _floor(figures: Figures) -> str:
    read, products, normals = (fastest(figures, name) for name in ("read", "products", "normals"))
    return (
        f"reading alone takes {read:.2f} s, the products of the sketches alone, by the library at its quickest, "
        f"{products:.2f} s, and their random numbers alone {normals:.2f} s: "
        f"together {read + products + normals:.2f} s"
    )


def _exact_floor(figures: Figures) -> str:
    """Take the rate of the products of the sketches for those of an exact fit: half of all pairs of columns."""
    columns = _FILE.width + 2
    share = columns * (columns + 1) / 2 / (4 * (columns - 1) * columns)
    read, products = (float(figures[name]["best_cpu_seconds"]) for name in ("read", "products"))
    products *= share
    return (
        f"reading, which keeps all cores busy, took {read:.2f} s of processor, and sums of products, at the rate of "
        f"the library at its quickest, take {products:.2f} s more: about {read / (read + products):.2f} is what is left"
    )


def _file_case(problem: Problem) -> Case:
    return Case(
        name="stack",
        title=f"{problem.rows:,} × {problem.width} in a Parquet file",
        contestants=(
            Contestant("ours", "partsketch: Gaussian stack of 4 partitions", _stacked, "ours"),
            Contestant("exact", "partsketch: exact", ours.fit_parquet, "ours"),
            Contestant(
                "read",
                "pyarrow: only reading, two threads, pre_buffer=False",
                partial(read_only.read_parquet_two_threads, pre_buffer=False),
                "baseline",
            ),
            Contestant("products", "NumPy: only as many multiplications", _products, "baseline"),
            Contestant("normals", "partsketch: only as many random numbers", _normals, "baseline"),
        ),
        make=problem.parquet,
        load=problem.parquet,
        load_small=lambda: problem.small().parquet(),
        judge=lambda answer: {},
        main="ours",
        in_memory=False,
    )


#: Rows and columns, and how many times as long as the normal equations the fit may take.
_WIDE = {
    "w256": (100_000, 256, 1.0),
    "w512": (100_000, 512, 1.0),
    "w1000": (100_000, 1000, 1.05),
    "w2000": (50_000, 2000, 1.1),
}

#: The same against the rival in single precision.
_SINGLE = {"s54": (1_000_000, 54, 1.0), "s200": (400_000, 200, 1.2), "s1000": (100_000, 1000, 1.5)}


def _cases(quick: bool) -> tuple[Case, ...]:
    fewer = 10 if quick else 1
    single = Contestant(
        "intelex", "scikit-learn-intelex in float32, six digits", intelex.fit_arrays, prepare=_in_single
    )
    cases = (
        _case("d8", Problem(1_000_000 // fewer, 8), (_INTELEX,)),
        *(_case(name, Problem(n // fewer, d), (_GRAM, _INTELEX, _SQUARED)) for name, (n, d, _) in _WIDE.items()),
        *(
            _case(name, Problem(n // fewer, d), (single, _IN_DOUBLES, _IN_SINGLES), True)
            for name, (n, d, _) in _SINGLE.items()
        ),
        _file_case(Problem(_FILE.rows // fewer, _FILE.width)),
    )
    return cases[:2] if quick else cases


def _of_reading(figures: Figures) -> float:
    return fastest(figures, "read") / fastest(figures, "exact")


_TARGETS = (
    Target(
        "d8",
        "1,000,000 × 8: at most 0.9 of the time of intelex",
        times("ours", "intelex"),
        0.9,
        False,
        reason=_of_one_thread,
    ),
    *(
        Target(
            name,
            f"{n:,} × {d}: at most {limit:g} times the time of the normal equations",
            times("ours", "gram"),
            limit,
            False,
            "{:.3g}",
            reason=_of_squares("gram", _FACTORS),
        )
        for name, (n, d, limit) in _WIDE.items()
    ),
    *(
        Target(
            name,
            f"{n:,} × {d} in float32: at most {limit:g} times the time of intelex in float32, with all digits",
            times("ours", "intelex"),
            limit,
            False,
            "{:.3g}",
            reason=_of_multiplications,
        )
        for name, (n, d, limit) in _SINGLE.items()
    ),
    Target(
        "stack",
        "Gaussian stack of a Parquet file of 4,000,000 × 54 in at most 1.8 s",
        lambda figures: fastest(figures, "ours"),
        1.8,
        False,
        reason=_floor,
    ),
    Target(
        "stack",
        "Exact fit of that file: at least 0.9 of only reading, tuned by hand",
        _of_reading,
        0.9,
        reason=_exact_floor,
    ),
)

WORKLOAD = Workload("shapes", "Shapes on which others have been ahead", _cases, _TARGETS)
