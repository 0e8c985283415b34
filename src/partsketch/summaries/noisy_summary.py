"""The noisy summary: sums of products of rows, with noise that keeps a promise of differential privacy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.files import write_atomically
from partsketch.summaries.provenance import About
from partsketch.summaries.shown import ShownInShort
from partsketch.theory.gaussian_mechanism import gaussian_scale

FloatArray = NDArray[np.float64]

#: A row is measured in 2²⁰ steps, and the noise of entries beside the diagonal is 29/41 of that on it: whole numbers
#: just below √½, so that what is noisy are whole numbers too (`sites/noisy/release.py`).
STEPS = 1 << 20
ON_DIAGONAL, BESIDE_DIAGONAL = 29, 41


@dataclass(frozen=True)
class ColumnBounds:
    """What is publicly known of a column, and how it is measured.

    Attributes
    ----------
    lower, upper
        Values outside are moved to the nearer one.
    centre, spread
        What is taken off the column, and its unit: about its mean and its standard deviation.
    factor
        What a target is multiplied with then, so that targets and features share the noise well; 1 for features.
    """

    lower: float
    upper: float
    centre: float
    spread: float
    factor: float = 1.0

    @property
    def reach(self) -> float:
        """The largest value that a row can have, measured so."""
        return self.factor * max(self.upper - self.centre, self.centre - self.lower) / self.spread


@dataclass(frozen=True)
class Promise:
    """What is promised of a noisy summary, and what keeps it.

    Attributes
    ----------
    epsilon, delta
        Whoever sees the file can tell whether a row is in only as far as (ε, δ) allows; a row may be added or removed.
    clip
        The features of a row, the one included, are scaled down together with its targets until their norm is this.
    norm
        The largest norm that a row can have then.
    noise
        Standard deviation of the noise of an entry on the diagonal; beside it 29/41 of that.
    """

    epsilon: float
    delta: float
    clip: float
    norm: float
    noise: float

    @property
    def rho(self) -> float:
        """What the file costs in zero-concentrated differential privacy, which adds up over files of the same rows."""
        return 1 / (2 * gaussian_scale(self.epsilon, self.delta) ** 2)


def unit_of_steps(norm: float, columns: int) -> float:
    """Return the length of a step, such that rows of this norm have at most `STEPS` steps after rounding."""
    return norm / (STEPS - math.sqrt(columns))


def noise_of(epsilon: float, delta: float, norm: float, columns: int) -> float:
    """Return the standard deviation of the noise on the diagonal that a promise takes."""
    return gaussian_scale(epsilon, delta) * (STEPS * unit_of_steps(norm, columns)) ** 2


@dataclass(frozen=True, eq=False, repr=False)
class NoisySummary(ShownInShort):
    """Sums of products of rows with noise, measured as `bounds` says.

    Attributes
    ----------
    products
        Symmetric, read-only; its lines and columns are those of `columns`.
    columns
        The ones first, then features and targets.
    bounds
        Of every column but the ones.
    promise
        What is promised, and the law of the noise.
    site, label, release
        Who made it, of which rows, and a random name of its own.
    about
        Targets and encoding; nothing of it was found of the rows.
    """

    products: FloatArray
    columns: tuple[str, ...]
    bounds: tuple[ColumnBounds, ...]
    promise: Promise
    site: str
    label: str
    release: str
    about: About = field(default_factory=About)

    def _in_short(self) -> tuple[str, Sequence[str], str]:
        what = f"sums of products with noise, ε = {self.promise.epsilon:g}, δ = {self.promise.delta:g}"
        return what, self.columns, self.site

    def __post_init__(self) -> None:
        products = np.array(self.products, dtype=np.float64, order="C")
        products.flags.writeable = False
        object.__setattr__(self, "products", products)
        count = len(self.columns)
        if products.shape != (count, count) or len(self.bounds) != count - 1:
            raise InputError(f"A noisy summary of {count} columns cannot hold products of shape {products.shape}.")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NoisySummary):
            return NotImplemented
        return self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        return hash((self.columns, self.site, self.label, self.release))

    @property
    def name(self) -> str:
        """Site and label in one phrase."""
        return " ".join(text for text in (self.site, self.label) if text) or "unnamed"

    @cached_property
    def row_count(self) -> int:
        """About how many rows there are, by the noisy sum of their weights; those that were scaled down count less."""
        return max(1, round(float(self.products[0, 0])))

    @property
    def clips(self) -> bool:
        """Whether bounds leave room for rows that are scaled down."""
        features = [
            bounds.reach
            for name, bounds in zip(self.columns[1:], self.bounds, strict=True)
            if name not in self.about.targets
        ]
        return math.sqrt(1 + sum(reach**2 for reach in features)) > self.promise.clip * (1 + 1e-12)

    def to_bytes(self) -> bytes:
        """Return the file format, as docs/sketch-format.md describes it."""
        from partsketch.summaries.noisy_file import to_bytes

        return to_bytes(self)

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "summary") -> NoisySummary:
        """Read what `to_bytes` wrote; `name` is used in messages."""
        from partsketch.summaries.noisy_file import from_bytes

        return from_bytes(data, name)

    def save(self, path: str | Path) -> None:
        """Write to a file, whole or not at all."""
        write_atomically(Path(path), self.to_bytes())

    @classmethod
    def load(cls, path: str | Path) -> NoisySummary:
        """Read a file that `save` wrote."""
        from partsketch.summaries.noisy_file import load

        return load(Path(path))
