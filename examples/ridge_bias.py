"""How much a sketched ridge fit over-shrinks, and what scaling the penalty does about it.

Prints the relative bias of the mean coefficients, sketched fits against the exact ridge fit, with the penalty as it is
and scaled by 1 − d_λ/m. More draws make the last digit firmer: python examples/ridge_bias.py 20000
"""

from __future__ import annotations

import sys

import numpy as np

from partsketch.simulate import draw_sketches
from partsketch.theory import PartitionMoments, effective_dimension, ridge_penalty_from_sketch, sketched_ridge_penalty

ROWS, COLUMNS = 400, 20


def mean_coefficients(sketches: np.ndarray, penalties: np.ndarray) -> np.ndarray:
    features, targets = sketches[:, :, :-1], sketches[:, :, -1:]
    transposed = np.swapaxes(features, 1, 2)
    penalised = transposed @ features + penalties[:, None, None] * np.eye(COLUMNS)
    return np.asarray(np.linalg.solve(penalised, transposed @ targets)[:, :, 0].mean(axis=0))


def main() -> None:
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, COLUMNS))
    y = X @ np.linspace(1, 2, COLUMNS) + rng.standard_normal(ROWS)
    moments = PartitionMoments.from_rows(X, y)
    print(f"{ROWS} rows, {COLUMNS} columns, {draws} sketches\n    λ   d_λ    m   unscaled   scaled   from the sketch")
    for penalty in (30.0, 100.0, 300.0):
        exact = np.linalg.solve(X.T @ X + penalty * np.eye(COLUMNS), X.T @ y)
        dimension = effective_dimension(X, penalty)
        for size in (30, 40, 160):
            sketches = draw_sketches(moments, size, draws, rng)
            scaled = sketched_ridge_penalty(penalty, dimension, size)
            # Draws come as triangles, with the Gram matrix of a sketch but fewer rows: zero rows make up for them.
            padding = np.zeros((size - sketches.shape[1], COLUMNS))
            own = np.array([ridge_penalty_from_sketch(np.vstack([s[:, :-1], padding]), penalty) for s in sketches])
            biases = [
                np.linalg.norm(mean_coefficients(sketches, penalties) - exact) / np.linalg.norm(exact)
                for penalties in (np.full(draws, penalty), np.full(draws, scaled), own)
            ]
            cells = "   ".join(f"{bias:8.1%}" for bias in biases)
            print(f"{penalty:5.0f} {dimension:5.1f} {size:4d}   {cells}")


if __name__ == "__main__":
    main()
