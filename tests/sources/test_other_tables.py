"""A dict of arrays, a pyarrow Dataset in folders, a polars LazyFrame: rows like any others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather
import pytest

import partsketch as ps
from partsketch.sources.opening import open_source

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


@pytest.mark.parametrize("index", [None, "customer"])
@pytest.mark.parametrize("kind", ["frame", "table", "parquet", "feather"])
def test_an_index_of_pandas_is_no_feature_unless_it_is_named(kind: str, index: str | None, tmp_path: Path) -> None:
    frame = TABLE.to_pandas().drop(columns=["year", "city"]).sort_values("y").rename_axis(index)
    path = tmp_path / f"rows.{kind}"
    if kind == "parquet":
        frame.to_parquet(path)
    elif kind == "feather":
        pyarrow.feather.write_feather(pa.Table.from_pandas(frame), path)
    data = {"frame": frame, "table": pa.Table.from_pandas(frame)}.get(kind, path)
    name = index or "__index_level_0__"
    for source in (open_source(data, target="y"), open_source(data, formula="y ~ .")):
        assert source.feature_names == ("x",)
        # A data frame in memory has an index, no column of it.
        noted = f"Column '{name}' is the index of a pandas table and was left out"
        assert [note.split(":")[0] for note in source.notes] == ([] if kind == "frame" else [noted])
    if kind != "frame":
        assert open_source(data, target="y", features=["x", name]).feature_names == ("x", name)


def test_what_pandas_would_not_have_written_of_an_index_is_passed_over() -> None:
    for said in (b"{", b"[]", b"{}", b'{"index_columns": 3}', b'{"index_columns": [{"kind": "range"}, 3]}'):
        table = TABLE.replace_schema_metadata({b"pandas": said})
        assert open_source(table, target="y").feature_names == ("x", "year", "city")


def test_a_query_on_one_cursor_loses_no_rows() -> None:
    """The driver of SQLite goes on where a stream stopped that was left, if its cursor executes a query again."""
    import adbc_driver_sqlite.dbapi

    with adbc_driver_sqlite.dbapi.connect() as connection, connection.cursor() as cursor:
        _fit_queries(cursor)


def _fit_queries(cursor: Any) -> None:
    table = pa.table({"x": RNG.normal(size=3000), "y": RNG.normal(size=3000), "g": np.repeat([1, 2, 3], 1000)})
    cursor.adbc_ingest("rows", table)

    def query() -> Any:
        cursor.execute("select x, y, g from rows order by rowid")
        return cursor.fetch_record_batch()

    # What the test is for: without reading out, the first batch is not in the next stream.
    query().read_next_batch()
    assert sum(batch.num_rows for batch in query()) < 3000
    for formula, vcov in (("y ~ x", "iid"), ("y ~ x", "HC1"), ("y ~ C(g)", "HC1"), ("y ~ x", "CRV1:g")):
        with pytest.raises(ps.InputError, match="There is no column 'z'"):
            ps.fit(query, "y ~ z")
        model, known = ps.fit(query, formula, vcov=vcov), ps.fit(table, formula, vcov=vcov)
        assert model.record.row_count == 3000
        np.testing.assert_array_equal(model.coefficients, known.coefficients)
        np.testing.assert_array_equal(model.standard_errors, known.standard_errors)
    assert len(next(iter(open_source(query, target="y").read(0, None, 10)))) == 10
    assert len(ps.fit(table, "y ~ x").predict(query)) == 3000


def test_a_function_that_gives_other_rows_at_every_call_is_refused() -> None:
    rows = iter(range(300, 100, -1))
    with pytest.raises(ps.InputError, match="gave 300 rows in one pass and 299 in another: every call must give the"):
        ps.fit(lambda: TABLE.slice(0, next(rows)).to_reader(), "y ~ x", vcov="HC1")


def test_a_function_is_called_once_for_each_pass() -> None:
    calls = []

    def give() -> Any:
        calls.append(0)
        return TABLE.to_reader(70)

    ps.fit(give, "y ~ x", vcov="HC1")
    assert len(calls) == 2


def test_a_function_travels_to_other_processes() -> None:
    import cloudpickle

    source = open_source(lambda: TABLE.to_reader(70), target="y", features=["x"])
    read = cloudpickle.loads(cloudpickle.dumps(source)).read(0, None, 1000)
    assert sum(len(block) for block in read) == 300
