"""What privacy costs: loss and coverage of files with a promise, with AdaSSP and a secret Gaussian sketch beside.

Prints the two tables of docs/privacy.md; a few minutes of one core. Rows are normal, y is explained to one half, and
bounds are public: ±4 standard deviations for each feature, ±3.5 for y, spreads known. Noise is normal, of the size that
the promise takes; that files have this noise is tested with OpenDP's own draws in tests/sites/noisy.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, t

from partsketch.theory.gaussian_mechanism import gaussian_scale
from partsketch.theory.noisy_products import fit_noisy_products

FloatArray = NDArray[np.float64]

DELTA = 1e-6
#: Files of the same rows: noise is quicker to draw than rows.
FILES_PER_TABLE = 4
#: As in `sites/noisy`: the norm of features, and the share of targets; the signal that errors need.
CLIP, OF_TARGETS, REACH, LEAST_SIGNAL = 1.1, 0.5, 3.5, 3.0


def drawn(draw: np.random.Generator, rows: int, columns: int) -> tuple[FloatArray, FloatArray]:
    """Return rows (1, x, y) in spreads, and the true coefficients; `columns` counts the ones and not y."""
    x = draw.normal(size=(rows, columns - 1))
    slopes = np.full(columns - 1, math.sqrt(0.5 / (columns - 1)))
    y = x @ slopes + draw.normal(size=rows) * math.sqrt(0.5)
    return np.column_stack([np.ones(rows), np.clip(x, -4, 4), np.clip(y, -REACH, REACH)]), np.append(0.0, slopes)


def symmetric(draw: np.random.Generator, size: int, deviation: float) -> FloatArray:
    values = draw.normal(size=(size, size))
    return np.asarray(deviation * (values + values.T) / 2)


def clipped(rows: FloatArray) -> tuple[FloatArray, float, float]:
    """Return rows as a file has them, the factor of y, and the largest norm."""
    columns = rows.shape[1] - 1
    clip = CLIP * math.sqrt(columns)
    factor = clip * math.sqrt(OF_TARGETS) / REACH
    scaled = rows * np.append(np.ones(columns), factor)
    scaled *= np.minimum(1, clip / np.linalg.norm(scaled[:, :columns], axis=1))[:, None]
    return scaled, factor, clip * math.sqrt(1 + OF_TARGETS)


def excess(products: FloatArray, coefficients: FloatArray) -> float:
    """Return what coefficients lose, relative to the minimal loss."""
    gram, moments = products[:-1, :-1], products[:-1, -1]
    best = np.linalg.solve(gram, moments)
    away = coefficients - best
    return float(away @ gram @ away / (products[-1, -1] - moments @ best))


def adassp(draw: np.random.Generator, rows: FloatArray, factor: float, epsilon: float) -> FloatArray:
    """Adaptive sufficient statistics (Wang, 2018) of clipped rows: a third of the budget each for λ_min, XᵀX, Xᵀy."""
    columns = rows.shape[1] - 1
    clip = CLIP * math.sqrt(columns)
    x, y = rows[:, :-1], rows[:, -1] / factor
    size = math.sqrt(math.log(6 / DELTA)) / (epsilon / 3)
    gram = x.T @ x
    least = max(
        0.0, float(np.linalg.eigvalsh(gram)[0]) + size * clip**2 * (draw.normal() - math.sqrt(math.log(6 / DELTA)))
    )
    ridge = max(
        0.0,
        math.sqrt(columns * math.log(6 / DELTA) * math.log(2 * columns**2 / 0.05)) * clip**2 / (epsilon / 3) - least,
    )
    noise = np.triu(draw.normal(size=gram.shape))
    noisy = gram + size * clip**2 * (noise + np.triu(noise, 1).T)
    moments = x.T @ y + size * clip * REACH * draw.normal(size=columns)
    return np.asarray(np.linalg.solve(noisy + ridge * np.eye(columns), moments))


def losses(draw: np.random.Generator, rows_count: int, columns: int, epsilon: float, draws: int) -> list[float]:
    """Median excess: of a file with a promise, of AdaSSP with the same promise, of a secret sketch of 100 rows."""
    found: list[list[float]] = [[], [], []]
    for _ in range(draws):
        rows, _ = drawn(draw, rows_count, columns)
        scaled, factor, norm = clipped(rows)
        deviation = gaussian_scale(epsilon, DELTA) * norm**2
        products, plain = scaled.T @ scaled, rows.T @ rows
        noisy = products + symmetric(draw, columns + 1, deviation)
        fit = fit_noisy_products(noisy, np.eye(columns + 1)[:-1], np.eye(columns + 1)[-1], deviation)
        found[0].append(excess(products, fit.coefficients))
        found[1].append(excess(products, factor * adassp(draw, scaled, factor, epsilon)))
        root = np.linalg.cholesky(plain).T
        sketch = draw.normal(size=(100, columns + 1)) @ root
        found[2].append(excess(plain, np.linalg.lstsq(sketch[:, :-1], sketch[:, -1], rcond=None)[0]))
    return [float(np.median(values)) for values in found]


def coverage(
    draw: np.random.Generator, rows_count: int, columns: int, epsilon: float, draws: int
) -> tuple[float, float, float]:
    """Share of 95% intervals that hold the truth, of those that hold what privacy cost, and of files without any."""
    truth_held, cost_held, none = [], [], 0
    for _ in range(draws // FILES_PER_TABLE):
        rows, truth = drawn(draw, rows_count, columns)
        scaled, factor, norm = clipped(rows)
        deviation = gaussian_scale(epsilon, DELTA) * norm**2
        products = scaled.T @ scaled
        best = np.linalg.solve(products[:-1, :-1], products[:-1, -1])
        for _ in range(FILES_PER_TABLE):
            noisy = products + symmetric(draw, columns + 1, deviation)
            fit = fit_noisy_products(noisy, np.eye(columns + 1)[:-1], np.eye(columns + 1)[-1], deviation)
            if fit.repaired or fit.signal < LEAST_SIGNAL:
                none += 1
                continue
            freedom = max(noisy[0, 0] - columns, 1)
            covariance = fit.covariance + max(fit.minimal_loss, 0) / freedom * fit.inverse
            reach = t.ppf(0.975, freedom) * np.sqrt(np.diagonal(covariance))
            truth_held.append(np.mean(np.abs(fit.coefficients - truth * factor) < reach))
            away = fit.coefficients - best
            lost = away @ products[:-1, :-1] @ away
            scaled_lost = lost * fit.excess_freedom / fit.excess_loss
            cost_held.append(0.025 < chi2.cdf(scaled_lost, fit.excess_freedom) < 0.975)
    if none > 0.5 * draws:
        return math.nan, math.nan, none / draws
    return float(np.mean(truth_held)), float(np.mean(cost_held)), none / draws


def main() -> None:
    draw = np.random.default_rng(21)
    print("| rows | file with a promise | AdaSSP | secret sketch, m = 100 |\n|---|---|---|---|")
    for rows in (1000, 3000, 10_000, 30_000):
        values = losses(draw, rows, 6, 1.0, 400 if rows <= 10_000 else 150)
        print(f"| {rows:,} | " + " | ".join(f"{100 * value:.2g}%" for value in values) + " |")
    print("\n| rows | columns | ε = 0.3 | ε = 1 | ε = 3 |\n|---|---|---|---|---|")
    for rows in (1000, 10_000, 100_000):
        for columns in (3, 6, 12):
            cells = []
            for epsilon in (0.3, 1.0, 3.0):
                truth, cost, none = coverage(draw, rows, columns, epsilon, 2000 if rows < 100_000 else 1200)
                told = "none" if math.isnan(truth) else f"{100 * truth:.1f} / {100 * cost:.1f}"
                cells.append(told + (f" ({none:.0%} none)" if 0 < none <= 0.5 else ""))
            print(f"| {rows:,} | {columns} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
