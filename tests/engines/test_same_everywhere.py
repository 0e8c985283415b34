"""The same partitions and seed give the same summaries on every engine, bit for bit, and so the same model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import partsketch as ps
from partsketch import LocalEngine
from partsketch.fitting.fit import Fit, fit_source
from partsketch.fitting.options import FitOptions
from partsketch.model.methods import FIT_METHODS
from partsketch.sources import Source, open_source

# PySpark says so whenever it is loaded; pandas is not used here.
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")

CLUSTERS = [pytest.param(name, marks=pytest.mark.xdist_group("clusters")) for name in ("dask", "ray", "spark")]

#: Three segments of 65,536 rows and a bit, in row groups that do not fit them.
ROWS = 200_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    generator = np.random.default_rng(8)
    X = generator.normal(size=(ROWS, 3)) @ generator.normal(size=(3, 3))
    columns: dict[str, Any] = {f"x{i}": column for i, column in enumerate(X.T)}
    columns["site"] = generator.choice(["north", "south", "west"], ROWS)
    columns["zone"] = [f"z{number}" for number in generator.integers(0, 40, ROWS)]
    columns["weight"] = generator.random(ROWS)
    columns["y"] = X @ [1.0, -2.0, 3.0] + generator.normal(size=ROWS)
    table = pa.table(columns)
    pq.write_table(table.slice(0, 120_000), folder / "a.parquet", row_group_size=50_000)
    pq.write_table(table.slice(120_000), folder / "b.parquet", row_group_size=7_000)
    return folder


def options(method: str, partition_by: str) -> FitOptions:
    return FitOptions(
        method=method, n_partitions=3, partition_by=partition_by, remainder="spread", sketch="gaussian",
        sketch_size=None, fit_intercept=True, seed=17,
    )  # fmt: skip


def opened(folder: Path, partition_by: str) -> Source:
    column = "site" if partition_by == "site" else None
    features = ["x0", "x1", "x2", *([] if column else ["site"])]
    return open_source(
        str(folder), target="y", features=features, weights="weight", partition_column=column, encode=True
    )


def assert_same(found: Fit, expected: Fit) -> None:
    assert found.summaries == expected.summaries
    for one, other in zip(found.summaries, expected.summaries, strict=True):
        np.testing.assert_array_equal(one.matrix, other.matrix)
    for name in ("coefficients", "intercept", "partition_coefficients"):
        np.testing.assert_array_equal(getattr(found.model, name), getattr(expected.model, name))
    assert found.model.certificates == expected.model.certificates
    assert found.model.record.partitions == expected.model.record.partitions


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("method", FIT_METHODS)
def test_all_methods(cluster: str, method: str, folder: Path, request: pytest.FixtureRequest) -> None:
    engine = request.getfixturevalue(f"{cluster}_engine")
    source = opened(folder, "order")
    expected = fit_source(source, options(method, "order"), LocalEngine(1))
    assert_same(fit_source(source, options(method, "order"), engine), expected)


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("partition_by", ["shuffle", "file", "site"])
def test_all_partitions(cluster: str, partition_by: str, folder: Path, request: pytest.FixtureRequest) -> None:
    engine = request.getfixturevalue(f"{cluster}_engine")
    source = opened(folder, partition_by)
    expected = fit_source(source, options("partition", partition_by), LocalEngine(2))
    assert_same(fit_source(source, options("partition", partition_by), engine), expected)


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize(
    ("partition_by", "count"), [("site", None), ("shuffle", 5), ("order", 4), ("file", None), (None, None)]
)
def test_summaries_of_all_partitions(
    cluster: str, partition_by: str | None, count: int | None, folder: Path, request: pytest.FixtureRequest
) -> None:
    """Groups that are summed side by side, and growth by the rows of another run, on every engine."""
    engine = request.getfixturevalue(f"{cluster}_engine")
    asked: dict[str, Any] = {"partition_by": partition_by, "n_partitions": count, "weights": "weight"}
    columns = ["x0", "x1", "x2", "y"]
    here, there = (ps.summarise(str(folder), columns, engine=used, **asked) for used in (LocalEngine(1), engine))
    assert there == here
    more = {**asked, "partition_by": partition_by if partition_by != "file" else None}
    again = str(folder / "b.parquet")
    assert there.add(again, engine=engine, **more) == here.add(again, **more)


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_codes(cluster: str, folder: Path, request: pytest.FixtureRequest) -> None:
    engine = request.getfixturevalue(f"{cluster}_engine")
    asked = {"features": ["x0", "zone"], "encode": True, "weights": "weight", "method": "exact"}
    models = [
        ps.fit(str(folder), "y", engine=used, **asked)  # type: ignore[arg-type]
        for used in (LocalEngine(threads=2, block_rows=1000), engine)
    ]
    for name in ("coefficients", "intercept"):
        np.testing.assert_array_equal(getattr(models[0], name), getattr(models[1], name))
    np.testing.assert_array_equal(models[0].inferences[0].standard_errors, models[1].inferences[0].standard_errors)


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("vcov", ["HC3", {"CRV1": "site"}, {"CRV3": "site"}], ids=["HC3", "CRV1", "CRV3"])
def test_formulas_and_robust_errors(cluster: str, vcov: Any, folder: Path, request: pytest.FixtureRequest) -> None:
    """Knots, levels and means are found by a pass of their own, errors by another."""
    engine = request.getfixturevalue(f"{cluster}_engine")
    # Without a cluster its own level would not be determined, and CRV3 leaves out each.
    formula = "y ~ bs(x0, df=4) + center(x1)" + ("" if "CRV3" in vcov else " * C(site)")
    here, there = (
        ps.fit(str(folder), formula, method="exact", vcov=vcov, weights="weight", engine=used)
        for used in (LocalEngine(1), engine)
    )
    assert there.feature_names == here.feature_names
    for name in ("coefficients", "intercept"):
        np.testing.assert_array_equal(getattr(there, name), getattr(here, name))
    np.testing.assert_array_equal(there.inferences[0].standard_errors, here.inferences[0].standard_errors)
