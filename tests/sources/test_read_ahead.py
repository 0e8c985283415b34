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
from partsketch.sources.read_ahead import ReadAhead
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
