"""Do certificates of averages hold for other numbers of columns, partitions and rows than the other tables have.

python -m benchmarks.coverage_shapes [--draws 400]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from unittest.mock import patch

import numpy as np

from benchmarks import coverage, coverage_designs
from benchmarks.coverage import Coverage, measure, table, together
from benchmarks.coverage_designs import DESIGNS

#: Columns, partitions, rows of each, design, sketch rows.
SHAPES = (
    (2, 2, 100, "alike", 6),
    (2, 30, 60, "alike", 6),
    (4, 40, 30, "alike", 8),
    (12, 2, 100, "alike", 16),
    (12, 2, 100, "alike", 20),
    (12, 2, 100, "alike", 48),
    (12, 3, 200, "unlike noise", 16),
    (12, 3, 200, "unlike coefficients and noise", 16),
    (12, 3, 200, "unlike coefficients and noise", 48),
    (31, 3, 120, "alike", 35),
    (31, 3, 120, "alike", 39),
)

_SEED = 141421


def shape_rows(draws: int = 400) -> Iterator[Coverage]:
    """Yield a line for every shape, each of data sets with 50 draws."""
    for columns, count, rows, design, size in SHAPES:
        name = f"{design}, d = {columns}, k = {count}, p = {rows}"
        found = []
        with patch.multiple(coverage_designs, COLUMNS=columns, PARTITIONS=count, ROWS=rows):
            for number in range(max(draws // coverage.DRAWS_OF_ONE, 2)):
                parts = DESIGNS[design](np.random.default_rng([_SEED, number]))
                some = min(draws, coverage.DRAWS_OF_ONE)
                found.append(measure(name, parts, size, some, _SEED + number, "equal", coverage.INNER_DRAWS))
        yield together(found)
        print(table([together(found)]).splitlines()[-1], flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=400)
    print(table(list(shape_rows(parser.parse_args().draws))))


if __name__ == "__main__":
    main()
