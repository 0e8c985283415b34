"""Rows that several threads sum: whole segments each, the same bits, and the first error of all."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import partsketch as ps
from partsketch.common.errors import InputError
from partsketch.sources.base import Block
from partsketch.sources.opening import open_source
from partsketch.summaries import together
from partsketch.summaries.partitions import Partitioning
from partsketch.summaries.tasks import Piece

ROWS = 200_000
RNG = np.random.default_rng(5)
TABLE = pa.table({name: RNG.normal(size=ROWS) for name in "abcy"} | {"g": RNG.integers(0, 40, ROWS)})


class Asked:
    """A request with segments of 1,000 rows."""

    segment_rows = 1000
    merging = None

    def __init__(self, bounds: tuple[int, ...] | None) -> None:
        self.partitioning = Partitioning(("all",) if bounds is None else ("one", "two"), bounds)


def opened() -> Any:
    return open_source(TABLE, target="y", features=["a"])


def blocks(rows: int) -> Iterator[Block]:
    found: Iterator[Block] = opened().read(0, 12_345, rows)
    return found


@pytest.mark.parametrize("rows", [77, 1000, 1024, 9999])
@pytest.mark.parametrize("bounds", [None, (0, 2345, 12_345)])
def test_portions_are_whole_segments(
    rows: int, bounds: tuple[int, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Any = Asked(bounds)
    portions = [
        np.concatenate([block.row_numbers for block in portion])
        for portion in together.whole_segments(asked, blocks(rows), 2000)
    ]
    np.testing.assert_array_equal(np.concatenate(portions), np.arange(12_345))
    ends = {int(portion[-1]) + 1 for portion in portions}
    first = 0 if bounds is None else bounds[1]
    assert all((end - first * (end > first)) % 1000 == 0 for end in ends - {first, 12_345})
    assert all(len(portion) >= 2000 for portion in portions[:-1])
    assert len(portions) in (6, 7)
    # What is copied is what the block has.
    values = np.empty((2, 12_345))
    at = 0
    for portion in together.whole_segments(asked, blocks(rows), 2000):
        for block in portion:
            block.copy_into(values[:, at : at + len(block)], 0, len(block))
            at += len(block)
    np.testing.assert_array_equal(values, [TABLE[name].to_numpy()[:12_345] for name in "ay"])


@pytest.mark.parametrize(
    "asked", [{}, {"vcov": "HC3"}, {"vcov": {"CRV1": "g"}}, {"method": "average", "n_partitions": 3, "sketch_size": 50}]
)
def test_one_row_group_gives_the_same_bits_on_any_number_of_threads(asked: dict[str, Any], tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "rows.parquet", row_group_size=ROWS)
    models = [
        ps.fit(tmp_path / "rows.parquet", "y", ["a", "b", "c"], random_state=1, engine=ps.LocalEngine(threads), **asked)
        for threads in (1, 2, 5)
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coefficients, models[0].coefficients)
        np.testing.assert_array_equal(model.standard_errors, models[0].standard_errors)


def test_the_first_error_is_raised_and_nobody_is_left() -> None:
    asked: Any = Asked(None)
    waiting = threading.Event()

    def pieces_of(some: Iterator[Block]) -> Iterator[Piece]:
        row = int(next(some).row_numbers[0])
        if row:
            waiting.set()
            raise InputError(f"rows from {row} on")
        # The rows after these fail first.
        waiting.wait(5)
        raise InputError("the first rows")

    before = threading.active_count()
    with pytest.raises(InputError, match="the first rows"):
        together.pieces_together(
            asked, open_source(TABLE, target="y", features=["a"]).read(0, None, 1000), 3, pieces_of
        )
    assert threading.active_count() == before


def test_an_error_of_reading_comes_after_those_of_rows_before_it() -> None:
    asked: Any = Asked(None)
    given = [*opened().read(0, 40_000, 1000)]

    def broken() -> Iterator[Block]:
        yield from given
        raise InputError("the file ends here")

    def pieces_of(some: Iterator[Block]) -> Iterator[Piece]:
        raise InputError("a row is wrong")

    with pytest.raises(InputError, match="a row is wrong"):
        together.pieces_together(asked, broken(), 1, pieces_of)
    with pytest.raises(InputError, match="the file ends here"):
        together.pieces_together(asked, broken(), 2, lambda some: iter(()))
