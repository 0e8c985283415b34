"""How unlike partitions are: D and its expectation, the Burg divergence, the gap F, and heat maps of D_ij."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partsketch import theory
from partsketch.common.linalg.blas import one_thread_each
from partsketch.paper.data_sets import DataSet, shuffled_rows
from partsketch.paper.designs import DESIGNS, synthetic_design
from partsketch.paper.explicit_sketches import FloatArray, in_order
from partsketch.paper.results import Row, Tables
from partsketch.paper.settings import derive_seed
from partsketch.theory import PartitionMoments, simulate
from partsketch.theory.moments import trace_products


@dataclass(frozen=True)
class DesignSettings:
    """Rows, columns, values of k, sketch size of the gap, number of random designs, and the seed."""

    n: int
    d: int
    partition_counts: tuple[int, ...]
    sketch_size: int
    designs: int
    seed: int


def _grams(X: FloatArray, k: int) -> list[FloatArray]:
    p = len(X) // k
    return [X[i * p : (i + 1) * p].T @ X[i * p : (i + 1) * p] for i in range(k)]


def random_design_experiment(settings: DesignSettings) -> Tables:
    """Average D, BD and `B_β − B_θ` over random designs, beside Remark 3.4 and F printed and corrected.

    Returns
    -------
    tables
        "designs": one row per design and k. "averages": one row per kind of design and k. "copies": D of partitions
        that are copies of one another.
    """
    n, d, m = settings.n, settings.d, settings.sketch_size

    def work(index: int) -> list[Row]:
        rows: list[Row] = []
        for name in DESIGNS:
            X = synthetic_design(name, n, d, np.random.default_rng(derive_seed(settings.seed, name, index)))
            for k in settings.partition_counts:
                grams = _grams(X, k)
                divergence = theory.divergence(grams)
                whole = theory.expected_whole_excess_loss(n, d, m, k, 1.0)
                partition = theory.expected_partition_excess_loss(n // k * k, d, m, k, 1.0, divergence)
                # Every pair needs a decomposition of its own: a few designs and values of k show the identity.
                burg = theory.burg_divergence(grams) if index < 2 and k <= 40 else None
                entry: Row = {"design": name, "index": index, "k": k, "divergence": divergence, "burg_divergence": burg}
                rows.append({**entry, "whole": whole, "partition": partition})
        return rows

    with one_thread_each():
        designs = [row for rows in in_order(work, settings.designs) for row in rows]
        block = np.random.default_rng(settings.seed).standard_normal((50, d))
        copies: list[Row] = [
            {"k": k, "d": d, "divergence": theory.divergence([block.T @ block] * k)} for k in settings.partition_counts
        ]
    averages = [_average(designs, name, k, settings) for name in DESIGNS for k in settings.partition_counts]
    return {"averages": averages, "copies": copies, "designs": designs}


def _average(designs: list[Row], name: str, k: int, settings: DesignSettings) -> Row:
    n, d, m = settings.n, settings.d, settings.sketch_size
    rows = [row for row in designs if row["design"] == name and row["k"] == k]
    divergences = np.array([row["divergence"] for row in rows], dtype=np.float64)
    gaps = np.array([row["whole"] for row in rows], dtype=np.float64) - np.array(
        [row["partition"] for row in rows], dtype=np.float64
    )
    gaussian = name == "iid"
    return {
        "design": name,
        "n": n,
        "d": d,
        "k": k,
        "sketch_size": m,
        "designs": len(rows),
        "divergence_over_d": float(divergences.mean() / d),
        "standard_error": float(divergences.std(ddof=1) / d / np.sqrt(len(rows))),
        "expected_over_d": theory.gaussian_design_divergence(n, d, k) / d if gaussian else None,
        "gap": float(gaps.mean()),
        "gap_standard_error": float(gaps.std(ddof=1) / np.sqrt(len(rows))),
        "gap_corrected": theory.gaussian_design_gap(n, d, m, k, 1.0) if gaussian else None,
        "gap_printed": d * (theory.printed_gap_factor(k, n, d, m) + 1) if gaussian else None,
        # B_θ ≤ B_β is linear in D: this is where the two are equal.
        "largest_winning_divergence_over_d": ((n - d) / (k * (m - d - 1)) + 1) / ((n / k - d) / (m - d - 1) + 1),
    }


def data_divergence_experiment(data: DataSet, counts: tuple[int, ...], left_out: int) -> Tables:
    """Return D and BD of real partitions of full rank for every k, in default and in shuffled order.

    Both orders are looked at with all rows, and without the `left_out` rows of highest leverage: what falls then was
    the work of those few rows, what stays comes from the order.
    """
    rows: list[Row] = []
    with one_thread_each():
        ranking = np.argsort(theory.leverage_scores(data.X))[::-1]
        for order, chosen in (("default", np.arange(len(data.X))), ("shuffled", shuffled_rows(len(data.X)))):
            for count in (0, left_out):
                kept = chosen[~np.isin(chosen, ranking[:count])]
                for k, parts in simulate.partition_factors(data.X[kept], data.y[kept], counts, "drop").items():
                    rows += _data_row(data.name, order, count, k, parts)
    return {"data": rows}


def _data_row(name: str, order: str, left_out: int, k: int, parts: list[PartitionMoments]) -> list[Row]:
    d, n = parts[0].columns, sum(part.row_count for part in parts)
    if min(part.rank for part in parts) < d:
        return []
    return [
        {
            "data_set": name,
            "order": order,
            "rows_left_out": left_out,
            "k": k,
            "d": d,
            "divergence": theory.divergence(parts),
            "burg_divergence": theory.burg_divergence(parts) if k <= 40 else None,
            "expected_gaussian": theory.gaussian_design_divergence(n, d, k),
        }
    ]


def heat_map_experiment(data: DataSet, k: int) -> Tables:
    """Return D_ij/r_j of all pairs of k partitions in the rows' order, r_j the rank of partition j.

    With a singular G_j its pseudo-inverse stands in: what partition j does not see is not counted.
    """
    with one_thread_each():
        parts = simulate.partition_factors(data.X, data.y, [k], "drop")[k]
        traces = trace_products(parts)
    ranks = [part.rank for part in parts]
    rows: list[Row] = [
        {
            "data_set": data.name,
            "i": i + 1,
            "j": j + 1,
            "trace": float(traces[i, j]),
            "rank_of_j": ranks[j],
            "relative": float(traces[i, j]) / ranks[j],
        }
        for i in range(k)
        for j in range(k)
    ]
    return {"pairs": rows}
