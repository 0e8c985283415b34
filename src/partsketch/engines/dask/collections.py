"""Dask arrays and data frames as collections of chunks that stay on the cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from partsketch.common.errors import InputError
from partsketch.engines.bundles import taken, tried
from partsketch.sources.cluster.chunked import ChunkedRows, chunk_rows
from partsketch.sources.cluster.chunks import Chunks, Collection
from partsketch.sources.cluster.remote import ChunkedArrays
from partsketch.sources.storage import Column, check_numeric

T = TypeVar("T")


class DaskCollection(Collection):
    """One or several Dask collections with the same chunks of rows.

    With several, a chunk is the tuple of theirs.
    """

    engine = "dask"

    def __init__(self, client: Any, parts: Sequence[Any], noun: str) -> None:
        self._client, self._parts, self.noun = client, tuple(parts), noun

    @property
    def token(self) -> str:
        """Dask's own name for the content."""
        from dask.base import tokenize

        return str(tokenize(*self._parts))

    def choose(self, names: Sequence[str]) -> DaskCollection:
        """Return a data frame with these columns only, so that no others are made or read."""
        (frame,) = self._parts
        if not hasattr(frame, "columns"):
            return self
        by_text = {str(name): name for name in frame.columns}
        return DaskCollection(self._client, [frame[[by_text[name] for name in names]]], self.noun)

    @cached_property
    def _graph(self) -> tuple[dict[Any, Any], list[list[Any]]]:
        """The graph behind all chunks, and for every chunk its keys: made once, cut for each chunk."""
        graph: dict[Any, Any] = {}
        keys = []
        for part in self._parts:
            # Data frames are expressions until they are optimised; persisted arrays would lose their chunks by it.
            part = part.optimize() if hasattr(part, "optimize") else part
            graph.update(part.__dask_graph__())
            # The keys of an array are nested once per dimension; the columns are in one chunk.
            keys.append([key[0] if isinstance(key, list) else key for key in part.__dask_keys__()])
        return graph, [list(together) for together in zip(*keys, strict=True)]

    def __len__(self) -> int:
        return len(self._graph[1])

    def futures(self, number: int) -> Any:
        """Have a chunk made, or kept where it is; return the future of it, or the list of futures."""
        from dask.optimization import cull

        graph, keys = self._graph
        needed, _ = cull(graph, keys[number])
        made = self._client.get(needed, keys[number], sync=False)
        return made[0] if len(self._parts) == 1 else made

    def map(self, work: Callable[[Any], T]) -> Iterator[T]:
        """Call `work` with every chunk on the cluster; few at a time, results in order."""
        most = 2 * max(1, sum(self._client.nthreads().values())) + 1
        waiting: deque[Any] = deque()
        remaining = iter(range(len(self)))
        try:
            while True:
                while len(waiting) < most and (number := next(remaining, None)) is not None:
                    waiting.append(self._client.submit(tried, work, self.futures(number), pure=False))
                if not waiting:
                    return
                yield taken(waiting.popleft().result())
        finally:
            if waiting:
                self._client.cancel(list(waiting), force=True)


def open_collection(client: Any, data: Any) -> ChunkedRows:
    """Return the rows of a Dask array or data frame; lengths and types that only the chunks tell are asked of them."""
    if hasattr(data, "dtype") and getattr(data, "ndim", 0) == 2:
        array = _whole_columns(data, "The Dask array")
        collection = DaskCollection(client, [array], "dask array")
        columns = tuple(Column(f"x{index}", "number", str(array.dtype)) for index in range(array.shape[1]))
        return ChunkedRows(Chunks.of(collection, _sizes(collection, array)), columns)
    if not hasattr(data, "columns") or not hasattr(data, "npartitions"):
        raise InputError(
            f"A Dask {type(data).__name__} cannot be used: pass a Dask data frame or a two-dimensional Dask array."
        )
    collection = DaskCollection(client, [data], "dask dataframe")
    counted = DaskCollection(client, [data[[data.columns[0]]]], collection.noun) if len(data.columns) else collection
    sizes = tuple(counted.map(len))
    # The declared types of a data frame do not tell what its objects are, a chunk does.
    first = next((number for number, size in enumerate(sizes) if size), 0)
    described = taken(client.submit(tried, _columns, collection.futures(first), pure=False).result())
    return ChunkedRows(Chunks.of(collection, sizes), described)


