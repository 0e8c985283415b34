"""How often intervals of a meta-analysis hold with few sites: the table of docs/mixed.md, about two minutes.

`python examples/meta_coverage.py 100` draws fewer.

True coefficients of the sites are normal with variance τ²; errors of the sites are known, their variances drawn evenly
from half to one and a half times a mean. Each line has 2,000 draws: standard error of 95% half a point.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from partsketch.theory.meta_analysis import pool

DRAWS = 2000


def shares(sites: int, between: float, mean: float, seed: int, draws: int = DRAWS) -> dict[str, float]:
    """Return how often intervals of 95% hold: of the mean by both laws, of another site, and of τ²."""
    rng = np.random.default_rng([2026, seed])
    hits = dict.fromkeys(("hartung_knapp", "normal", "another", "tau"), 0)
    for _ in range(draws):
        variances = mean * rng.uniform(0.5, 1.5, sites)
        values = math.sqrt(between) * rng.normal(size=sites) + np.sqrt(variances) * rng.normal(size=sites)
        found, plain = pool(values, variances), pool(values, variances, hartung_knapp=False)
        hits["hartung_knapp"] += found.random.lower <= 0 <= found.random.upper
        hits["normal"] += plain.random.lower <= 0 <= plain.random.upper
        assert found.prediction is not None
        hits["another"] += found.prediction[0] <= math.sqrt(between) * rng.normal() <= found.prediction[1]
        hits["tau"] += found.tau_squared_interval[0] <= between <= found.tau_squared_interval[1]
    return {name: count / draws for name, count in hits.items()}


def main(draws: int) -> None:
    """Print the table."""
    print("| sites | τ² against the sites' error variances | mean | mean, normal law | another site | τ² |")
    print("|---:|---|---:|---:|---:|---:|")
    seed = 0
    for sites in (3, 5, 10, 20):
        for told, between, mean in (("none", 0.0, 1.0), ("as large", 1.0, 1.0), ("ten times", 1.0, 0.1)):
            seed += 1
            held = shares(sites, between, mean, seed, draws)
            cells = " | ".join(f"{100 * value:.1f}" for value in held.values())
            print(f"| {sites} | {told} | {cells} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else DRAWS)
