"""Compiles the kernels that most tests need, once: `make setup` runs this, and test processes then find them on disk.

Otherwise every process compiles for itself what no other has finished: on two cores a tenth of the time of all tests.
"""

from __future__ import annotations

import tempfile
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp

import partsketch as ps
from partsketch.sketches.base import sketch_kinds

#: More than a segment, so that pieces are merged.
ROWS = 70_000


def table() -> pa.Table:
    """Return rows with numbers, texts, groups of one row and of many, weights and a target."""
    generator = np.random.default_rng(0)
    columns: dict[str, Any] = dict(zip("abc", generator.normal(size=(3, ROWS)), strict=True))
    columns["near"] = columns["a"] + 1e-9 * columns["b"]
    columns["site"] = generator.choice(["north", "south", "west"], ROWS)
    columns["group"] = np.minimum(generator.integers(0, 100_000, ROWS) // 5, 300)
    columns["weight"] = generator.random(ROWS) + 0.5
    columns["y"] = columns["a"] - columns["b"] + generator.normal(size=ROWS)
    return pa.table(columns)


def fit_arrays() -> None:
    """Fit arrays of all kinds by all sketches, in single and double precision, with weights and without."""
    rows = table().select(["a", "b", "c", "near"]).to_pandas().to_numpy()
    target = table()["y"].to_numpy()
    sparse = sp.csr_matrix(np.where(np.abs(rows) > 1, rows, 0.0))
    for X in (np.ascontiguousarray(rows), np.asfortranarray(rows), rows.astype(np.float32), sparse):
        for weights in (None, np.linspace(0.5, 1.5, ROWS)):
            ps.SketchedRegression().fit(X, target, weights)
            for sketch in sketch_kinds():
                ps.SketchedRegression("stack", sketch=sketch, n_partitions=2, random_state=0).fit(X, target, weights)
    for method in ("average", "partition", "whole"):
        ps.SketchedRegression(method, n_partitions=2, random_state=0).fit(rows[:, :3], target)


def ask_files() -> None:
    """Fit a file with codes, formulas, groups, robust errors, absorbed levels and partitions by a column."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows.parquet")
        pq.write_table(table(), path)
        for weights in (None, "weight"):
            common: dict[str, Any] = {"features": ["a", "b", "site"], "encode": True, "weights": weights}
            for vcov in ("iid", "HC1", "HC3", {"CRV1": "group"}, {"CRV3": "group"}, {"CRV1": "site"}):
                ps.fit(path, "y", vcov=vcov, **common)
            summaries = ps.summarise(path, ["a", "b", "c", "y"], partition_by="group", weights=weights)
            summaries.add(path, partition_by="group", weights=weights).fit("y", ["a", "b"], vcov="CRV3")
            ps.fit(path, "y", ["a", "b"], absorb="group", weights=weights)
            ps.fit(path, "y", ["a", "b"], method="partition", partition_by="shuffle", n_partitions=3, weights=weights)
        summaries.lasso_path("y", folds=3)
        ps.fit(path, "y ~ bs(a, 4) * C(site) + log(weight)").predict(path)


def ask_rarer_things() -> None:
    """Refine, diagnose groups, encode many levels, read CSV, and sketch with numbers of the operating system."""
    rows, levels = table(), pa.array([f"z{number % 40}" for number in range(ROWS)])
    X, y = rows.select(["a", "b", "c"]).to_pandas().to_numpy(), rows["y"].to_numpy()
    for matrix in (X, sp.csr_matrix(np.where(np.abs(X) > 1, X, 0.0))):
        for weights in (None, np.linspace(0.5, 1.5, ROWS)):
            ps.SketchedRegression(route="iterate").fit(matrix, y, weights)
    ps.diagnose(rows, "y", ["a", "b"], partition_by="group")
    ps.diagnose(rows, "y", ["a", "b"], n_partitions=3)
    ps.fit(rows.append_column("zone", levels), "y", ["a", "zone"], encode=True)
    ps.sketch(rows, "y", ["a", "b"], private=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        rows.slice(0, 1000).to_pandas().to_csv(path, index=False)
        ps.fit(str(path), "y", ["a", "b"])


def ask_rows_in_memory() -> None:
    """Ask of tables in memory what was asked of files: their columns cannot be written to, which is another type."""
    rows = table()
    for weights in (None, "weight"):
        for vcov in ("HC1", "HC3", {"CRV1": "group"}, {"CRV3": "group"}):
            ps.fit(rows, "y", ["a", "b"], vcov=vcov, weights=weights)
        ps.fit(rows, "y", ["a", "b"], method="partition", n_partitions=3, weights=weights)
    for formula in (
        "y ~ scale(a) + poly(b, 2) + center(c)",
        "y ~ bs(a, df=5, lower_bound=-1, upper_bound=1, extrapolation='clip')",
    ):
        ps.fit(rows, formula)
        # Columns that lie apart from one another, and those of which rows are missing.
        ps.fit(rows.to_pandas(), formula)
        ps.fit(
            rows.set_column(1, "b", pa.array(rows["b"].to_numpy(), mask=np.arange(ROWS) == 3)), formula, missing="drop"
        )


def keep_rows_of_clusters() -> None:
    """Have so many clusters that rows are kept, of one row and of two, three and four."""
    generator = np.random.default_rng(1)
    clusters = np.sort(generator.integers(0, ROWS // 2, ROWS))
    rows = table().append_column("cluster", pa.array(clusters)).append_column("z", table()["a"])
    for kind in ("CRV1", "CRV3"):
        for weights in (None, "weight"):
            ps.fit(rows, "y", ["b", "c"], vcov={kind: "cluster"}, weights=weights)
            ps.fit(rows, ["y", "z"], ["b", "c"], vcov={kind: "cluster"}, weights=weights)


def sketch_long_sparse_rows() -> None:
    """Sketch sparse rows whose indices are long, those with and without weights, and rows in single precision."""
    rows = table().select(["a", "b", "c"]).to_pandas().to_numpy()
    target, some = table()["y"].to_numpy(), np.linspace(0.5, 1.5, ROWS)
    sparse = sp.csr_matrix(np.where(np.abs(rows) > 1, rows, 0.0))
    long = sp.csr_matrix(sparse)
    long.indices, long.indptr = sparse.indices.astype(np.int64), sparse.indptr.astype(np.int64)
    for weights in (None, some):
        for sketch in ("gaussian", "srht", "sparse_sign"):
            ps.SketchedRegression("stack", sketch=sketch, n_partitions=2, random_state=0).fit(long, target, weights)
        ps.SketchedRegression(route="iterate").fit(long, target, weights)
        ps.SketchedRegression().fit(long, target, weights)


WORKS = (
    fit_arrays,
    ask_files,
    ask_rarer_things,
    ask_rows_in_memory,
    keep_rows_of_clusters,
    sketch_long_sparse_rows,
)


def main() -> None:
    """Do all, each in a process of its own, and say nothing of what the fits warn of."""
    with ProcessPoolExecutor(2, initializer=warnings.simplefilter, initargs=("ignore",)) as processes:
        for done in [processes.submit(work) for work in WORKS]:
            done.result()


if __name__ == "__main__":
    main()
