"""Measures summaries of more and more groups, and questions to them beside packages that see the rows.

Every line is the best of a few runs, with the processor time of the quickest and what others took of the machine then.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import partsketch as ps
from benchmarks.quiet import now
from partsketch.questions.specifications import Specification, compare

COLUMNS = 20
FEATURES = [f"x{number}" for number in range(COLUMNS)]
GROUPS = (1, 200, 1000, 20_000)

#: Most that the time for so many groups may be of that for one, and from Parquet of reading.
_TIMES_ONE = {200: 4.0, 1000: 4.0, 20_000: 10.0}
_TIMES_READING = 2.0


@dataclass(frozen=True)
class Line:
    """One measurement.

    Attributes
    ----------
    what, who
        What was done, and by which package.
    seconds, processor_seconds
        The best of the runs, and the least time of all threads.
    others
        Share of the machine that other processes had during the best run.
    target
        Seconds that it should take at most; None where nothing is asked.
    """

    what: str
    who: str
    seconds: float
    processor_seconds: float
    others: float
    target: float | None = None


def timed(what: str, who: str, work: Callable[[], object], repeats: int = 5, target: float | None = None) -> Line:
    """Return the best of a few runs."""
    found = []
    for _ in range(repeats):
        before, processor = now(), time.process_time()
        work()
        after = now()
        found.append((after.wall - before.wall, time.process_time() - processor, after.others_share(before)))
    seconds, _, others = min(found)
    line = Line(what, who, seconds, min(entry[1] for entry in found), others, target)
    print(f"questions / {what}: {who} {line.seconds:.4f} s ({line.processor_seconds:.4f} s of processor)", flush=True)
    return line


def rows_in_groups(rows: int, groups: int) -> pd.DataFrame:
    """Return rows of 20 features, a target, and a group each."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(rows, COLUMNS))
    group = rng.integers(0, groups, rows)
    target = values @ rng.normal(size=COLUMNS) + rng.normal(size=groups)[group] + rng.normal(size=rows)
    return pd.DataFrame(values, columns=FEATURES).assign(y=target, g=group)


def run(quick: bool) -> dict[str, Any]:
    """Return all lines."""
    rows = 100_000 if quick else 1_000_000
    lines = [*making(rows), *reading(rows), *asking(rows // 10, 100 if quick else 10_000)]
    return {"lines": [asdict(line) for line in lines], "repeats": 5}


def making(rows: int) -> Iterator[Line]:
    """Measure summaries by a column of more and more groups."""
    one: Line | None = None
    for groups in GROUPS:
        table = pa.Table.from_pandas(rows_in_groups(rows, groups), preserve_index=False)
        by = None if groups == 1 else "g"
        target = None if one is None else _TIMES_ONE[groups] * one.seconds
        what = f"summarise {rows:,} × {COLUMNS} in memory, {groups:,} groups"
        line = timed(what, "partsketch", _summarising(table, by), target=target)
        one = one or line
        yield line


def _summarising(data: Any, by: str | None) -> Callable[[], object]:
    return lambda: ps.summarise(data, [*FEATURES, "y"], partition_by=by)


def reading(rows: int) -> Iterator[Line]:
    """Measure summaries from a Parquet file, beside reading it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        pq.write_table(pa.Table.from_pandas(rows_in_groups(rows, 200), preserve_index=False), path)
        read = timed(f"read {rows:,} × {COLUMNS} from Parquet", "pyarrow", lambda: pq.read_table(path))
        yield read
        what = f"summarise {rows:,} × {COLUMNS} from Parquet, 200 groups"
        yield timed(what, "partsketch", _summarising(str(path), "g"), target=_TIMES_READING * read.seconds)


def asking(rows: int, specifications: int) -> Iterator[Line]:
    """Measure questions, and the same of packages that see the rows."""
    import pyfixest as pf
    import statsmodels.formula.api as smf

    frame = rows_in_groups(rows, 1000)
    formula = "y ~ " + " + ".join(FEATURES)
    summaries = ps.summarise(frame, [*FEATURES, "y"], partition_by="g")
    summaries.fit("y")
    clusters = {"groups": frame["g"]}
    what = f"CRV3, 1,000 clusters × {COLUMNS}, {rows:,} rows"
    yield timed(what, "partsketch", lambda: summaries.fit("y", vcov="CRV3"), target=0.2)
    yield timed(what, "pyfixest", lambda: pf.feols(formula, frame, vcov={"CRV3": "g"}), 1)
    what = f"CRV1, 1,000 clusters × {COLUMNS}, {rows:,} rows"
    yield timed(what, "partsketch", lambda: summaries.fit("y", vcov="CRV1"))
    yield timed(what, "pyfixest", lambda: pf.feols(formula, frame, vcov={"CRV1": "g"}), 2)
    yield timed(what, "statsmodels", lambda: smf.ols(formula, frame).fit(cov_type="cluster", cov_kwds=clusters), 2)
    yield timed("10 folds × 100 ridge penalties", "partsketch", lambda: summaries.ridge_path("y"), target=0.1)
    yield timed("10 folds × 100 lasso penalties", "partsketch", lambda: summaries.lasso_path("y"))
    yield from many(rows, specifications)


def many(rows: int, specifications: int) -> Iterator[Line]:
    """Measure a list of specifications; of packages that see the rows, fewer, and the time is that of all."""
    import pyfixest as pf
    import statsmodels.formula.api as smf

    frame = rows_in_groups(rows, 200)
    few = ps.summarise(frame, [*FEATURES, "y"], partition_by="g")
    listed = all_specifications(specifications)
    compare(few, listed[:1])
    what = f"{len(listed):,} specifications of 5 of {COLUMNS}, CRV1, 200 clusters, {rows:,} rows"
    yield timed(what, "partsketch", lambda: compare(few, listed), 1, 1e-3 * len(listed))
    formulas = [f"y ~ {' + '.join(one.features or ())}" for one in listed[:10]]
    clusters = {"groups": frame["g"]}
    rivals: dict[str, Callable[[str], object]] = {
        "pyfixest": lambda formula: pf.feols(formula, frame, vcov={"CRV1": "g"}),
        "statsmodels": lambda formula: smf.ols(formula, frame).fit(cov_type="cluster", cov_kwds=clusters),
    }
    for who, fit in rivals.items():
        yield timed(f"the first {len(formulas)} of them", who, _each(fit, formulas), 1)


def _each(fit: Callable[[str], object], formulas: Sequence[str]) -> Callable[[], object]:
    return lambda: [fit(formula) for formula in formulas]


def all_specifications(most: int) -> list[Specification]:
    """Return regressions of y on five of the features, with cluster errors."""
    chosen = itertools.islice(itertools.combinations(FEATURES, 5), most)
    return [Specification(str(number), "y", names, vcov="CRV1") for number, names in enumerate(chosen)]
