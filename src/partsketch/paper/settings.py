"""How much of everything: the paper's numbers for the whole study, small ones for a quick look."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DEFAULT_SEED = 2024


@dataclass(frozen=True)
class Settings:
    """What decides the outcome of the study.

    Attributes
    ----------
    seed
        From which every experiment's own seed is derived.
    quick
        Whether this is the small study.
    partition_counts
        Values of k per data set. Those of House and Cover divide the number of rows, so nothing is dropped there.
    draws
        Explicit sketches per data set (the paper: 100, 100, 10).
    whole_limit
        Largest k for which β̄ is drawn; beyond it the exact curve stands alone.
    timing_counts, timing_seconds, timing_repeats
        Values of k in the figures of time, seconds spent on each point, and least number of repetitions.
    grid_counts, grid_sizes, grid_draws
        k, m and number of draws of the check of Theorem 3.3.
    designs
        Random designs behind every average of D.
    bound_sizes, bound_draws
        m and number of draws behind the quantiles that B'_θ is compared with.
    """

    seed: int
    quick: bool
    partition_counts: Mapping[str, tuple[int, ...]]
    draws: Mapping[str, int]
    whole_limit: Mapping[str, int]
    timing_counts: Mapping[str, tuple[int, ...]]
    timing_seconds: float
    timing_repeats: int
    grid_counts: tuple[int, ...]
    grid_sizes: tuple[int, ...]
    grid_draws: int
    designs: int
    bound_sizes: tuple[int, ...]
    bound_draws: int


def whole_study(seed: int = DEFAULT_SEED) -> Settings:
    """Return the settings of the whole study."""
    return Settings(
        seed=seed,
        quick=False,
        partition_counts={
            "digits": (1, 2, 3, 4, 5, 7, 10, 15, 20, 25),
            "house": (1, 2, 3, 5, 10, 20, 40, 80, 160),
            "cover": (1, 2, 4, 5, 8, 10, 20, 50, 100),
        },
        draws={"digits": 100, "house": 100, "cover": 10},
        whole_limit={"digits": 25, "house": 80, "cover": 50},
        timing_counts={
            "digits": (1, 2, 3, 5, 7, 10, 15, 25),
            "house": (1, 2, 5, 10, 20, 50, 100, 200),
            "cover": (1, 2, 5, 10, 20, 50, 100, 200),
        },
        timing_seconds=0.4,
        timing_repeats=5,
        grid_counts=(1, 2, 4, 8, 16),
        grid_sizes=(12, 20, 30),
        grid_draws=2000,
        designs=60,
        bound_sizes=(48, 64, 96, 128, 192, 256, 384, 500),
        bound_draws=200,
    )


def quick_study(seed: int = DEFAULT_SEED) -> Settings:
    """Return the settings of a study that takes less than a minute."""
    return Settings(
        seed=seed,
        quick=True,
        partition_counts={"digits": (1, 3, 5, 15), "house": (1, 3, 10, 40), "cover": (1, 2, 5, 20)},
        draws={"digits": 8, "house": 20, "cover": 2},
        whole_limit={"digits": 15, "house": 3, "cover": 5},
        timing_counts={"digits": (1, 3, 10, 25), "house": (1, 5, 20, 100), "cover": (1, 10, 100)},
        timing_seconds=0.03,
        timing_repeats=3,
        grid_counts=(1, 4, 16),
        grid_sizes=(12, 30),
        grid_draws=400,
        designs=10,
        bound_sizes=(48, 96, 256),
        bound_draws=40,
    )


def derive_seed(seed: int, *names: str | int) -> int:
    """Return a seed of 63 bits that belongs to these names under the study's seed."""
    text = "/".join(str(part) for part in (seed, *names))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


@dataclass(frozen=True)
class Places:
    """Where the study writes, and where scikit-learn's data are if they are to be used instead of the package's."""

    output: Path
    data_home: Path | None
