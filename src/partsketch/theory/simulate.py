"""Draws of the estimators without touching rows again: one pass for triangular factors, then any k, m and seed.

Two facts make a draw cheap and exact in law. A Gaussian sketch `S [X y]` is distributed as `N R`, R the triangular
factor of `[X y]` and N an m × (d+1) Gaussian matrix, and only the triangular factor of N matters: independent chi
variates on its diagonal, normals above it (Bartlett). And for a single sketched fit even that is too much: with r the
rank, `θ − a = √ℓ · H g/√χ²_{m−r+1}` in law, g a standard normal vector and `H Hᵀ = G⁺`: a multivariate t variate.

Examples
--------
The mean of draws is what the formula says, within the error of 10,000 draws:

>>> import numpy as np, partsketch as ps
>>> from partsketch import simulate
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((4000, 5))
>>> y = X.sum(axis=1) + rng.standard_normal(4000)
>>> partitions = simulate.partition_factors(X, y, [4])[4]
>>> losses = simulate.draw_excess_losses("partition", partitions, 60, 10_000, rng)
>>> expected = ps.theory.partition_excess_loss(partitions, sketch_size=60)
>>> bool(abs(losses.mean() / expected - 1) < 0.03)
True
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from partsketch.common.errors import InputError
from partsketch.theory.arguments import FloatArray, require_count, sizes_for, weights_for
from partsketch.theory.moments import PartitionLike, PartitionMoments, moments_of, pooled_moments, triangular

METHODS = ("partition", "whole", "stack")


def partition_factors(
    X: ArrayLike, y: ArrayLike, partition_counts: Sequence[int], remainder: str = "spread"
) -> dict[int, list[PartitionMoments]]:
    """Moments of the partitions, in order of rows, for several k from one pass over the rows.

    Rows are cut at every boundary that any k has; each piece is factored once and the factors of the pieces of a
    partition are merged by factoring them again.

    Parameters
    ----------
    X, y : arrays of shape (n, d) and (n,)
        The rows.
    partition_counts : sequence of int
        The values of k.
    remainder : str
        "spread": sizes differ by at most one. "drop": k equal partitions, the last n − k⌊n/k⌋ rows left out.

    Returns
    -------
    dict
        From k to the list of the k partitions' moments.
    """
    data = np.column_stack([np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)])
    rows = len(data)
    if remainder not in ("spread", "drop"):
        raise InputError(f"remainder is {remainder!r}: use 'spread' or 'drop'.")
    edges: dict[int, list[int]] = {}
    for count in partition_counts:
        require_count("k", count)
        if count > rows:
            raise InputError(f"k = {count} partitions need at least as many rows, not {rows}: use fewer partitions.")
        small, extra = divmod(rows, count)
        extra = extra if remainder == "spread" else 0
        edges[count] = [i * small + min(i, extra) for i in range(count + 1)]
    cuts = sorted({edge for row_edges in edges.values() for edge in row_edges})
    pieces = [triangular(data[start:stop]) for start, stop in pairwise(cuts)]
    position = {cut: index for index, cut in enumerate(cuts)}
    return {
        count: [
            PartitionMoments.from_triangular(np.vstack(pieces[position[start] : position[stop]]), stop - start)
            for start, stop in pairwise(row_edges)
        ]
        for count, row_edges in edges.items()
    }


def bartlett_factors(columns: int, sketch_size: int, draws: int, rng: np.random.Generator) -> FloatArray:
    """Triangular factors T of m × q Gaussian matrices with entries N(0, 1/m), drawn directly (Bartlett).

    Parameters
    ----------
    columns : int
        q.
    sketch_size : int
        m; below q the factor is trapezoidal with m rows.
    draws : int
        Number of independent factors.
    rng : numpy.random.Generator
        Source of randomness; the same state gives the same draws.

    Returns
    -------
    array of shape (draws, min(m, q), q)
        `TᵀT` has the law of `NᵀN`.
    """
    rows = min(sketch_size, columns)
    factors = np.triu(rng.standard_normal((draws, rows, columns)), 1)
    diagonal = np.arange(rows)
    factors[:, diagonal, diagonal] = np.sqrt(rng.chisquare(sketch_size - diagonal, size=(draws, rows)))
    return np.asarray(factors / np.sqrt(sketch_size))


def draw_sketches(moments: PartitionMoments, sketch_size: int, draws: int, rng: np.random.Generator) -> FloatArray:
    """Matrices with the law of the triangular factor of `S [X y]`, S Gaussian with m rows.

    Parameters
    ----------
    moments : PartitionMoments
        Of the sketched rows.
    sketch_size, draws, rng
        As in `bartlett_factors`.

    Returns
    -------
    array of shape (draws, min(m, rows of the factor), d + 1)
        Usable in place of the sketches, with m as their row count.
    """
    require_count("sketch_size", sketch_size)
    return np.asarray(bartlett_factors(len(moments.factor), sketch_size, draws, rng) @ moments.factor)


def draw_coefficients(
    method: str,
    partitions: Sequence[PartitionLike],
    sketch_size: int | Sequence[int],
    draws: int,
    rng: np.random.Generator,
    *,
    n_sketches: int | None = None,
    weights: ArrayLike | None = None,
) -> FloatArray:
    """Draw an estimator that uses Gaussian sketches, exactly in law.

    Parameters
    ----------
    method : str
        "partition" (θ̄), "whole" (β̄) or "stack" (one fit on all stacked sketches).
    partitions : sequence of PartitionMoments or of pairs (X_i, y_i)
        The data; any rank, minimum-norm fits.
    sketch_size : int or sequence of int
        Rows m of each sketch; at least the rank of what is sketched (for "stack", Σm_i at least the total rank).
    draws : int
        Number of draws.
    rng : numpy.random.Generator
        Source of randomness; the same state gives the same draws.
    n_sketches : int, optional
        For "whole", the number of averaged fits; the number of partitions by default.
    weights : array of shape (k,), optional
        For "partition", averaging weights; equal by default.

    Returns
    -------
    array of shape (draws, d)
        Coefficients.
    """
    moments = moments_of(partitions)
    require_count("draws", draws)
    if method == "partition":
        shares = weights_for(len(moments), weights)
        sizes = sizes_for(len(moments), sketch_size)
        total = np.zeros((draws, moments[0].columns))
        for index, (share, part, size) in enumerate(zip(shares, moments, sizes, strict=True)):
            total += share * _draw_fits(part, int(size), draws, rng, f"partition {index}")
        return total
    pooled = pooled_moments(moments)
    if method == "whole":
        count = len(moments) if n_sketches is None else n_sketches
        require_count("n_sketches", count)
        size = int(sizes_for(1, sketch_size)[0])
        fits = _draw_fits(pooled, size, draws * count, rng, "the data")
        return np.asarray(fits.reshape(draws, count, -1).mean(axis=1))
    if method == "stack":
        return _draw_stacked(moments, pooled, sizes_for(len(moments), sketch_size), draws, rng)
    raise InputError(f"method is {method!r}: use one of {', '.join(METHODS)}.")


def draw_excess_losses(
    method: str,
    partitions: Sequence[PartitionLike],
    sketch_size: int | Sequence[int],
    draws: int,
    rng: np.random.Generator,
    *,
    n_sketches: int | None = None,
    weights: ArrayLike | None = None,
) -> FloatArray:
    """Excess losses `‖X (a − a*)‖²` of draws; arguments as in `draw_coefficients`.

    Returns
    -------
    array of shape (draws,)
        Their mean is finite for m > r + 1, their variance for m > r + 3.
    """
    moments = moments_of(partitions)
    pooled = pooled_moments(moments)
    fits = draw_coefficients(method, moments, sketch_size, draws, rng, n_sketches=n_sketches, weights=weights)
    return np.asarray(np.sum(((fits - pooled.solution) @ pooled.root.T) ** 2, axis=1))


def _draw_fits(moments: PartitionMoments, size: int, draws: int, rng: np.random.Generator, where: str) -> FloatArray:
    if size < moments.rank:
        raise InputError(
            f"sketch_size {size} is below the rank {moments.rank} of {where}, where the law of the fit is not that of "
            f"full row space: use a sketch_size of at least {moments.rank}."
        )
    normals = rng.standard_normal((draws, moments.rank))
    chi = np.sqrt(rng.chisquare(size - moments.rank + 1, size=(draws, 1)))
    noise = (normals / chi) @ moments.inverse_root.T
    return np.asarray(moments.solution + np.sqrt(moments.loss) * noise)


def _draw_stacked(
    moments: list[PartitionMoments],
    pooled: PartitionMoments,
    sizes: FloatArray,
    draws: int,
    rng: np.random.Generator,
) -> FloatArray:
    if sizes.sum() < pooled.rank:
        raise InputError(
            f"the sketches have {sizes.sum():g} rows together, below the rank {pooled.rank} of the data: use larger "
            "sketches."
        )
    gram = np.zeros((draws, pooled.rank, pooled.rank))
    score = np.zeros((draws, pooled.rank))
    for part, size in zip(moments, sizes, strict=True):
        # In coordinates where the exact Gram matrix is the identity the normal equations are safe to solve.
        whitened = part.root @ pooled.inverse_root
        residual = part.factor[:, -1] - part.root @ pooled.solution
        sketched = bartlett_factors(len(whitened), int(size), draws, rng) @ np.column_stack([whitened, residual])
        features, target = sketched[:, :, :-1], sketched[:, :, -1:]
        gram += features.transpose(0, 2, 1) @ features
        score += (features.transpose(0, 2, 1) @ target)[:, :, 0]
    steps = np.linalg.solve(gram, score[:, :, None])[:, :, 0]
    return np.asarray(pooled.solution + steps @ pooled.inverse_root.T)
