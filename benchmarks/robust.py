"""What robust errors cost: in multiples of two plain fits, from a table in memory and from Parquet, beside pyfixest.

    python -m benchmarks.robust                     # 1,000,000 rows of 10 columns; close other programs first
    python -m benchmarks.robust --rows 100000 --only CRV

Every fit is measured in turn with two plain fits and with pyfixest, in one process; the best of all rounds counts.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import partsketch as ps

FEATURES = [f"x{number}" for number in range(10)]
#: What is asked for, by what it is called in the table.
ASKED: dict[str, Any] = {
    "HC1": "HC1",
    "HC3": "HC3",
    "CRV1, 200 numbers": {"CRV1": "few"},
    "CRV1, 200 texts": {"CRV1": "text"},
    "CRV3, 200 numbers": {"CRV3": "few"},
    "CRV1, many numbers": {"CRV1": "many"},
    "CRV3, many numbers": {"CRV3": "many"},
}


def make_rows(count: int) -> pd.DataFrame:
    """Return rows of ten features, a target, and columns of 200 numbers, 200 texts, and about 0.63 numbers a row."""
    generator = np.random.default_rng(0)
    values = generator.normal(size=(count, len(FEATURES)))
    frame = pd.DataFrame(values, columns=FEATURES)
    few = generator.integers(0, 200, count)
    return frame.assign(
        y=values.sum(axis=1) + generator.normal(size=count),
        few=few,
        text=np.array([f"zone {number}" for number in range(200)])[few],
        many=generator.integers(0, count, count),
    )


def best_times(work: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Return the best time of each; the first round compiles and is not counted."""
    best = dict.fromkeys(work, np.inf)
    for number in range(rounds + 1):
        for who, call in work.items():
            begin = time.perf_counter()
            call()
            if number:
                best[who] = min(best[who], time.perf_counter() - begin)
    return best


def main() -> None:
    """Time all of them and print a table."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rows", type=int, default=1_000_000)
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--only", default="", help="part of the name of what is asked for")
    asked.add_argument("--alone", action="store_true", help="without pyfixest")
    given = asked.parse_args()
    frame = make_rows(given.rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        frame.to_parquet(path)
        table = pa.Table.from_pandas(frame, preserve_index=False)
        print(
            f"{given.rows:,} rows, best of {given.rounds}\n\n| `vcov` | rows | two fits | with it | times | pyfixest |"
        )
        print("|---|---|---:|---:|---:|---:|")
        for name, vcov in ASKED.items():
            for where, data in (("memory", table), ("Parquet", path)):
                if given.only in name:
                    print(_line(name, vcov, where, data, None if given.alone else frame, given.rounds), flush=True)
        print(f"\nReading the Parquet file: {best_times({'read': lambda: pq.read_table(path)}, 5)['read']:.3f} s")


def _line(name: str, vcov: Any, where: str, data: Any, frame: pd.DataFrame | None, rounds: int) -> str:
    def fit(**keywords: Any) -> Any:
        return ps.fit(data, "y", FEATURES, **keywords)

    found = best_times({"two": lambda: (fit(), fit()), "robust": lambda: fit(vcov=vcov)}, rounds)
    beside = ""
    # The jackknife of very many clusters fits each of them again, which takes hours.
    if frame is not None and where == "memory" and name != "CRV3, many numbers":
        import pyfixest

        formula = "y ~ " + " + ".join(FEATURES)
        rival = best_times({"pyfixest": lambda: pyfixest.feols(formula, frame, vcov=vcov)}, 1)
        beside = f"{rival['pyfixest']:.3f}"
    times = found["robust"] / found["two"]
    return f"| {name} | {where} | {found['two']:.3f} | {found['robust']:.3f} | {times:.2f} | {beside} |"


if __name__ == "__main__":
    main()
