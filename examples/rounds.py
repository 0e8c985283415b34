"""What rounds leave: sites whose sketches have four rows per column answer three questions.

Prints the measured excess loss over exact least squares, as a part of the minimal loss: the median and the largest of
five runs, for 1, 5, 10 and 20 sites. `python examples/rounds.py 1` makes one run of each.
"""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa

import partsketch as ps

COLUMNS, ROUNDS, RUNS = 20, 3, int(sys.argv[1]) if len(sys.argv) > 1 else 5


def site_table(rng: np.random.Generator, rows: int = 400) -> pa.Table:
    """Make up the rows of a site."""
    x = rng.normal(size=(rows, COLUMNS))
    y = x.sum(axis=1) + rng.normal(size=rows)
    return pa.table({**{f"x{j}": x[:, j] for j in range(COLUMNS)}, "y": y})


def excess_losses(sites: dict[str, pa.Table], seed: int) -> list[float]:
    """Return the relative excess loss of the sketches, and after each round."""
    rows = pa.concat_tables(sites.values())
    exact = ps.fit(rows, "y", method="exact")
    best, least = exact.predict(rows), exact.certificate.minimal_loss or 1.0
    size = 4 * (COLUMNS + 1)
    sketches = [ps.sketch(table, "y", site=site, sketch_size=size, random_state=seed) for site, table in sites.items()]
    rounds = ps.refine(sketches)
    found = [float(np.sum((rounds.model.predict(rows) - best) ** 2)) / least]
    for _ in range(ROUNDS):
        rounds = rounds.step([ps.answer(rounds.question, table, site=site) for site, table in sites.items()])
        found.append(float(np.sum((rounds.model.predict(rows) - best) ** 2)) / least)
    return found


def main() -> None:
    """Print the table."""
    heads = ("sketches alone", "1 round", "2 rounds", "3 rounds")
    print("sites   " + "".join(f"{head:20s}" for head in heads) + f"(median, largest of {RUNS})")
    for count in (1, 5, 10, 20):
        rng = np.random.default_rng(count)
        sites = {f"site {number}": site_table(rng) for number in range(count)}
        losses = np.array([excess_losses(sites, seed) for seed in range(RUNS)])
        cells = [f"{np.median(column):8.1e} {column.max():8.1e}" for column in losses.T]
        print(f"{count:5d}   " + "   ".join(cells))


if __name__ == "__main__":
    main()
