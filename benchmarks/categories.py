"""Categories, absorbed levels, clustered errors and formulas beside pyfixest and beside plain fits.

    python -m benchmarks.categories                 # 3,000,000 rows; close other programs first
    python -m benchmarks.categories --rows 300000 --repeats 2

Every line is measured in turn with what it is compared to, in one process; the best of all rounds counts. Times are
those of the wall and of the processor, the latter in all threads together.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import partsketch as ps


def make_rows(count: int) -> pd.DataFrame:
    """Return rows with a text column of 230 levels, one of about a million numbers at 3,000,000 rows, and noise."""
    generator = np.random.default_rng(1)
    zone = generator.integers(0, 230, count)
    person = generator.integers(0, max(2, count // 3), count)
    x, v = generator.normal(size=(2, count))
    y = 1 + 2 * x - v + np.sin(zone) + 0.1 * np.cos(person) + generator.normal(size=count)
    texts = np.array([f"zone {number}" for number in range(230)])
    hour = generator.integers(0, 24, count).astype(float)
    columns = {"y": y, "x": x, "v": v, "hour": hour, "zone": pd.Categorical.from_codes(zone, texts), "person": person}
    return pd.DataFrame(columns)


def cases(rows: pd.DataFrame) -> dict[str, dict[str, Callable[[], Any]]]:
    """Return what is timed, each with what it is compared to."""
    import pyfixest

    def feols(formula: str, vcov: Any = "iid") -> Callable[[], Any]:
        return lambda: pyfixest.feols(formula, rows, vcov=vcov)

    def fit(*asked: Any, **keywords: Any) -> Callable[[], Any]:
        return lambda: ps.fit(rows, *asked, **keywords)

    plain = fit("y", ["x", "v"])

    def twice() -> None:
        plain()
        plain()

    columns = ["x", "v"]
    wide = rows[["y", "x", "v", "hour"]].assign(**{f"made{n}": np.roll(rows["x"], n) for n in range(4)})
    found: dict[str, dict[str, Callable[[], Any]]] = {
        "230 levels as columns": {
            "partsketch encode=True": fit("y", [*columns, "zone"], encode=True),
            "partsketch C(zone)": fit("y ~ x + v + C(zone)"),
            "pyfixest absorbs": feols("y ~ x + v | zone"),
        },
        "230 levels absorbed": {
            "partsketch": fit("y", columns, absorb="zone"),
            "pyfixest": feols("y ~ x + v | zone"),
        },
        "many levels absorbed": {
            "partsketch": fit("y", columns, absorb="person"),
            "pyfixest": feols("y ~ x + v | person"),
        },
        "formula in memory": {
            "y ~ log1p(x²) + v + bs(hour, 4)": fit("y ~ log(1 + x**2) + v + bs(hour, 4)"),
            "as many plain columns": lambda: ps.fit(wide, "y"),
        },
    }
    for kind, column in (("CRV1", "zone"), ("CRV3", "zone"), ("CRV1", "person"), ("CRV3", "person")):
        found[f"{kind} by {column}"] = {"partsketch": fit("y", columns, vcov={kind: column}), "two plain fits": twice}
        if kind == "CRV1":
            found[f"{kind} by {column}"]["pyfixest"] = feols("y ~ x + v", {kind: column})
    return found


def main() -> None:
    """Time all of them and print a table."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rows", type=int, default=3_000_000)
    asked.add_argument("--repeats", type=int, default=3)
    asked.add_argument("--only", default="", help="part of the name of a case")
    given = asked.parse_args()
    rows = make_rows(given.rows)
    print(f"{given.rows:,} rows, best of {given.repeats}")
    for name, timed in cases(rows).items():
        if given.only not in name:
            continue
        best: dict[str, tuple[float, float]] = {}
        # The first round compiles and is not counted.
        for number in range(given.repeats + 1):
            for who, work in timed.items():
                wall, processor = time.perf_counter(), time.process_time()
                work()
                took = (time.perf_counter() - wall, time.process_time() - processor)
                if number:
                    kept = best.get(who, took)
                    best[who] = (min(kept[0], took[0]), min(kept[1], took[1]))
        for who, (wall, processor) in best.items():
            print(f"{name:24} {who:34} {wall:8.3f} s  {processor:8.3f} s of processor")


if __name__ == "__main__":
    main()
