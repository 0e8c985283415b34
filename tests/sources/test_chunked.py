"""Rows in chunks: a worker that holds some of them sees what the local engine would."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from partsketch import InputError, LocalEngine
from partsketch.common.linalg.blas import one_thread_each
from partsketch.engines.gather import make_tasks
from partsketch.engines.worker import run_on_chunks, run_task
from partsketch.sketches.base import SketchSpecification
from partsketch.sources import Source, array_source, open_source
from partsketch.sources.cluster.chunked import ChunkedRows, is_remote
from partsketch.sources.cluster.chunks import Chunks, Collection
from partsketch.sources.cluster.remote import ChunkedArrays, ChunkedColumns, JoinedSource, holds_rows, part_of
from partsketch.sources.labelled import LabelledSource
from partsketch.sources.storage import schema_columns
from partsketch.summaries.partitions import Partitioning, order_partitions, single_partition
from partsketch.summaries.summarise import summarise_rows
from partsketch.summaries.tasks import SummaryRequest, Task, TaskResult


class Pieces(Collection):
    """A collection whose cluster is a list."""

    engine = "list"
    noun = "list of tables"

    def __init__(self, chunks: list[Any]) -> None:
        self.chunks = chunks
        self.name = "dask"  # collections are known by the package of their type; this one borrows the name

    @property
    def token(self) -> str:
        return "1"

    def map(self, work: Callable[[Any], Any]) -> Iterable[Any]:
        return [pickle.loads(pickle.dumps(work))(chunk) for chunk in self.chunks]

    def open_collection(self, data: Any) -> ChunkedRows:
        sizes = [chunk.num_rows for chunk in self.chunks]
        return ChunkedRows(Chunks.of(self, sizes), schema_columns(self.chunks[0].schema))


class Frame:
    """Stands for a data frame of a cluster."""


Frame.__module__ = "dask.dataframe"


def table(rows: int = 1000) -> Any:
    generator = np.random.default_rng(5)
    return pa.table(
        {
            "a": generator.normal(size=rows),
            "b": pa.array([None if i % 97 == 3 else float(i) for i in range(rows)]),
            "colour": pa.array([("red", "green", "blue")[i % 3] if i < rows - 9 else "violet" for i in range(rows)]),
            "site": generator.integers(0, 4, rows),
            "w": generator.random(rows),
            "y": generator.normal(size=rows),
        }
    )


def cut(whole: Any, sizes: list[int]) -> list[Any]:
    ends = np.cumsum([0, *sizes]).tolist()
    return [whole.slice(begin, end - begin) for begin, end in pairwise(ends)]


def same(first: TaskResult, second: TaskResult) -> None:
    assert (first.dropped, first.rows_seen, len(first.pieces)) == (second.dropped, second.rows_seen, len(second.pieces))
    for a, b in zip(first.pieces, second.pieces, strict=True):
        assert (a.partition, a.segment, a.row_count, a.weight_sum) == (
            b.partition,
            b.segment,
            b.row_count,
            b.weight_sum,
        )
        for left, right in zip(a.matrices, b.matrices, strict=True):
            np.testing.assert_array_equal(left, right)


def locally(source: Source, asked: SummaryRequest, task: Task) -> TaskResult:
    with one_thread_each():
        return summarise_rows(source, asked, task, 64)


def request(partitioning: Partitioning) -> SummaryRequest:
    return SummaryRequest(SketchSpecification("gaussian", 8, 3), partitioning, True)


def run_remotely(source: Any, asked: SummaryRequest, task: Task, chunks: list[Any]) -> TaskResult:
    sent = pickle.loads(pickle.dumps(source.sent()))
    needed = source.chunks.between(task.start, task.stop)
    return run_on_chunks(sent, asked, task, [chunks[number] for number in needed])


@given(st.lists(st.integers(0, 400), min_size=1, max_size=7), st.data())
def test_chunks_between_rows_are_those_that_hold_them(sizes: list[int], data: st.DataObject) -> None:
    chunks = Chunks(None, tuple(sizes), "list", "list")
    start = data.draw(st.integers(0, sum(sizes)))
    stop = data.draw(st.none() | st.integers(start, sum(sizes) + 5))
    owner = np.repeat(np.arange(len(sizes)), sizes)[start:stop]
    found = list(chunks.between(start, stop))
    assert [number for number in found if sizes[number]] == np.unique(owner).tolist()
    assert found == (list(range(owner[0], owner[-1] + 1)) if owner.size else [])


@pytest.mark.parametrize("sizes", [[1000], [300, 0, 450, 250], [1] * 10 + [990]])
@pytest.mark.parametrize("by", ["order", "site"])
def test_named_columns_give_the_bits_and_levels_of_a_table(sizes: list[int], by: str) -> None:
    options: dict[str, Any] = {
        "target": "y", "weights": "w", "encode": True, "missing": "drop",
        "partition_column": None if by == "order" else "site",
    }  # fmt: skip
    chunks = cut(table(), sizes)
    here = open_source(table(), **options)
    there = open_source(Frame(), engine=Pieces(chunks), **options)
    assert isinstance(there, ChunkedColumns)
    assert is_remote(there)
    assert not is_remote(here)
    for name in ("feature_names", "target_names", "row_count", "partition_values", "has_weights", "encoding"):
        assert getattr(there, name) == getattr(here, name)
    assert [part.stop for part in there.files] == np.cumsum([size for size in sizes if size]).tolist()
    partitioning = order_partitions(1000, 3, "spread") if by == "order" else Partitioning(names=here.partition_values)
    for task in make_tasks(there, partitioning):
        expected = locally(here, request(partitioning), task)
        same(run_remotely(there, request(partitioning), task, chunks), expected)


def test_refusals_name_the_row_of_the_whole() -> None:
    chunks = cut(table(), [300, 450, 250])
    asked = request(single_partition(1000))
    here = open_source(table(), target="y", features=["a", "b"])
    there = open_source(Frame(), target="y", features=["a", "b"], engine=Pieces(chunks))
    for task in (Task(0, 1000), Task(500, 1000)):
        with pytest.raises(InputError) as expected:
            summarise_rows(here, asked, task, 64)
        with pytest.raises(InputError) as found:
            run_remotely(there, asked, task, chunks)
        assert str(found.value) == str(expected.value)
        assert f"row {3 if task.start == 0 else 585}" in str(found.value)


def test_a_chunk_that_changed_is_refused() -> None:
    chunks = cut(table(), [500, 500])
    there = open_source(Frame(), target="y", features=["a"], engine=Pieces(chunks))
    asked = request(single_partition(1000))
    with pytest.raises(InputError, match=r"Chunk 1 of the list of tables has 499 rows now, and had 500"):
        run_remotely(there, asked, Task(0, 1000), [chunks[0], chunks[1].slice(1)])
    with pytest.raises(InputError, match=r"Chunk 1 lacks 'a'"):
        run_remotely(there, asked, Task(0, 1000), [chunks[0], chunks[1].drop_columns(["a"])])
    texts = chunks[1].set_column(0, "a", pa.array(["1"] * 500))
    with pytest.raises(InputError, match=r"Column 'a' is text in chunk 1 but double in the list of tables"):
        run_remotely(there, asked, Task(0, 1000), [chunks[0], texts])


def test_rows_do_not_come_to_the_driver() -> None:
    there = open_source(Frame(), target="y", features=["a"], engine=Pieces(cut(table(), [1000])))
    with pytest.raises(InputError, match="do not come here: use engine='list'"):
        next(iter(there.read()))
    arrays = ChunkedArrays(Chunks(None, (5,), "dask array", "dask"), ("x",), ("y",), False)
    with pytest.raises(InputError, match="dask array"):
        next(iter(arrays.read()))
    for engine in (None, LocalEngine(1)):
        with pytest.raises(InputError, match="stays on its cluster: use engine='dask'"):
            open_source(Frame(), target="y", engine=engine)


@pytest.mark.parametrize("kind", ["rows", "columns", "sparse"])
def test_arrays_in_chunks_give_the_bits_of_the_whole(kind: str) -> None:
    generator = np.random.default_rng(1)
    X = generator.normal(size=(700, 40)) * (generator.random((700, 40)) < 0.5)
    y, w = generator.normal(size=(700, 2)), generator.random(700)
    make: Any = {"rows": np.ascontiguousarray, "columns": np.asfortranarray, "sparse": sparse.csr_array}[kind]
    sizes, ends = [200, 0, 350, 150], [0, 200, 200, 550, 700]
    chunks = [(make(X[a:b]), y[a:b], w[a:b]) for a, b in pairwise(ends)]
    here = array_source(X, y, w)
    there = ChunkedArrays(Chunks(None, tuple(sizes), "array", "list"), here.feature_names, here.target_names, True)
    for partitioning in (order_partitions(700, 3, "spread"), Partitioning(("0", "1"), shuffle_seed=4)):
        for task in make_tasks(there, partitioning):
            expected = locally(here, request(partitioning), task)
            same(run_remotely(there, request(partitioning), task, chunks), expected)
    bad = (chunks[2][0], chunks[2][1], np.where(np.arange(350) == 7, -1, chunks[2][2]))
    with pytest.raises(InputError, match=r"sample_weight is -1\.0 in row 207"):
        run_remotely(there, request(single_partition(700)), Task(0, 700), [*chunks[:2], bad, chunks[3]])


def _in_memory() -> list[Source]:
    generator = np.random.default_rng(2)
    X, y = generator.normal(size=(500, 3)), generator.normal(size=500)
    return [
        array_source(X, y, generator.random(500)),
        array_source(sparse.csr_array(X), y),
        LabelledSource.from_values(array_source(X, y), generator.integers(0, 3, 500)),
        open_source(X, target=2),
        open_source(table(500), target="y", features=["a", "w"], partition_column="site"),
        open_source(table(500), target="y", features=["a", "b"], missing="drop"),
    ]


@pytest.mark.parametrize("number", range(6))
def test_parts_of_rows_in_memory_keep_their_numbers(number: int) -> None:
    source = _in_memory()[number]
    assert holds_rows(source)
    labels = Partitioning(source.partition_values)
    partitioning = labels if labels.names else order_partitions(500, 2, "spread")
    task = Task(250, 500)
    part = pickle.loads(pickle.dumps(part_of(source, task.start, task.stop)))
    # Half of the rows and some overhead, not the whole table behind a slice.
    assert len(pickle.dumps(part)) < 0.75 * len(pickle.dumps(source))
    asked = request(partitioning)
    same(run_task(part, asked, task), locally(source, asked, task))


def test_files_are_sent_by_name(tmp_path: Any) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(50, 2)))
    source = open_source(str(tmp_path / "x.npy"), target="x1")
    assert part_of(source, 10, 20) is source
    assert not holds_rows(source)


def test_a_stream_cannot_be_sent() -> None:
    source = open_source(table().to_reader(), target="y", features=["a"])
    with pytest.raises(InputError, match="can be read once and only here: use engine='local'"):
        part_of(source, 0, 10)


def test_joined_sources_read_ranges() -> None:
    X = np.arange(20.0)[:, None]
    joined = JoinedSource(((10, array_source(X[10:14], None)), (14, array_source(X[14:], None))))
    rows = np.concatenate([block.row_numbers for block in joined.read(12, 17, 3)])
    assert rows.tolist() == [12, 13, 14, 15, 16]
    assert joined.row_count == 20