def open_arrays(
    client: Any, X: Any, y: Any, sample_weight: Any, feature_names: Sequence[str] | None, target_names: Sequence[str]
) -> ChunkedArrays:
    """Return features, targets and weights that are Dask arrays with the same chunks of rows."""
    features = _whole_columns(X, "X")
    if features.ndim != 2:
        raise InputError(f"X has {features.ndim} dimension(s): it must have two, rows and columns.")
    parts = [features, _beside(features, y, "y")]
    if sample_weight is not None:
        parts.append(_beside(features, sample_weight, "sample_weight"))
    collection = DaskCollection(client, parts, "dask array")
    known = all(np.isfinite(part.chunks[0]).all() for part in parts)
    lengths = [part.chunks[0] for part in parts] if known else list(zip(*collection.map(_lengths), strict=True))
    for name, sizes in zip(("y", "sample_weight"), lengths[1:], strict=False):
        if tuple(sizes) != tuple(lengths[0]):
            raise InputError(
                f"X has {sum(lengths[0])} rows and {name} has {sum(sizes)}, or their chunks differ: give both the "
                "same chunks of rows."
            )
    names = tuple(feature_names) if feature_names else tuple(f"x{index}" for index in range(features.shape[1]))
    chunks = Chunks.of(collection, (int(size) for size in lengths[0]))
    return ChunkedArrays(chunks, names, tuple(target_names), sample_weight is not None)


def _whole_columns(array: Any, name: str) -> Any:
    """Return an array with all columns in one chunk, a data frame as such an array."""
    array = array.to_dask_array() if hasattr(array, "to_dask_array") else array
    check_numeric(array.dtype, name)
    return array.rechunk({1: -1}) if array.ndim == 2 and len(array.chunks[1]) > 1 else array


def _beside(features: Any, values: Any, name: str) -> Any:
    """Return values with the chunks of the features, as far as these are known."""
    import dask.array

    rows = features.chunks[0]
    known = bool(np.isfinite(rows).all())
    if not hasattr(values, "__dask_graph__"):
        values = np.asarray(values)
        if not known:
            raise InputError(f"{name} is in memory and the chunks of X have unknown sizes: make it a Dask array too.")
        if values.shape[0] != sum(rows):
            raise InputError(
                f"X has {sum(rows)} rows but {name} has {values.shape[0]}: they must have the same number."
            )
        values = dask.array.from_array(values, chunks=(rows, *values.shape[1:]))
    values = _whole_columns(values, name)
    if known and np.isfinite(values.chunks[0]).all():
        if sum(values.chunks[0]) != sum(rows):
            raise InputError(
                f"X has {sum(rows)} rows but {name} has {sum(values.chunks[0])}: they must have the same number."
            )
        return values.rechunk({0: rows})
    if values.numblocks[0] != features.numblocks[0]:
        raise InputError(
            f"X has {features.numblocks[0]} chunks of rows and {name} has {values.numblocks[0]}, of unknown sizes: "
            "give both the same chunks."
        )
    return values


def _sizes(collection: DaskCollection, array: Any) -> tuple[int, ...]:
    if np.isfinite(array.chunks[0]).all():
        return tuple(int(size) for size in array.chunks[0])
    return tuple(collection.map(len))


def _columns(chunk: Any) -> tuple[Column, ...]:
    return chunk_rows(chunk).columns


def _lengths(chunk: Sequence[Any]) -> tuple[int, ...]:
    return tuple(len(part) for part in chunk)
