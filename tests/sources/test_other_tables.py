"""A dict of arrays, a pyarrow Dataset in folders, a polars LazyFrame: rows like any others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import partsketch as ps

RNG = np.random.default_rng(0)
TABLE = pa.table(
    {
        "x": RNG.normal(size=300),
        "y": RNG.normal(size=300),
        "year": pa.array(np.repeat([2023, 2024, 2025], 100), pa.int32()),
        "city": pa.array(np.tile(np.arange(20), 15), pa.int32()),
    }
)
KNOWN = ps.fit(TABLE, "y ~ x + C(year)", vcov="CRV1:city")


def kinds(folder: Path) -> dict[str, Any]:
    ds.write_dataset(
        TABLE, folder, format="parquet", partitioning=ds.partitioning(pa.schema([("year", pa.int32())]), flavor="hive")
    )
    return {
        "dict": {name: TABLE[name].to_numpy() for name in TABLE.column_names},
        "dataset": ds.dataset(folder, partitioning="hive"),
        "lazy": pl.from_arrow(TABLE).lazy(),
        "reader": lambda: TABLE.to_reader(70),
        "stream": lambda: pl.from_arrow(TABLE),
        "nullable": TABLE.to_pandas().convert_dtypes(),
        "Arrow-backed": TABLE.to_pandas().convert_dtypes(dtype_backend="pyarrow"),
        "categorical": TABLE.to_pandas().astype({"year": "str"}).astype({"year": "category"}),
    }


@pytest.mark.parametrize(
    "kind", ["dict", "dataset", "lazy", "reader", "stream", "nullable", "Arrow-backed", "categorical"]
)
def test_they_give_the_same_model(kind: str, tmp_path: Path) -> None:
    model = ps.fit(kinds(tmp_path)[kind], "y ~ x + C(year)", vcov="CRV1:city")
    assert model.feature_names == KNOWN.feature_names
    np.testing.assert_allclose(model.coefficients, KNOWN.coefficients, rtol=1e-12)
    np.testing.assert_allclose(model.standard_errors, KNOWN.standard_errors, rtol=1e-10)


def test_what_is_no_table_is_refused() -> None:
    for data in ({"x": 1}, {"x": [1, 2], "y": [1]}):
        with pytest.raises(ps.InputError, match="The dict cannot be read as a table"):
            ps.fit(data, "y")
    with pytest.raises(ps.InputError, match="The function gave a int: it must give an Arrow stream"):
        ps.fit(lambda: 3, "y")


def test_lazy_frames_and_datasets_are_not_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    frame: Any = pl.from_arrow(TABLE)
    lazy = frame.lazy().filter(pl.col("x") > 0)
    whole = lazy.collect()
    collected = pl.LazyFrame.collect

    def few(self: Any, *arguments: Any, **options: Any) -> Any:
        rows = collected(self, *arguments, **options)
        assert len(rows) == 0, "all rows were taken into memory"
        return rows

    monkeypatch.setattr(pl.LazyFrame, "collect", few)
    np.testing.assert_array_equal(ps.fit(lazy, "y").coefficients, ps.fit(whole, "y").coefficients)
