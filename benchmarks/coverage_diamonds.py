"""Does the certificate of an averaged fit hold on a real table: diamonds, whose file is sorted by price.

    python -m benchmarks.coverage_diamonds [--draws 2000] [--file diamonds.csv]

The table comes with plotnine (`pip install -r benchmarks/requirements.txt`), from which only the file is read. Eight
partitions in the order of the file have coefficients that have little in common; the same rows shuffled are alike.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.coverage import INNER_DRAWS, SEED, Coverage, measure, table
from benchmarks.coverage_designs import FloatArray, Partition

PARTITIONS, SIZE = 8, 28
NUMBERS = ("carat", "depth", "table", "x", "y", "z")
CATEGORIES = ("cut", "color", "clarity")


def diamonds_file() -> Path | None:
    """Return where plotnine keeps the table; None if it is not installed."""
    found = find_spec("plotnine")
    folder = Path(found.origin).parent if found is not None and found.origin else None
    return None if folder is None else folder / "data" / "diamonds.csv"


def columns(file: Path, categories: bool) -> tuple[FloatArray, FloatArray]:
    """Return the features, ones first and the first level of every category left out, and the price."""
    rows = pd.read_csv(file)
    parts = [np.ones((len(rows), 1)), rows[list(NUMBERS)].to_numpy(np.float64)]
    if categories:
        parts += [pd.get_dummies(rows[name], drop_first=True, dtype=np.float64).to_numpy() for name in CATEGORIES]
    return np.concatenate(parts, axis=1), rows["price"].to_numpy(np.float64)


def partitions(features: FloatArray, target: FloatArray, order: NDArray[np.int64] | None = None) -> list[Partition]:
    """Cut the rows into partitions of nearly one size, in the order of the file or in another."""
    chosen = np.array_split(np.arange(len(target)) if order is None else order, PARTITIONS)
    return [(features[rows], target[rows]) for rows in chosen]


def diamond_rows(draws: int, file: Path | None = None) -> Iterator[Coverage]:
    """Yield the lines: numbers alone and with categories, in the order of the file and shuffled."""
    file = file or diamonds_file()
    if file is None:
        print("diamonds: left out, for plotnine is not installed (benchmarks/requirements.txt)")
        return
    for categories in (False, True):
        features, target = columns(file, categories)
        shuffled = np.random.default_rng(SEED).permutation(len(target))
        for order in (None, shuffled):
            name = f"diamonds, {features.shape[1]} columns, {'sorted by price' if order is None else 'shuffled'}"
            yield measure(name, partitions(features, target, order), SIZE, draws, SEED, inner_draws=INNER_DRAWS)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--file", type=Path, help="diamonds.csv, where plotnine is not installed")
    arguments = parser.parse_args()
    print(table(list(diamond_rows(arguments.draws, arguments.file))))


if __name__ == "__main__":
    main()
