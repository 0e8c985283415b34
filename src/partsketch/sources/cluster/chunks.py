"""What the driver knows of rows that lie on a cluster in chunks: whose they are, and how many rows each has."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, TypeVar

from partsketch.common.errors import InputError
from partsketch.sources.base import FilePart
from partsketch.sources.storage import clip

T = TypeVar("T")


class Collection:
    """A collection of a cluster, as its engine sees it; each engine has its own kind.

    Attributes
    ----------
    engine
        Name of the engine that reaches the chunks.
    noun
        What it is called: "dask dataframe".
    """

    engine: str
    noun: str

    @property
    def token(self) -> str:
        """A text that differs between collections with different rows."""
        raise NotImplementedError

    def map(self, work: Callable[[Any], T]) -> Iterable[T]:
        """Call `work` with every chunk where it lies; yield the small results in the order of the chunks."""
        raise NotImplementedError

    def choose(self, names: Sequence[str]) -> Collection:
        """Return the collection with these columns only, where it can tell columns apart; the whole otherwise."""
        return self


@dataclass(frozen=True)
class Chunks:
    """How many rows each chunk of a collection has, and so which numbers they have.

    Attributes
    ----------
    collection
        None in the copy that is sent to workers.
    """

    collection: Collection | None
    sizes: tuple[int, ...]
    noun: str
    engine: str

    @classmethod
    def of(cls, collection: Collection, sizes: Iterable[int]) -> Chunks:
        """Return the chunks of a collection."""
        return cls(collection, tuple(sizes), collection.noun, collection.engine)

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """Number of the first row of every chunk, and of the row after the last."""
        return tuple(accumulate(self.sizes, initial=0))

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return self.ends[-1]

    @cached_property
    def boundaries(self) -> tuple[int, ...]:
        """First rows of the chunks that have any."""
        return tuple(end for end, size in zip(self.ends[:-1], self.sizes, strict=True) if size)

    @cached_property
    def files(self) -> tuple[FilePart, ...]:
        """The chunks that have rows, by number, as if each were a file."""
        return tuple(
            FilePart(f"chunk {number}", end, end + size)
            for number, (end, size) in enumerate(zip(self.ends[:-1], self.sizes, strict=True))
            if size
        )

    @property
    def description(self) -> str:
        """The collection in one phrase."""
        return f"{self.noun} of {self.row_count} rows in {len(self.sizes)} chunk{'s'[: len(self.sizes) != 1]}"

    @property
    def fingerprint(self) -> str:
        """A text that differs between collections with different rows or chunks."""
        token = "" if self.collection is None else self.collection.token
        return f"{self.noun} {token} {','.join(map(str, self.sizes))}"

    def between(self, start: int, stop: int | None) -> range:
        """Return the numbers of the chunks that hold rows start to stop."""
        first, last = clip(start, stop, self.row_count)
        if first == last:
            return range(0)
        return range(bisect_right(self.ends, first) - 1, bisect_left(self.ends, last))

    def sent(self) -> Chunks:
        """Return what a worker needs to know."""
        return replace(self, collection=None)

    def refuse_reading(self) -> InputError:
        """Say why the rows cannot be read here."""
        return InputError(
            f"The rows of the {self.noun} are on a cluster and do not come here: use engine={self.engine!r}."
        )

    def refuse_change(self, number: int, rows: int | None) -> InputError:
        """Say that a chunk is not what it was."""
        return InputError(
            f"Chunk {number} of the {self.noun} has {rows} rows now, and had {self.sizes[number]} when it was opened: "
            "keep it on the cluster (persist), or make it the same every time."
        )


#: Packages whose collections lie on a cluster, and the engine that reaches them.
_ENGINE_OF = {"dask": "dask", "ray": "ray", "pyspark": "spark"}


def cluster_of(data: Any) -> str | None:
    """Return the name of the engine that reaches a collection of a cluster; None for all other data.

    Types are known by the package that defines them, so that none is imported for the question.
    """
    packages = (base.__module__.partition(".")[0] for base in type(data).__mro__)
    return next((_ENGINE_OF[package] for package in packages if package in _ENGINE_OF), None)


def refuse_collection(data: Any) -> InputError:
    """Say which engine a collection takes."""
    name = cluster_of(data)
    return InputError(f"A {type(data).__name__} of {name} stays on its cluster: use engine={name!r}.")
