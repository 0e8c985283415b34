"""Figure 1: excess loss against k, as exact curves given the data and as draws of explicit sketches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from partsketch import theory
from partsketch.common.errors import InputError
from partsketch.common.linalg.blas import one_thread_each
from partsketch.paper.data_sets import DataSet
from partsketch.paper.explicit_sketches import (
    Columns,
    FloatArray,
    excess_losses,
    gaussian_sketches,
    in_order,
    sketched_fits,
)
from partsketch.paper.results import Row, Tables, Value
from partsketch.paper.stacked_draws import stacked_draws
from partsketch.theory import PartitionMoments, simulate


@dataclass(frozen=True)
class ExcessLossSettings:
    """Values of k, rows m of a sketch, draws, the largest k for which β̄ is drawn, and the seed."""

    partition_counts: tuple[int, ...]
    sketch_size: int
    draws: int
    whole_limit: int
    seed: int


def excess_loss_experiment(data: DataSet, settings: ExcessLossSettings) -> Tables:
    """Return the exact curves and the draws of β̄, θ̄ and the stacked fits for every k.

    Parameters
    ----------
    data : DataSet
        Rows in the order in which they are partitioned evenly, the remainder dropped.
    settings : ExcessLossSettings
        Sizes and seed. The sketch of fit i in draw b is stream `b·k + i` of the seed (for β̄, of the seed plus one, and
        with the largest k on the same rows, since the k fits of β̄ are the first k of one independent sequence; for
        orthogonal sketches, of the seed plus two).

    Returns
    -------
    tables
        "curves" (one row per k), "draws" (one per draw) and "summaries" (mean, median, quartiles per estimator and k).
    """
    with one_thread_each():
        columns = Columns.of(data.X, data.y)
        parts = simulate.partition_factors(data.X, data.y, settings.partition_counts, "drop")
        pooled = {k: theory.pooled_moments(moments) for k, moments in parts.items()}
        curves: list[Row] = []
        losses: dict[tuple[str, int], FloatArray] = {}
        for k in settings.partition_counts:
            drawn, bound = _partition_draws(columns, parts[k], pooled[k], settings)
            losses |= {(name, k): values for name, values in drawn.items()}
            curves.append({**_curve(data, k, parts[k], pooled[k], settings.sketch_size), "bound": bound})
        losses |= _whole_draws(columns, pooled, settings)
    ranks = {k: (pooled[k].rank, max(part.rank for part in moments)) for k, moments in parts.items()}
    summaries = [_summary(name, k, values, settings, ranks[k]) for (name, k), values in losses.items()]
    draws: list[Row] = [
        {"estimator": name, "k": k, "draw": draw, "excess_loss": float(value)}
        for (name, k), values in losses.items()
        for draw, value in enumerate(values)
    ]
    return {"curves": curves, "summaries": summaries, "draws": draws}


def _curve(
    data: DataSet, k: int, parts: list[PartitionMoments], pooled: PartitionMoments, size: int
) -> dict[str, Value]:
    ranks = [part.rank for part in parts]
    full = min(ranks) == pooled.columns
    whole = theory.whole_excess_loss(pooled.loss, pooled.rank, size, k)
    try:
        # One partition's stack is its sketch.
        stack: float | None = whole if k == 1 else theory.stacked_excess_loss_given_data(parts, size)
    except InputError:
        # Too few sketch rows for a direction that one partition decides: the approximation has no fixed point.
        stack = None
    return {
        "data_set": data.name,
        "k": k,
        "rows_used": pooled.row_count,
        "rows_per_partition": parts[0].row_count,
        "features": pooled.columns,
        "sketch_size": size,
        "rank": pooled.rank,
        "smallest_partition_rank": min(ranks),
        "largest_partition_rank": max(ranks),
        "singular_partitions": sum(rank < pooled.columns for rank in ranks),
        "minimal_loss": pooled.loss,
        "whole": whole,
        "partition": theory.partition_excess_loss(parts, size),
        "average": theory.unsketched_average_excess_loss(parts),
        "stack_approximate": stack,
        "exact": 0.0,
        "divergence_over_d": theory.divergence(parts) / pooled.columns if full else None,
    }


def _partition_draws(
    columns: Columns, parts: list[PartitionMoments], pooled: PartitionMoments, settings: ExcessLossSettings
) -> tuple[dict[str, FloatArray], float]:
    """θ̄ and the stacked fits of the very same sketches, those of orthogonal ones, and the mean of their bounds."""
    k, rows = len(parts), parts[0].row_count

    def work(index: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        streams = range(index, settings.draws * k, k)
        size, seed = settings.sketch_size, settings.seed
        sketches = gaussian_sketches(columns, size, seed, streams, index * rows, (index + 1) * rows)
        features, target = sketches[:, :, :-1], sketches[:, :, -1]
        whitened = features @ pooled.inverse_root
        residual = (target - features @ pooled.solution)[:, :, None]
        across = whitened.transpose(0, 2, 1)
        return sketches, sketched_fits(features, target, parts[index]), across @ whitened, (across @ residual)[:, :, 0]

    total = np.zeros((settings.draws, pooled.columns))
    gram = np.zeros((settings.draws, pooled.rank, pooled.rank))
    score = np.zeros((settings.draws, pooled.rank))
    sketches = []
    for sketch, fits, gram_part, score_part in in_order(work, k):
        sketches.append(sketch)
        total += fits
        gram += gram_part
        score += score_part
    steps = np.linalg.solve(gram, score[:, :, None])[:, :, 0]
    stacked = stacked_draws(sketches, parts, pooled, settings.seed + 2)
    losses = {
        "partition": excess_losses(total / k, pooled),
        "stack": np.asarray(np.sum(steps**2, axis=1)),
        "weighted": stacked.weighted,
        "orthogonal": stacked.orthogonal,
    }
    if k == 1:
        # Its mean is known, and that of draws is far off where m is near the rank.
        return losses, theory.orthogonal_excess_loss(pooled.loss, pooled.rank, rows, settings.sketch_size, 1)
    return losses, float(np.mean(stacked.bound))


def _whole_draws(
    columns: Columns, pooled: dict[int, PartitionMoments], settings: ExcessLossSettings
) -> dict[tuple[str, int], FloatArray]:
    """β̄; values of k that use the same rows share their sketches."""
    groups: dict[int, list[int]] = {}
    for k, moments in pooled.items():
        if k <= settings.whole_limit:
            groups.setdefault(moments.row_count, []).append(k)
    losses: dict[tuple[str, int], FloatArray] = {}
    for rows, counts in groups.items():
        moments, most = pooled[counts[0]], max(counts)

        def work(index: int, rows: int = rows, most: int = most, moments: PartitionMoments = moments) -> FloatArray:
            streams = range(index, settings.draws * most, most)
            sketches = gaussian_sketches(columns, settings.sketch_size, settings.seed + 1, streams, 0, rows)
            return sketched_fits(sketches[:, :, :-1], sketches[:, :, -1], moments)

        total = np.zeros((settings.draws, moments.columns))
        for index, fits in enumerate(in_order(work, most)):
            total += fits
            if index + 1 in counts:
                losses["whole", index + 1] = excess_losses(total / (index + 1), moments)
    return losses


def _summary(
    name: str, k: int, values: FloatArray, settings: ExcessLossSettings, ranks: Sequence[int]
) -> dict[str, Value]:
    lower, median, upper = (float(value) for value in np.quantile(values, [0.25, 0.5, 0.75]))
    rank = ranks[1] if name == "partition" else ranks[0]
    rows = settings.sketch_size if name in ("partition", "whole") else settings.sketch_size * k
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
    return {
        "estimator": name,
        "k": k,
        "draws": len(values),
        "seed": settings.seed + {"whole": 1, "orthogonal": 2}.get(name, 0),
        "mean": float(np.mean(values)),
        "median": median,
        "lower_quartile": lower,
        "upper_quartile": upper,
        "standard_error": error,
        "variance_is_finite": rows > rank + 3,
    }
