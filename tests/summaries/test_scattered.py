"""Partitions that lie all over the rows: many or few of them, in one pass or several, the bits are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partsketch.engines import wholes
from partsketch.engines.gather import Gathered, gather
from partsketch.engines.local import LocalEngine
from partsketch.engines.wholes import passes_over, waiting_bytes
from partsketch.sketches.base import SketchSpecification
from partsketch.sources.labelled import LabelledSource
from partsketch.sources.memory.arrays import array_source
from partsketch.summaries import scattered
from partsketch.summaries.partitions import Partitioning, single_partition
from partsketch.summaries.tasks import SummaryRequest

ROWS, COUNT = 2_400, 40


def _source(kind: str) -> Any:
    draw = np.random.default_rng(3)
    X = draw.normal(size=(ROWS, 3)) + (1e8 if kind == "far" else 0.0)
    return array_source(X, X[:, 0] + draw.normal(size=ROWS), draw.exponential(size=ROWS))


def _gathered(kind: str, sketch: str, threads: int = 1, **changes: Any) -> Gathered:
    source = _source(kind)
    partitioning = Partitioning(tuple(str(i) for i in range(COUNT)), shuffle_seed=8)
    if kind == "labels":
        labels = np.random.default_rng(4).integers(0, COUNT, ROWS) ** 2 // COUNT
        source = LabelledSource.from_values(source, labels)
        partitioning = Partitioning(source.partition_values)
    specification = SketchSpecification(sketch) if sketch == "triangular" else SketchSpecification(sketch, 9, 11)
    request = SummaryRequest(specification, partitioning, True, segment_rows=500, row_count=ROWS, **changes)
    return gather(source, request, LocalEngine(threads, block_rows=180))


def _same(first: Gathered, second: Gathered) -> None:
    assert first.summaries == second.summaries
    assert (first.names, first.row_counts, first.weight_sums) == (second.names, second.row_counts, second.weight_sums)
    assert first.target_range.tobytes() == second.target_range.tobytes()
    assert first.rows_dropped == second.rows_dropped


@pytest.mark.parametrize("sketch", ["gaussian", "triangular", "srht", "sparse_sign", "count_sketch", "row_sample"])
@pytest.mark.parametrize("kind", ["near", "far", "labels"])
def test_one_tile_for_all_partitions_or_one_for_each(kind: str, sketch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scattered, "_are_many", lambda source, request: False)
    each = _gathered(kind, sketch)
    monkeypatch.setattr(scattered, "_are_many", lambda source, request: True)
    _same(each, _gathered(kind, sketch))
    _same(each, _gathered(kind, sketch, threads=2))


@pytest.mark.parametrize("sketch", ["gaussian", "triangular"])
@pytest.mark.parametrize("kind", ["near", "labels"])
def test_several_passes_give_what_one_gives(kind: str, sketch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    once = _gathered(kind, sketch)
    passes = []
    monkeypatch.setattr(wholes, "MOST_WAITING", 40_000)
    run = LocalEngine.run

    def counted(self: LocalEngine, source: Any, request: SummaryRequest, *rest: Any) -> Any:
        passes.append(request.group)
        return run(self, source, request, *rest)

    monkeypatch.setattr(LocalEngine, "run", counted)
    _same(once, _gathered(kind, sketch))
    assert len(passes) > 2
    assert [number for group in passes if group is not None for number in group] == list(range(len(once.names)))


def test_passes_follow_from_the_memory_of_waiting_pieces() -> None:
    source = _source("near")
    specification = SketchSpecification("gaussian", 84, 1)

    def groups(count: int, **changes: Any) -> list[range | None]:
        partitioning = Partitioning(tuple(str(i) for i in range(count)), **{"shuffle_seed": 8, **changes})
        request = SummaryRequest(specification, partitioning, True, row_count=ROWS)
        found = [asked.group for asked in passes_over(source, request)]
        if found != [None]:
            each = [len(group) for group in found if group is not None]
            assert sum(each) == count
            assert max(each) * waiting_bytes(source, request) / count <= wholes.MOST_WAITING * 1.01
        return found

    assert groups(1000) == [None]
    assert len(groups(100_000)) > 5
    # Those that follow one another are merged one by one.
    assert groups(100_000, shuffle_seed=None, bounds=tuple(range(100_001))) == [None]


@pytest.mark.parametrize("sketch", ["gaussian", "srht", "sparse_sign", "count_sketch", "row_sample"])
def test_sketches_of_the_whole_in_several_passes_are_those_of_one(sketch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = _source("near")
    specification = SketchSpecification(sketch, 20, 5)
    request = SummaryRequest(specification, single_partition(ROWS), True, 7, ROWS)
    once = gather(source, request, LocalEngine(2))
    assert len(passes_over(source, request)) == 1
    monkeypatch.setattr(wholes, "MOST_WAITING", 3 * waiting_bytes(source, request) // 7)
    passes = passes_over(source, request)
    assert len(passes) > 2
    assert [number for asked in passes for number in asked.sketches] == list(range(7))
    _same(once, gather(source, request, LocalEngine(2)))


def test_orthogonal_sketches_of_the_whole_share_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    source = _source("near")
    request = SummaryRequest(SketchSpecification("orthogonal", 20, 5), single_partition(ROWS), True, 7, ROWS)
    monkeypatch.setattr(wholes, "MOST_WAITING", 1)
    assert passes_over(source, request) == [request]


@pytest.mark.parametrize("many", [True, False])
def test_blocks_without_rows_of_a_pass(many: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is sorted by its partitions: most blocks have nothing for a pass."""
    source = LabelledSource.from_values(_source("near"), np.arange(ROWS) * COUNT // ROWS)
    request = SummaryRequest(SketchSpecification("gaussian", 9, 11), Partitioning(source.partition_values), True)
    once = gather(source, request, LocalEngine(1, block_rows=180))
    monkeypatch.setattr(scattered, "_are_many", lambda source, request: many)
    monkeypatch.setattr(wholes, "MOST_WAITING", 40_000)
    _same(once, gather(source, request, LocalEngine(1, block_rows=180)))
