"""The blocks of a `ray.data.Dataset` as chunks of rows."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from partsketch.common.errors import InputError
from partsketch.engines.bundles import taken, tried
from partsketch.engines.ray.engine import import_ray
from partsketch.sources.cluster.chunked import ChunkedRows
from partsketch.sources.cluster.chunks import Chunks, Collection
from partsketch.sources.identity import joint_digest, table_digest
from partsketch.sources.storage import Column, schema_columns

T = TypeVar("T")

#: Blocks that are looked at at the same time.
_UNDER_WAY = 64


@dataclass
class RayBlocks(Collection):
    """References to the blocks of a dataset, Arrow tables in Ray's object store."""

    refs: tuple[Any, ...]
    engine: str = "ray"
    noun: str = "Ray dataset"

    @cached_property
    def token(self) -> str:
        """A digest of all rows, made where they lie; references differ from run to run and say nothing of them."""
        return joint_digest(self.map(table_digest))

    def map(self, work: Callable[[Any], T]) -> Iterator[T]:
        """Call `work` with every block where it lies; yield the results in the order of the blocks."""
        ray = import_ray()
        on_block = ray.remote(tried).options(num_cpus=1)
        shared = ray.put(work)
        left = iter(self.refs)
        under_way: deque[Any] = deque()
        while True:
            while len(under_way) < _UNDER_WAY and (block := next(left, None)) is not None:
                under_way.append(on_block.remote(shared, block))
            if not under_way:
                return
            yield taken(ray.get(under_way.popleft()))


@dataclass(frozen=True)
class _Size:
    """The number of rows of a block and its columns."""

    rows: int
    columns: tuple[Column, ...]


def _size(block: Any) -> _Size:
    return _Size(block.num_rows, schema_columns(block.schema))


def dataset_rows(dataset: Any) -> ChunkedRows:
    """Return the rows of a dataset; blocks that are not there yet are made and stay on the cluster."""
    if not hasattr(dataset, "to_arrow_refs"):
        raise InputError(f"A {type(dataset).__name__} of Ray cannot be opened: pass a ray.data.Dataset.")
    options, logger = dataset.context.execution_options, logging.getLogger("ray.data")
    preserved, level = options.preserve_order, logger.level
    try:
        # Rows are known by their numbers, so their order must not depend on which block is made first.
        options.preserve_order = True
        logger.setLevel(logging.ERROR)
        blocks = dataset.to_arrow_refs()
    finally:
        options.preserve_order = preserved
        logger.setLevel(level)
    collection = RayBlocks(tuple(blocks))
    sizes = list(collection.map(_size))
    columns = next((size.columns for size in sizes if size.rows), ())
    return ChunkedRows(Chunks.of(collection, (size.rows for size in sizes)), columns)
