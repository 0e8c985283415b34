"""Draws tables and files, and measures what privacy costs and how often stated intervals hold; part by part."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.privacy.designs import NORMAL, OTHERS, Design
from benchmarks.privacy.files import DELTA, Rows, rows_of
from benchmarks.problem import FloatArray
from partsketch.common.linalg.blas import one_thread_each

#: Files of the same table: noise is quicker to draw than rows.
FILES_PER_TABLE = 4
#: Rows and columns of the designs that nothing was chosen with.
OTHER_SIZES, OTHER_COLUMNS, OTHER_EPSILONS = (3000, 30_000), (4, 10), (0.5, 2.0)
EPSILONS = (0.3, 1.0, 3.0)
Line = dict[str, Any]


def losses(quick: bool) -> Iterator[Line]:
    """Median excess with 6 columns and ε = 1: a file with a promise, AdaSSP, a secret sketch of 100 rows."""
    for number, count in enumerate((1000, 3000, 10_000, 30_000)):
        rng = np.random.default_rng([2026, 1, number])
        found: list[list[float]] = [[], [], []]
        for _ in range(10 if quick else 400):
            rows = rows_of(NORMAL, rng, count, 6)
            (model,) = rows.files(rng, 1.0, 1)
            found[0].append(rows.excess(model)[1])
            found[1].append(_excess(rows.clean, adassp(rng, rows, 1.0)))
            root = np.linalg.cholesky(rows.plain).T
            sketch = rng.normal(size=(100, len(root))) @ root
            found[2].append(_excess(rows.plain, np.linalg.lstsq(sketch[:, :-1], sketch[:, -1])[0]))
        names = ("promise", "adassp", "sketch")
        yield {"rows": count, "tables": len(found[0])} | {
            name: float(np.median(values)) for name, values in zip(names, found, strict=True)
        }


def _excess(products: FloatArray, coefficients: FloatArray) -> float:
    """Return what coefficients lose, relative to the minimal loss."""
    gram, moments = products[:-1, :-1], products[:-1, -1]
    best = np.linalg.solve(gram, moments)
    away = coefficients - best
    return float(away @ gram @ away / (products[-1, -1] - moments @ best))


def adassp(rng: np.random.Generator, rows: Rows, epsilon: float) -> FloatArray:
    """Adaptive sufficient statistics (Wang, 2018) of the same clipped rows: a third each for λ_min, XᵀX and Xᵀy."""
    gram, moments, clip = rows.clean[:-1, :-1], rows.clean[:-1, -1], rows.measures.clip
    columns, reach = len(gram), rows.measures.bounds[-1].reach
    size = math.sqrt(math.log(6 / DELTA)) / (epsilon / 3)
    least = float(np.linalg.eigvalsh(gram)[0]) + size * clip**2 * (rng.normal() - math.sqrt(math.log(6 / DELTA)))
    wanted = math.sqrt(columns * math.log(6 / DELTA) * math.log(2 * columns**2 / 0.05)) * clip**2 / (epsilon / 3)
    noise = np.triu(rng.normal(size=gram.shape))
    noisy = gram + size * clip**2 * (noise + np.triu(noise, 1).T) + max(0.0, wanted - max(0.0, least)) * np.eye(columns)
    return np.asarray(np.linalg.solve(noisy, moments + size * clip * reach * rng.normal(size=columns)))


def coverage(
    design: Design, count: int, columns: int, epsilons: tuple[float, ...], tables: int, seed: list[int]
) -> Line:
    """Return how often intervals of 95% hold, of files of the same tables for each ε."""
    rng = np.random.default_rng([2026, *seed])
    truths: dict[float, list[float]] = {epsilon: [] for epsilon in epsilons}
    beside: dict[float, list[float]] = {epsilon: [] for epsilon in epsilons}
    endless: dict[float, list[float]] = {epsilon: [] for epsilon in epsilons}
    costs: dict[float, list[float]] = {epsilon: [] for epsilon in epsilons}
    shares: dict[float, list[float]] = {epsilon: [] for epsilon in epsilons}
    for _ in range(tables):
        rows = rows_of(design, rng, count, columns)
        for epsilon in epsilons:
            for model in rows.files(rng, epsilon, FILES_PER_TABLE):
                low, high = model.conf_int().T
                truths[epsilon].append(float(np.mean((low < rows.truth) & (rows.truth < high))))
                endless[epsilon].append(float(np.mean(np.isinf(high))))
                if model.certificate.kind == "unavailable":
                    continue
                beside[epsilon].append(truths[epsilon][-1])
                excess, share = rows.excess(model)
                costs[epsilon].append(_holds(model.certificate.interval(0.95), excess))
                if model.certificate.relative_excess_loss is not None:
                    shares[epsilon].append(_holds(model.certificate.interval(0.95, relative=True), share))
    return {
        "design": design.name, "rows": count, "columns": columns, "tables": tables,
        "files": tables * FILES_PER_TABLE, "seed": [2026, *seed],
        "cells": {
            f"{epsilon:g}": {
                "truth": _mean(truths[epsilon]), "endless": _mean(endless[epsilon]),
                "stated": len(costs[epsilon]), "cost": _mean(costs[epsilon]), "beside": _mean(beside[epsilon]),
                "told": len(shares[epsilon]), "share": _mean(shares[epsilon]),
            }
            for epsilon in epsilons
        },
    }  # fmt: skip


def _holds(ends: tuple[float, float], value: float) -> float:
    return float(ends[0] < value < ends[1])


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None


def stated(count: int) -> Callable[[bool], Iterator[Line]]:
    """Return what measures the design that clip factor and limits were chosen with, anew, for so many rows."""

    def lines(quick: bool) -> Iterator[Line]:
        for columns in (3, 6, 12):
            # Where rows decide and not the noise, each table counts once: of few columns there are more of them.
            tables = 2000 if columns == 3 and count > 1000 else 500
            yield coverage(NORMAL, count, columns, EPSILONS, 5 if quick else tables, [5, count, columns])

    return lines


def other(number: int) -> Callable[[bool], Iterator[Line]]:
    """Return what measures a design that nothing was chosen with."""

    def lines(quick: bool) -> Iterator[Line]:
        for count in OTHER_SIZES:
            for columns in OTHER_COLUMNS:
                seed = [4, number, count, columns]
                yield coverage(OTHERS[number], count, columns, OTHER_EPSILONS, 5 if quick else 500, seed)

    return lines


#: What is measured, in parts of at most a few minutes each.
PARTS: dict[str, Callable[[bool], Iterator[Line]]] = {
    "losses": losses,
    **{f"stated-{count}": stated(count) for count in (1000, 10_000, 100_000)},
    **{f"other-{number}": other(number) for number in range(len(OTHERS))},
}


def run_part(name: str, quick: bool) -> list[Line]:
    """Return the lines of one part, and print them."""
    found = []
    with one_thread_each():
        for line in PARTS[name](quick):
            found.append(line)
            print(f"privacy / {name}: {line}", flush=True)
    return found
