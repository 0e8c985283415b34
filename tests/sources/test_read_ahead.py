"""Blocks that another thread reads: the same ones, in their order, and errors where they belong."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import partsketch as ps
from partsketch.sources.base import Block
from partsketch.sources.column_source import ColumnSource
from partsketch.sources.opening import open_source
from partsketch.sources.read_ahead import Ahead, ReadAhead
from partsketch.sources.wrapper import SourceWrapper

RNG = np.random.default_rng(3)
TABLE = pa.table({"x": RNG.normal(size=50_000), "y": RNG.normal(size=50_000), "g": RNG.integers(0, 7, 50_000)})


def source(table: Any = TABLE) -> Any:
    return open_source(table, target="y", features=["x"])


def readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "partsketch-reader"]


@dataclass(frozen=True)
class Counting(SourceWrapper):
    """Counts the blocks that are taken, and may fail."""

    taken: list[int] = field(default_factory=list)
    fails_at: int = -1

    def read(self, start: int = 0, stop: int | None = None, block_rows: int = 65536) -> Iterator[Block]:
        for number, block in enumerate(self.source.read(start, stop, block_rows)):
            if number == self.fails_at:
                raise ps.InputError("block cannot be read")
            self.taken.append(number)
            yield block


def test_the_same_blocks_in_their_order() -> None:
    assert isinstance(source(), ColumnSource)
    found = [block.row_numbers for block in ReadAhead(source()).read(100, 40_000, 1000)]
    known = [block.row_numbers for block in source().read(100, 40_000, 1000)]
    for one, other in zip(found, known, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not readers()


def test_one_block_is_ahead_and_no_more() -> None:
    counting = Counting(source())
    blocks: Any = ReadAhead(counting).read(0, None, 1000)
    next(blocks)
    # The one that is used and the next; the third may not be begun before the first is done with.
    for reader in readers():
        reader.join(0.2)
    assert counting.taken == [0, 1]
    blocks.close()
    assert not readers()


def test_errors_come_after_the_blocks_before_them() -> None:
    blocks = ReadAhead(Counting(source(), fails_at=3)).read(0, None, 1000)
    assert [int(next(blocks).row_numbers[0]) for _ in range(3)] == [0, 1000, 2000]
    with pytest.raises(ps.InputError, match="block cannot be read"):
        next(blocks)
    assert not readers()


def test_one_row_group_gives_the_same_bits_on_any_number_of_threads(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    one, two = (
        ps.summarise(tmp_path / "rows.parquet", ["x", "y"], partition_by="g", engine=ps.LocalEngine(threads=threads))
        for threads in (1, 4)
    )
    for first, second in zip(one.factors, two.factors, strict=True):
        np.testing.assert_array_equal(first.matrix, second.matrix)
    broken = TABLE.set_column(0, "x", pa.array(np.where(np.arange(50_000) == 41_234, np.nan, TABLE["x"].to_numpy())))
    pq.write_table(broken, tmp_path / "broken.parquet")
    with pytest.raises(ps.InputError, match=r"'x'.* row 41234"):
        ps.summarise(tmp_path / "broken.parquet", ["x", "y"], partition_by="g", engine=ps.LocalEngine(threads=4))
    assert not readers()


def test_what_is_ahead_ends_when_it_is_closed_and_says_again_that_nothing_is_left() -> None:
    unused = Ahead(iter(range(10)), 2)
    unused.close()
    blocks = Ahead(iter([1, 2]), 3)
    assert [next(blocks), next(blocks), next(blocks, None), next(blocks, None)] == [1, 2, None, None]
    blocks.close()
    assert not readers()


def many_columns() -> Any:
    """Numbers, and texts whose dictionary changes in the middle, so that their batches end elsewhere."""
    words = np.array([f"word {number}" for number in range(3000)])
    texts = np.concatenate([words[RNG.integers(0, 3, 40_000)], words[np.arange(10_000) % 3000]])
    numbers = {f"x{number}": RNG.normal(size=50_000) for number in range(9)}
    return pa.table({**numbers, "text": texts, "y": RNG.normal(size=50_000)})


@pytest.mark.parametrize("threads", [2, 3])
def test_columns_shared_out_among_threads_are_the_same(threads: int, tmp_path: Path) -> None:
    table = many_columns()
    pq.write_table(table, tmp_path / "rows.parquet", dictionary_pagesize_limit=10_000, row_group_size=30_000)
    names = [name for name in table.column_names if name != "y"]
    opened = open_source(tmp_path / "rows.parquet", target="y", features=names, encode=True)
    assert isinstance(opened, ColumnSource)
    for start, stop, rows in ((0, None, 65_536), (10_001, 45_000, 7_777)):
        known = list(opened.rows.raw_blocks(start, stop, rows))
        found = list(opened.rows.decoded_by(threads).raw_blocks(start, stop, rows))
        assert sum(raw.length for raw in found) == sum(raw.length for raw in known)
        for column in range(len(known[0].columns)):
            one, other = (
                pa.concat_arrays([pa.array(raw.columns[column].to_pylist()) for raw in blocks])
                for blocks in (known, found)
            )
            assert one.equals(other)
        row = start
        for raw in found:
            assert raw.start == row
            row += raw.length
    assert not readers()


def test_a_column_that_another_thread_cannot_decode_is_told_of_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(many_columns(), path, use_dictionary=False)
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(1)
    data = bytearray(path.read_bytes())
    data[chunk.data_page_offset : chunk.data_page_offset + 2000] = b"\xff" * 2000
    path.write_bytes(data)
    with pytest.raises(ps.InputError, match=r"rows\.parquet"):
        ps.fit(path, "y", [f"x{number}" for number in range(9)], engine=ps.LocalEngine(threads=2))
    assert not readers()
