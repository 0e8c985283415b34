"""Clusters that are so many that rows are kept and taken cluster by cluster: the numbers of the definition."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import partsketch as ps
from partsketch.engines.local import LocalEngine
from partsketch.fitting.robust import errors, kept_rows
from partsketch.fitting.robust.errors import RowErrors
from partsketch.fitting.robust.kept_rows import MANY_CLUSTERS, keeps_rows

FEATURES = ["a", "b", "c"]


def kept(count: int = 45_000, seed: int = 3) -> pa.Table:
    """Rows of more clusters than are factored, of one row and of two, three and four, and some of twenty."""
    rng = np.random.default_rng(seed)
    frame = {name: rng.normal(size=count) for name in FEATURES}
    sizes = np.concatenate([np.full(5, 20), rng.integers(1, 5, count)])
    cluster = rng.permutation(np.repeat(np.arange(len(sizes)), sizes)[:count])
    noise = rng.normal(size=count) * (1 + frame["a"] ** 2) + rng.normal(size=len(sizes))[cluster]
    weights = rng.uniform(0.5, 2.0, count)
    weights[:7] = 0.0
    y = frame["a"] + 2 * frame["b"] + noise
    return pa.table(frame | {"y": y, "z": y**2, "w": weights, "id": 10 * cluster, "single": frame["c"].astype("f4")})


def sandwich(table: pa.Table, kind: str, weighted: bool, target: str) -> Any:
    """Return standard errors by the definition, sums by cluster and one small system for each."""
    frame = table.to_pandas()
    frame = frame[frame["w"] > 0] if weighted else frame
    root = np.sqrt(frame["w"].to_numpy() if weighted else np.ones(len(frame)))
    X = np.column_stack([np.ones(len(frame)), frame[FEATURES]]) * root[:, None]
    y = frame[target].to_numpy() * root
    bread = np.linalg.inv(X.T @ X)
    residuals = y - X @ (bread @ (X.T @ y))
    _, cluster = np.unique(frame["id"], return_inverse=True)
    count, (rows, columns) = int(cluster.max()) + 1, X.shape
    scores = np.zeros((count, columns))
    np.add.at(scores, cluster, X * residuals[:, None])
    if kind == "CRV1":
        middle, scale = scores.T @ scores, count / (count - 1) * (rows - 1) / (rows - columns)
        return np.sqrt(np.diag(scale * bread @ middle @ bread))
    own = np.zeros((count, columns, columns))
    np.add.at(own, cluster, X[:, :, None] * X[:, None, :])
    changes = np.linalg.solve(X.T @ X - own, scores[:, :, None])[:, :, 0]
    return np.sqrt(np.diag((count - 1) / count * changes.T @ changes))


@pytest.mark.parametrize("kind", ["CRV1", "CRV3"])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_of_very_many_clusters_are_kept(kind: str, weighted: bool) -> None:
    """Every size of a cluster has its own formula; the numbers are those of the definition."""
    table, weights = kept(), "w" if weighted else None
    clusters = len(np.unique(table["id"].to_numpy()))
    assert keeps_rows(5, clusters, len(table))
    assert not keeps_rows(5, clusters, None)
    assert not keeps_rows(5, MANY_CLUSTERS, len(table))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.PartsketchWarning)
        model = ps.fit(table, ["y", "z"], FEATURES, vcov={kind: "id"}, weights=weights)
        alone = ps.fit(table, "y", FEATURES, vcov={kind: "id"}, weights=weights)
    for number, target in enumerate(("y", "z")):
        known = sandwich(table, kind, weighted, target)
        # Sums of 45,000 well-conditioned rows: eleven digits are left with room.
        np.testing.assert_allclose(model.standard_errors[number], known, rtol=1e-11)
    # One target has a way of its own.
    np.testing.assert_allclose(alone.standard_errors, model.standard_errors[0], rtol=1e-12)
    used = table.filter(pc.greater(table["w"], 0)) if weighted else table
    assert model.inferences[0].degrees_of_freedom == len(np.unique(used["id"].to_numpy())) - 1


@pytest.mark.parametrize("kind", ["CRV1", "CRV3"])
def test_kept_rows_have_the_same_bits_everywhere(kind: str, tmp_path: Path) -> None:
    """Blocks, threads, files and columns that are not doubles change nothing."""
    table = kept(140_000)
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=30_000)
    for columns in (["a", "b", "c"], ["a", "b", "single"]):
        known = ps.fit(table, "y", columns, vcov={kind: "id"}, engine=LocalEngine(1)).standard_errors
        for data in (table, tmp_path / "rows.parquet"):
            for engine in (LocalEngine(2, block_rows=701), LocalEngine(3, 50_001)):
                if isinstance(data, Path) or engine.threads == 3:
                    found = ps.fit(data, "y", columns, vcov={kind: "id"}, engine=engine).standard_errors
                    np.testing.assert_array_equal(found, known)


def test_kept_rows_that_travelled() -> None:
    """Rows that other processes kept begin anywhere in the memory that they arrive in."""
    table = kept()
    known = ps.fit(table, "y", FEATURES, vcov="CRV1:id").standard_errors

    def moved(matrix: Any) -> Any:
        room = bytearray(matrix.nbytes + 8)
        place = np.frombuffer(room, np.uint8, matrix.nbytes, 3).view(matrix.dtype).reshape(matrix.shape)
        place[...] = matrix
        assert not place.flags.aligned
        return place

    run = RowErrors.over_rows
    with pytest.MonkeyPatch.context() as patch:

        def travelled(asked: RowErrors, request: Any) -> Any:
            whole = run(asked, request)
            return replace(whole, matrices=tuple(map(moved, whole.matrices)))

        patch.setattr(RowErrors, "over_rows", travelled)
        np.testing.assert_array_equal(ps.fit(table, "y", FEATURES, vcov="CRV1:id").standard_errors, known)


def test_kept_rows_of_which_a_cluster_has_nearly_all() -> None:
    """A cluster with most of a direction is taken out by adding the others; with all of it, it is named."""
    table = kept()
    cluster = table["id"].to_numpy()
    rng = np.random.default_rng(0)
    for share in (1e-3, 0.0):
        rare = np.where(cluster == 30, rng.normal(size=len(cluster)), share * rng.normal(size=len(cluster)))
        wide = table.set_column(2, "c", pa.array(rare))
        if share:
            model = ps.fit(wide, "y", FEATURES, vcov="CRV3:id")
            np.testing.assert_allclose(model.standard_errors, sandwich(wide, "CRV3", False, "y"), rtol=1e-8)
        else:
            with pytest.raises(ps.InputError, match="Without the rows of cluster '30' the others do not determine"):
                ps.fit(wide, "y", FEATURES, vcov="CRV3:id")


#: Numbers of clusters: alone, a pair, all but one together, gaps, negative, beyond what doubles tell apart.
LAYOUTS: dict[str, Callable[[Any, int], Any]] = {
    "alone": lambda rng, count: np.arange(count),
    "reversed": lambda rng, count: np.arange(count)[::-1] // 2,
    "one large": lambda rng, count: np.where(np.arange(count) < count // 2, 7, np.arange(count)),
    "gaps": lambda rng, count: rng.integers(0, count, count) * 10**9,
    "negative": lambda rng, count: -rng.integers(0, count, count),
    "beyond doubles": lambda rng, count: 2**60 + rng.integers(0, count, count),
    "unsigned": lambda rng, count: rng.integers(0, count, count).astype(np.uint64) + np.uint64(2**63),
    "numbers": lambda rng, count: rng.integers(0, count, count) / 2,
    "texts": lambda rng, count: np.char.add("id ", rng.integers(0, count, count).astype(str)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(deadline=None, max_examples=8)
@given(
    count=st.integers(40, 300),
    columns=st.integers(1, 3),
    intercept=st.booleans(),
    weighted=st.booleans(),
    missing=st.booleans(),
    alike=st.booleans(),
    threads=st.integers(1, 2),
    block_rows=st.integers(1, 200),
    seed=st.integers(0, 2**32 - 1),
)
def test_kept_rows_of_any_layout(
    layout: str,
    count: int,
    columns: int,
    intercept: bool,
    weighted: bool,
    missing: bool,
    alike: bool,
    threads: int,
    block_rows: int,
    seed: int,
) -> None:
    """Scores of kept rows add up as sums of few clusters do, whatever the numbers of clusters and the tiles."""
    rng = np.random.default_rng(seed)
    frame = {name: rng.normal(size=count) for name in FEATURES[:columns]}
    if alike:
        # A condition number beyond which rows are multiplied with the root of the inverse.
        frame["a2"] = frame["a"] + 1e-4 * rng.normal(size=count)
    labels = pa.array(LAYOUTS[layout](rng, count), mask=rng.uniform(size=count) < 0.1 if missing else None)
    table = pa.table(
        frame | {"y": rng.normal(size=count), "w": rng.integers(0, 3, count) + (np.arange(count) % 2), "id": labels}
    )
    asked: dict[str, Any] = {
        "features": list(frame),
        "fit_intercept": intercept,
        "weights": "w" if weighted else None,
        "missing": "drop" if missing else "error",
        "engine": LocalEngine(threads, block_rows),
    }
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.PartsketchWarning)
        known = ps.fit(table, "y", vcov="CRV1:id", **asked)
        patch.setattr(kept_rows, "MANY_CLUSTERS", 8)
        patch.setattr(kept_rows, "_MOST_ROWS_EACH", 1000)
        ran = [0]
        took = kept_rows.cluster_squares

        def counted(*given: Any) -> Any:
            ran[0] += 1
            return took(*given)

        patch.setattr(errors, "cluster_squares", counted)
        found = ps.fit(table, "y", vcov="CRV1:id", **asked)
    assert ran == [1]
    assert found.inferences[0].degrees_of_freedom == known.inferences[0].degrees_of_freedom
    # The condition number of columns that are alike takes four digits.
    np.testing.assert_allclose(found.standard_errors, known.standard_errors, rtol=1e-9 if alike else 1e-11, atol=1e-14)
