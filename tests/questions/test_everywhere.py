"""Summaries come from every kind of storage, grow, and are joined: the answers are those of all rows at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pytest

import partsketch as ps
from tests.questions.data import clustered_rows

ROWS = clustered_rows(400, 6)[["a", "b", "y", "g"]]
COLUMNS = ["a", "b", "y"]


def csv(folder: Path) -> str:
    ROWS.to_csv(folder / "rows.csv", index=False)
    return str(folder / "rows.csv")


def parquet_files(folder: Path) -> str:
    for number in range(3):
        ROWS[number * 150 : (number + 1) * 150].to_parquet(folder / f"{number}.parquet")
    return str(folder / "*.parquet")


def feather(folder: Path) -> str:
    pa.feather.write_feather(pa.Table.from_pandas(ROWS, preserve_index=False), folder / "rows.feather")
    return str(folder / "rows.feather")


KINDS: dict[str, Callable[[Path], Any]] = {
    "pandas": lambda folder: ROWS,
    "polars": lambda folder: pl.from_pandas(ROWS),
    "arrow": lambda folder: pa.Table.from_pandas(ROWS, preserve_index=False),
    "duckdb": lambda folder: duckdb.from_df(ROWS),
    "csv": csv,
    "parquet": parquet_files,
    "feather": feather,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_storage_gives_the_same_summaries(kind: str, tmp_path: Path) -> None:
    expected = ps.summarise(ROWS, COLUMNS, partition_by="g")
    found = ps.summarise(KINDS[kind](tmp_path), COLUMNS, partition_by="g")
    assert found == expected
    grown = found.add(KINDS[kind](tmp_path), partition_by="g")
    assert grown.names == expected.names
    assert sum(grown.row_counts) == 2 * len(ROWS)
    # Every row twice: the coefficients stay.
    np.testing.assert_allclose(grown.fit("y").coefficients, expected.fit("y").coefficients, rtol=1e-12)


def test_a_stream_is_read_once() -> None:
    table = pa.Table.from_pandas(ROWS, preserve_index=False)

    def stream() -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=33))

    asked: dict[str, Any] = {"partition_by": "shuffle", "n_partitions": 4}
    assert ps.summarise(stream(), COLUMNS, **asked) == ps.summarise(ROWS, COLUMNS, **asked)
    with pytest.raises(ps.InputError, match="can be read only once"):
        ps.summarise(stream(), COLUMNS, partition_by="g")


def test_growth_day_by_day_is_all_days_at_once(tmp_path: Path) -> None:
    summaries = ps.summarise(ROWS[:100], COLUMNS, partition_by="g", label="monday")
    for day, start in (("tuesday", 100), ("wednesday", 200), ("thursday", 300)):
        summaries = summaries.add(ROWS[start : start + 100], partition_by="g", label=day)
        summaries.save(tmp_path / "all.psk")
        summaries = ps.read_summaries(tmp_path / "all.psk")
    whole = ps.summarise(ROWS, COLUMNS, partition_by="g")
    assert sorted(summaries.names) == sorted(whole.names)
    for vcov in ("iid", "CRV1", "CRV3"):
        np.testing.assert_allclose(
            summaries.fit("y", vcov=vcov).standard_errors, whole.fit("y", vcov=vcov).standard_errors, rtol=1e-10
        )
    with pytest.raises(ps.InputError, match="'tuesday' are in already"):
        summaries.add(ROWS[:100], partition_by="g", label="tuesday")


def test_growth_with_weights_and_text() -> None:
    rows = ROWS.assign(w=np.linspace(0.5, 2, len(ROWS)), kind=np.where(ROWS["a"] > 0, "hot", "cold"))
    columns = [*COLUMNS, "kind"]
    first, last = (
        ps.summarise(part, columns, partition_by="g", weights="w", encode=True) for part in (rows[:300], rows)
    )
    grown = first.add(rows[300:], partition_by="g", weights="w")
    np.testing.assert_allclose(grown.fit("y").coefficients, last.fit("y").coefficients, rtol=1e-11)
    with pytest.raises(ps.InputError, match="name the column of weights"):
        first.add(rows[300:], partition_by="g")
    with pytest.raises(ps.InputError, match="lukewarm"):
        first.add(rows[300:].assign(kind="lukewarm"), partition_by="g", weights="w")


def test_selection_goes_with_growth_and_files(tmp_path: Path) -> None:
    few = ps.summarise(ROWS, COLUMNS, partition_by="g").select(["1", "3"], ["y", "a"])
    few.save(tmp_path / "few.psk")
    assert ps.read_summaries(tmp_path / "few.psk") == few
    grown = few.add(ROWS[ROWS["g"] == 3], partition_by="g")
    assert grown.row_counts == (few.row_counts[0], 2 * few.row_counts[1])
    assert grown.columns == ("y", "a")


def test_files_of_several_sites_in_one_list(tmp_path: Path) -> None:
    for place, site in enumerate(("north", "south", "west")):
        ps.summarise(ROWS[place::3], COLUMNS, partition_by="g", site=site).save(tmp_path / f"{site}.psk")
    whole = ps.summarise(ROWS, COLUMNS, partition_by="g")
    paths = [tmp_path / f"{site}.psk" for site in ("north", "south", "west")]
    for files in (str(tmp_path / "*.psk"), paths, [str(path) for path in paths]):
        joined = ps.read_summaries(files)
        assert len(joined) == 18
        together = joined.together()
        assert together.row_counts == whole.row_counts
        np.testing.assert_allclose(
            together.fit("y", vcov="CRV1").standard_errors, whole.fit("y", vcov="CRV1").standard_errors, rtol=1e-10
        )
    ps.summarise(pd.concat([ROWS, ROWS]), ["a", "y"], partition_by="g", site="other").save(tmp_path / "other.psk")
    with pytest.raises(ps.InputError, match=r"other\.psk"):
        ps.read_summaries(str(tmp_path / "*.psk"))
