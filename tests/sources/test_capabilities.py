"""What a source can do, it can still do inside any wrapper; and whoever does not say what it can, cannot."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import partsketch
from partsketch.engines.base import Engine
from partsketch.fitting.absorbed.less_means import LessMeans
from partsketch.planner.diagnosis.watched_source import WatchedSource
from partsketch.sources import array_source
from partsketch.sources.base import Block, Capabilities, Codes, PartitionLeftOut, Source
from partsketch.sources.cluster.remote import part_of
from partsketch.sources.dense_block import DenseBlock
from partsketch.sources.files.paths import DataFiles
from partsketch.sources.labelled import LabelledSource
from partsketch.sources.read_ahead import ReadAhead
from partsketch.sources.shifted import ShiftedSource
from partsketch.sources.standardised import StandardisedSource
from partsketch.sources.wrapper import SourceWrapper
from partsketch.summaries.partitions import single_partition

ROWS = 6
X, Y = np.arange(12.0).reshape(ROWS, 2), np.arange(6.0)

PROPERTIES = sorted(name for name, value in vars(Capabilities).items() if isinstance(value, property))
METHODS = sorted(
    name for name, value in vars(Capabilities).items() if inspect.isfunction(value) and not name.startswith("_")
)


class Able(SourceWrapper):
    """A source that can do everything, and answers with values of its own."""

    answers: dict[str, Any] = {  # noqa: RUF012
        "row_major": True,
        "one_by_one": True,
        "features_in_memory": X,
        "stored_entries": 5,
        "opened_files": DataFiles("", ("a.csv",), ("a.csv",), "CSV"),
        "unreadable": (PartitionLeftOut("b.csv", None, "it is damaged"),),
        "on_cluster": False,
        "partition_count": 4,
        "cluster_count": 5,
        "codes": Codes(3, 1),
        "notes": ("a column was left out",),
    }
    lenient = False
    labelless = False
    threads = 1

    def leaving_finiteness(self) -> Source:
        found = Able(self.source)
        found.__dict__["lenient"] = True
        return found

    def leaving_labels(self) -> Source:
        found = Able(self.source)
        found.__dict__["labelless"] = True
        return found

    def decoded_by(self, threads: int) -> Source:
        found = Able(self.source)
        found.__dict__["threads"] = threads
        return found

    def read(self, start: int = 0, stop: int | None = None, block_rows: int = 65536) -> Iterator[Block]:
        for block in self.source.read(start, stop, block_rows):
            assert isinstance(block, DenseBlock)
            labels = np.zeros(len(block), dtype=np.int64)
            yield replace(block, weights=np.full(len(block), float(self.lenient)), labels=labels)


def answered(value: Any) -> property:
    return property(lambda self: value)


for _name, _value in Able.answers.items():
    setattr(Able, _name, answered(_value))


def wrapped() -> dict[type[SourceWrapper], SourceWrapper]:
    able = Able(array_source(X, Y))
    partitioning = single_partition(ROWS)
    return {
        ReadAhead: ReadAhead(able),
        LabelledSource: LabelledSource.from_values(able, np.array(["a", "b"] * 3)),
        ShiftedSource: ShiftedSource(able, 10),
        StandardisedSource: StandardisedSource(able, np.zeros(X.shape[1] + 1), np.ones(X.shape[1] + 1)),
        WatchedSource: WatchedSource(able, partitioning, None, True),
        LessMeans: LessMeans(able, np.zeros((2, X.shape[1] + 1))),
    }


#: What a wrapper means to say otherwise.
MEANT = {
    (WatchedSource, "leaving_finiteness"),
    (WatchedSource, "sliced"),
    (WatchedSource, "leaving_labels"),
    (WatchedSource, "decoded_by"),
    (LabelledSource, "leaving_labels"),
    # The one has labels of its own, the other none.
    (LabelledSource, "partition_count"),
    (LabelledSource, "cluster_count"),
    (ShiftedSource, "cluster_count"),
    (ShiftedSource, "partition_count"),
    # Its rows are made anew, dense, as they are read.
    *(
        (kind, name)
        for kind in (StandardisedSource, LessMeans)
        for name in ("row_major", "features_in_memory", "stored_entries", "codes")
    ),
    # Its means are those of the levels that labels tell.
    (LessMeans, "leaving_labels"),
}


def all_subclasses(kind: type) -> set[type]:
    for module in pkgutil.walk_packages(partsketch.__path__, "partsketch."):
        if "__main__" not in module.name:
            import_module(module.name)
    found: set[type] = set()
    waiting: list[type] = [kind]
    while waiting:
        children: list[type] = waiting.pop().__subclasses__()
        for child in children:
            if child.__module__.startswith("partsketch."):
                found.add(child)
                waiting.append(child)
    return found


def test_every_wrapper_is_looked_at() -> None:
    assert set(wrapped()) == all_subclasses(SourceWrapper)
    assert set(Able.answers) == set(PROPERTIES)
    assert METHODS == ["decoded_by", "leaving_finiteness", "leaving_labels", "sliced"]


@pytest.mark.parametrize("name", PROPERTIES)
@pytest.mark.parametrize("wrapper", wrapped().values(), ids=lambda wrapper: type(wrapper).__name__)
def test_a_wrapper_has_the_capabilities_of_what_it_wraps(wrapper: SourceWrapper, name: str) -> None:
    if (type(wrapper), name) not in MEANT:
        assert getattr(wrapper, name) is Able.answers[name]


@pytest.mark.parametrize("wrapper", wrapped().values(), ids=lambda wrapper: type(wrapper).__name__)
def test_leaving_finiteness_goes_through(wrapper: SourceWrapper) -> None:
    (block,) = wrapper.leaving_finiteness().read()
    expected = (type(wrapper), "leaving_finiteness") not in MEANT
    assert block.weights is not None
    assert bool(block.weights[0]) is expected


@pytest.mark.parametrize("wrapper", wrapped().values(), ids=lambda wrapper: type(wrapper).__name__)
def test_leaving_labels_goes_through(wrapper: SourceWrapper) -> None:
    inner = wrapper.leaving_labels().source  # type: ignore[attr-defined]
    assert inner.labelless is ((type(wrapper), "leaving_labels") not in MEANT)


@pytest.mark.parametrize("wrapper", wrapped().values(), ids=lambda wrapper: type(wrapper).__name__)
def test_decoding_by_threads_goes_through(wrapper: SourceWrapper) -> None:
    inner = wrapper.decoded_by(3).source  # type: ignore[attr-defined]
    assert inner.threads == (1 if (type(wrapper), "decoded_by") in MEANT else 3)


@pytest.mark.parametrize("wrapper", wrapped().values(), ids=lambda wrapper: type(wrapper).__name__)
def test_slices_are_the_same_rows(wrapper: SourceWrapper) -> None:
    """A part that is sent to a worker has the rows, the labels and the numbers that the whole has there."""
    first = 10 if isinstance(wrapper, ShiftedSource) else 0
    if (type(wrapper), "sliced") in MEANT:
        assert wrapper.sliced(first + 1, first + 4) is None
        return
    part = part_of(wrapper, first + 1, first + 4)
    assert part is not wrapper
    (here,), (there,) = (list(source.read(first + 1, first + 4)) for source in (wrapper, part))
    assert here.row_numbers.tolist() == there.row_numbers.tolist() == [first + 1, first + 2, first + 3]
    assert (here.labels is None) == (there.labels is None)
    if here.labels is not None and there.labels is not None:
        assert here.labels.tolist() == there.labels.tolist()
    values = np.empty((2, 3, 3))
    for block, out in zip((here, there), values, strict=True):
        block.copy_into(out, 0, 3)
    assert np.array_equal(values[0], values[1])


def test_a_labelled_frame_is_refined_and_read_by_rows() -> None:
    """The capability that was once lost: of an array with labels rows are known to lie one after another."""
    for features in (X, sparse.csr_array(X)):
        plain = array_source(features, Y)
        labelled = LabelledSource.from_values(plain, np.array(["a", "b"] * 3))
        assert labelled.row_major is plain.row_major
        assert labelled.features_in_memory is plain.features_in_memory
        assert labelled.stored_entries == plain.stored_entries


def test_sources_say_what_they_can() -> None:
    """Sources and engines of the package are subclasses of the contracts, so that nothing has to be asked of them."""
    sources = {kind for kind in all_subclasses(Capabilities) if not getattr(kind, "_is_protocol", False)}
    assert {kind.__name__ for kind in sources} >= {"ArraySource", "SparseSource", "ColumnSource", "JoinedSource"}
    assert {kind.__name__ for kind in all_subclasses(Engine)} == {
        "DaskEngine", "LocalEngine", "RayEngine", "SparkEngine",
    }  # fmt: skip
