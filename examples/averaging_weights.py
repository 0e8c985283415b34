"""What weights save when partitions are unlike or uneven: of averaged fits, and of stacked sketches.

`python examples/averaging_weights.py 10` averages over 10 seeds instead of 50.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import partsketch as ps

SEEDS, SKETCH_SIZE = int(sys.argv[1]) if len(sys.argv) > 1 else 50, 24


def mean_excess(X: np.ndarray, y: np.ndarray, site: np.ndarray, **options: Any) -> float:
    """Return the mean excess loss over seeds, as a share of the minimal loss."""
    import pandas as pd

    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]).assign(site=site)
    design = np.column_stack([np.ones(len(X)), X])
    exact, minimal = np.linalg.lstsq(design, y, rcond=None)[:2]
    losses = []
    for seed in range(SEEDS):
        model = ps.SketchedRegression(partition_by="site", sketch_size=SKETCH_SIZE, random_state=seed, **options).fit(
            frame, y
        )
        losses.append(np.sum((design @ (np.r_[model.intercept_, model.coef_] - exact)) ** 2))
    return float(np.mean(losses) / minimal[0])


def main() -> None:
    rng = np.random.default_rng(0)
    designs = {
        "six like sites of 200 rows": (np.repeat(range(6), 200), np.ones(6)),
        "five sites of 100 rows, one of 3000": (np.repeat(range(6), [100] * 5 + [3000]), np.ones(6)),
        "six sites, scales from 0.3 to 3": (np.repeat(range(6), 200), np.geomspace(0.3, 3, 6)),
    }
    print(f"mean excess loss over {SEEDS} seeds, sketches of {SKETCH_SIZE} rows, share of the minimal loss")
    print(f"{'design':38s} {'equal':>8s} {'inverse variance':>18s} {'stack':>8s} {'auto':>8s}")
    for name, (site, scales) in designs.items():
        X = rng.standard_normal((len(site), 5)) * scales[site][:, None]
        y = 1 + X @ np.ones(5) + rng.standard_normal(len(site))
        equal = mean_excess(X, y, site, method="partition")
        weighted = mean_excess(X, y, site, method="partition", averaging="inverse_variance")
        stacked = mean_excess(X, y, site, method="stack", weighting="rows")
        auto = mean_excess(X, y, site, method="stack", weighting="auto")
        print(f"{name:38s} {equal:8.1%} {weighted:18.1%} {stacked:8.1%} {auto:8.1%}")


if __name__ == "__main__":
    main()
