"""What a formula costs, in multiples of fits of plain columns, from a table in memory and from Parquet.

    python -m benchmarks.formulas                   # 1,000,000 rows; close other programs first

Every fit is measured in turn with those of the columns that the formula names, its text encoded, and of the columns
that it makes, made beforehand and kept as numbers; the best of all rounds counts.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from formulaic import model_matrix

import partsketch as ps
from benchmarks.robust import best_times

FORMULA = "fare ~ log(distance) + C(zone) * night + bs(hour, 4)"
NUMBERS = ["distance", "night", "hour"]


def make_rows(count: int) -> pd.DataFrame:
    """Return what the formula names, hours being any numbers, and the columns that it makes."""
    generator = np.random.default_rng(0)
    zones = np.array(["airport", "centre", "harbour", "north", "south"])
    zone = generator.integers(0, len(zones), count)
    distance = generator.gamma(2.0, 2.0, count) + 0.01
    columns = {
        "distance": distance,
        "zone": zones[zone],
        "night": generator.integers(0, 2, count).astype(float),
        "hour": generator.uniform(0, 24, count),
        "fare": 3 + 2 * np.log(distance) + 0.2 * zone + generator.normal(size=count),
    }
    frame = pd.DataFrame(columns)
    made = model_matrix(FORMULA, frame).rhs.drop(columns="Intercept")
    return frame.join(made.astype(float).set_axis([f"x{number}" for number in range(made.shape[1])], axis=1))


def main() -> None:
    """Time all of them and print a table."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rows", type=int, default=1_000_000)
    asked.add_argument("--rounds", type=int, default=7)
    given = asked.parse_args()
    frame = make_rows(given.rows)
    print(f"{given.rows:,} rows, best of {given.rounds}; {FORMULA}\n")
    print("| rows | formula | its columns, encoded | times | what it makes, kept | times |")
    print("|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        frame.to_parquet(path)
        print(_line("memory", pa.Table.from_pandas(frame, preserve_index=False), given.rounds), flush=True)
        print(_line("Parquet", path, given.rounds), flush=True)


def _line(where: str, data: Any, rounds: int) -> str:
    made = ps.fit(data, FORMULA)
    plain = [f"x{number}" for number in range(len(made.feature_names))]
    np.testing.assert_allclose(ps.fit(data, "fare", plain).coefficients, made.coefficients, rtol=1e-6, atol=1e-9)
    found = best_times(
        {
            "formula": lambda: ps.fit(data, FORMULA),
            "named": lambda: ps.fit(data, "fare", [*NUMBERS, "zone"], encode=True),
            "plain": lambda: ps.fit(data, "fare", plain),
        },
        rounds,
    )
    whole, named, plainly = found["formula"], found["named"], found["plain"]
    return f"| {where} | {whole:.3f} | {named:.3f} | {whole / named:.2f} | {plainly:.3f} | {whole / plainly:.2f} |"


if __name__ == "__main__":
    main()
