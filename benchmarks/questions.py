"""How quickly summaries are made by group, and how quickly they answer, beside packages that go over the rows.

    python -m benchmarks.questions [--rows 1000000] [--specifications 1000] [--json FILE]

Every line is the least of three runs. Rivals see the rows; their time is per question, ours too.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

import partsketch as ps

COLUMNS = 20
GROUPS = (1, 200, 1000, 20_000)


@dataclass(frozen=True)
class Line:
    """One measurement: what was done, by whom, and how long it took."""

    what: str
    who: str
    seconds: float


def least(work: Callable[[], object], repeats: int = 3) -> float:
    """Return the least time of a few runs."""
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def rows_in_groups(rows: int, groups: int) -> pd.DataFrame:
    """Return rows of 20 features, a target, and a group each."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(rows, COLUMNS))
    group = rng.integers(0, groups, rows)
    target = values @ rng.normal(size=COLUMNS) + rng.normal(size=groups)[group] + rng.normal(size=rows)
    return pd.DataFrame(values, columns=[f"x{i}" for i in range(COLUMNS)]).assign(y=target, g=group)


def making(rows: int) -> list[Line]:
    """Measure summaries by a column of more and more groups."""
    lines = []
    for groups in GROUPS:
        table = pa.Table.from_pandas(rows_in_groups(rows, groups), preserve_index=False)
        columns = [name for name in table.column_names if name != "g"]
        by = None if groups == 1 else "g"
        seconds = least(lambda: ps.summarise(table, columns, partition_by=by))  # noqa: B023 (called at once)
        lines.append(Line(f"summarise {rows:,} × {COLUMNS}, {groups:,} groups", "partsketch", seconds))
    return lines


def asking(rows: int, specifications: int) -> list[Line]:
    """Measure questions, and the same of packages that see the rows."""
    import pyfixest as pf
    import statsmodels.formula.api as smf

    frame = rows_in_groups(rows, 1000)
    features = [f"x{i}" for i in range(COLUMNS)]
    formula = "y ~ " + " + ".join(features)
    summaries = ps.summarise(frame, [*features, "y"], partition_by="g")
    summaries.fit("y")
    clusters = {"groups": frame["g"]}
    lines = [
        Line("CRV3, 1,000 clusters × 20", "partsketch", least(lambda: summaries.fit("y", vcov="CRV3"))),
        Line("CRV3, 1,000 clusters × 20", "pyfixest", least(lambda: pf.feols(formula, frame, vcov={"CRV3": "g"}), 1)),
        Line("10 folds × 100 ridge penalties", "partsketch", least(lambda: summaries.ridge_path("y"))),
        Line("10 folds × 100 lasso penalties", "partsketch", least(lambda: summaries.lasso_path("y"))),
        Line("one fit with CRV1", "pyfixest", least(lambda: pf.feols(formula, frame, vcov={"CRV1": "g"}))),
        Line(
            "one fit with CRV1",
            "statsmodels",
            least(lambda: smf.ols(formula, frame).fit(cov_type="cluster", cov_kwds=clusters), 1),
        ),
    ]
    few = ps.summarise(rows_in_groups(rows, 200), [*features, "y"], partition_by="g")
    chosen = list(itertools.islice(itertools.combinations(features, 5), specifications))
    few.fit("y", chosen[0], vcov="CRV1")
    seconds = least(lambda: [few.fit("y", names, vcov="CRV1") for names in chosen], 1)
    return [*lines, Line(f"{len(chosen):,} specifications of 5 of 20, CRV1, 200 clusters", "partsketch", seconds)]


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.questions", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--specifications", type=int, default=1000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    lines = [*making(arguments.rows), *asking(arguments.rows // 10, arguments.specifications)]
    for line in lines:
        print(f"{line.what:55} {line.who:12} {line.seconds:9.4f} s")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps([asdict(line) for line in lines], indent=1) + "\n")


if __name__ == "__main__":
    main()
