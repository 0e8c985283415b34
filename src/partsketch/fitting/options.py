"""What a user may ask of a fit, checked before any work starts."""

from __future__ import annotations

import numbers
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Self

import numpy as np

from partsketch.common.counts import refuse_too_many
from partsketch.common.errors import InputError
from partsketch.engines.tolerance import Tolerance
from partsketch.fitting.keywords import AUTO, FitKeywords, choices_of
from partsketch.fitting.limits import Limits, limits_from
from partsketch.fitting.robust.vcov import IID, clusters_of, kind_of, read_vcov
from partsketch.model.methods import METHODS
from partsketch.sketches.base import SketchSpecification, get_sketch, sparsity_refused
from partsketch.summaries.file_header import MOST_SKETCH_ROWS
from partsketch.summaries.measured import is_cheap_beside

#: Values of partition_by that do not name a column.
RESERVED_PARTITIONS = ("order", "shuffle", "file")


@dataclass(frozen=True)
class FitOptions:
    """Options of a fit, in the names of the public interface; `seed` is never None here."""

    method: str
    n_partitions: int
    partition_by: str
    remainder: str
    sketch: str
    sketch_size: int | None
    fit_intercept: bool
    seed: int
    averaging: str = FitKeywords.averaging
    weighting: str = FitKeywords.weighting
    noise: str = FitKeywords.noise
    alpha: float = FitKeywords.alpha
    on_partition_error: str = FitKeywords.on_partition_error
    deadline: float | None = None
    min_partitions: int | None = None
    checkpoint: str | None = None
    limits: Limits | None = None
    sparsity: int | None = None
    vcov: str = FitKeywords.vcov
    absorb: str | None = None
    # Who makes options by hand wants summaries, and only a factor is one.
    route: str = "factor"

    @classmethod
    def made_of(cls, keywords: FitKeywords) -> Self:
        """Return the options that keywords ask for, checked, with a seed that is known."""
        if keywords.fit_intercept not in (True, False):
            raise InputError(f"fit_intercept is {keywords.fit_intercept!r}: give True or False.")
        same = {field.name: getattr(keywords, field.name) for field in fields(cls) if field.name != "seed"}
        own = {
            "fit_intercept": bool(keywords.fit_intercept),
            "seed": seed_from(keywords.random_state, keywords.checkpoint),
            "checkpoint": None if keywords.checkpoint is None else fspath(keywords.checkpoint),
            "limits": None if keywords.limits is None else limits_from(keywords.limits),
            "vcov": read_vcov(keywords.vcov),
        }
        return cls(**{**same, **own})

    def __post_init__(self) -> None:
        for name in ("method", "remainder", "averaging", "weighting", "noise", "route", "on_partition_error"):
            if getattr(self, name) not in choices_of(name):
                raise InputError(f"{name} is {getattr(self, name)!r}: choose {_listed(choices_of(name))}.")
        if self.limits is not None and self.method != AUTO:
            raise InputError(f"limits go with method='auto', which chooses within them, not with {self.method!r}.")
        if not _is_count(self.n_partitions) or self.n_partitions < 1:
            raise InputError(f"n_partitions is {self.n_partitions!r}: give a whole number, at least 1.")
        if not isinstance(self.partition_by, str) or not self.partition_by:
            raise InputError("partition_by is 'order', 'shuffle', 'file' or the name of a column.")
        sketch = get_sketch(self.sketch, exact=False)
        if self.sketch_size is not None and (not _is_count(self.sketch_size) or self.sketch_size < 1):
            raise InputError(f"sketch_size is {self.sketch_size!r}: give a whole number, or None to have one chosen.")
        if self.sparsity is not None:
            if sketch.default_sparsity is None:
                raise sparsity_refused(self.sparsity, self.sketch)
            if not _is_count(self.sparsity) or self.sparsity < 1:
                raise InputError(
                    f"sparsity is {self.sparsity!r}: give a whole number, at least 1, or None for "
                    f"{sketch.default_sparsity}."
                )
        if self.averaging != "equal" and self.method not in ("average", "partition"):
            raise InputError(f"averaging={self.averaging!r} goes with the methods 'average' and 'partition' only.")
        if self.weighting != FitKeywords.weighting and self.method not in ("stack", AUTO):
            raise InputError(f"weighting={self.weighting!r} goes with method='stack', whose sketches have weights.")
        if self.noise == "measured" and (self.weighting == "rows" or self.method not in ("stack", AUTO)):
            raise InputError(
                "noise='measured' is for weights: it goes with method='stack' and weighting='auto' or 'information'."
            )
        if not isinstance(self.alpha, numbers.Real) or not 0 <= self.alpha < float("inf"):
            raise InputError(f"alpha is {self.alpha!r}: give a ridge penalty of at least 0.")
        if self.averaging != "equal" and self.alpha > 0:
            raise InputError(
                "averaging='inverse_variance' goes with alpha=0: its variances are those of least squares."
            )
        if self.weighting == "information" and self.alpha > 0:
            raise InputError("weighting='information' goes with alpha=0: a ridge fit is stacked by rows.")
        exact = self.method == "exact" or (self.method == AUTO and not (self.limits and self.limits.any))
        if self.route == "iterate" and (not exact or self.alpha > 0):
            raise InputError("route='iterate' goes with method='exact' and alpha=0.")
        refuse_too_many(n_partitions=self.n_partitions)
        # No more than a file of it may have: beyond, a sketch is far larger than what it should be smaller than.
        refuse_too_many(MOST_SKETCH_ROWS, sketch_size=self.sketch_size, sparsity=self.sparsity)
        self._check_absorb(exact)
        self._check_vcov(exact)
        self._check_faults()

    def _check_absorb(self, exact: bool) -> None:
        if self.absorb is None:
            return
        asked = f"absorb={self.absorb!r}"
        if not isinstance(self.absorb, str) or not self.absorb:
            raise InputError(f"{asked}: give the name of one column.")
        if not exact or self.alpha > 0 or self.route == "iterate":
            raise InputError(f"{asked} goes with method='exact' (or 'auto' without limits), alpha=0 and a factor.")
        if self.checkpoint is not None:
            raise InputError(f"{asked} keeps nothing in a checkpoint: leave one of them out.")
        if self.remainder != FitKeywords.remainder or self.partition_by not in ("order", self.absorb):
            raise InputError(f"{asked} takes all rows, without partitions: leave partition_by and remainder out.")
        if self.vcov not in (IID, "HC0", "HC1") and kind_of(self.vcov) != "CRV1":
            raise InputError(
                f"{asked} goes with vcov 'iid', 'HC0', 'HC1' and {{'CRV1': column}}, not with {self.vcov!r}: "
                f"for others write C({self.absorb}) in a formula instead, if it has few levels."
            )
        columns = clusters_of(self.vcov)
        if len(columns) > 1 and self.absorb not in columns:
            raise InputError(
                f"{asked} goes with clusters of one column, or of {self.absorb!r} and one more, not with "
                f"{self.vcov!r}: name one of them."
            )

    def _check_vcov(self, exact: bool) -> None:
        if self.vcov == IID:
            return
        if not exact or self.alpha > 0:
            raise InputError(
                f"vcov={self.vcov!r} goes with method='exact' (or 'auto' without limits) and alpha=0: other fits have "
                "errors of their own kind."
            )
        if self.route == "iterate":
            raise InputError(f"vcov={self.vcov!r} needs the factor of all rows: use route='factor', or leave it open.")
        columns = clusters_of(self.vcov)
        if columns and self.partition_by not in ("order", *columns):
            raise InputError(
                f"vcov={self.vcov!r} has clusters, and partition_by={self.partition_by!r} asks for partitions, which "
                "an exact fit does not have: leave partition_by out."
            )

    def _check_faults(self) -> None:
        if self.deadline is not None and (not isinstance(self.deadline, numbers.Real) or not self.deadline > 0):
            raise InputError(f"deadline is {self.deadline!r}: give a number of seconds above 0, or None.")
        if self.min_partitions is not None and (not _is_count(self.min_partitions) or self.min_partitions < 1):
            raise InputError(f"min_partitions is {self.min_partitions!r}: give a whole number, at least 1.")
        asked = "on_partition_error='drop'" if self.on_partition_error == "drop" else f"deadline={self.deadline}"
        if not self.tolerance.by_partition:
            if self.min_partitions is not None:
                raise InputError("min_partitions goes with deadline or with on_partition_error='drop'.")
        elif self.method == AUTO:
            raise InputError(f"{asked} goes with a method that keeps partitions apart: name it instead of 'auto'.")
        elif not METHODS[self.method].by_partition:
            raise InputError(
                f"{asked} leaves out partitions, and method={self.method!r} has none: its summaries are of all rows; "
                "use 'average', 'partition' or 'stack'."
            )
        elif self.partition_by not in ("order", "file"):
            raise InputError(
                f"{asked} needs partitions whose rows lie together: with partition_by={self.partition_by!r} rows that "
                "are lost would be lost to every partition; use 'order' or 'file'."
            )

    def measures_noise(self, specification: SketchSpecification, width: int) -> bool:
        """Whether a fit with these sketches of so many columns measures the noise of its partitions."""
        if self.method != "stack" or self.weighting == "rows" or self.alpha > 0 or self.noise == "estimated":
            return False
        return self.noise == "measured" or is_cheap_beside(specification, width)

    @property
    def fits_each_partition(self) -> bool:
        """Whether every partition must keep enough rows for a fit of its own.

        A ridge penalty makes do with fewer, and stacked sketches need enough rows together only.
        """
        method = METHODS[self.method]
        return method.sketched and method.by_partition and method.combines_by == "average" and self.alpha == 0

    @property
    def tolerance(self) -> Tolerance:
        """What may be missing at the end."""
        return Tolerance(self.on_partition_error == "drop", self.deadline, self.min_partitions or 1)

    @property
    def partition_column(self) -> str | None:
        """Name of the column that defines the partitions, or the clusters of standard errors, if one does."""
        if self.absorb is not None:
            return self.absorb
        if clusters_of(self.vcov):
            return clusters_of(self.vcov)[0]
        return None if self.partition_by in RESERVED_PARTITIONS else self.partition_by

    @property
    def cluster_column(self) -> str | None:
        """Name of a column of clusters beside that one, if there is one."""
        others = [name for name in clusters_of(self.vcov) if name != self.partition_column]
        return others[0] if others else None

    def to_dict(self, engine_name: str) -> dict[str, Any]:
        """Return the options as numbers and texts that JSON knows, NumPy integers included."""
        # All but the limits are plain already: `asdict` would copy each, in a twentieth of the time of a small fit.
        values = {**vars(self), "limits": self.limits and asdict(self.limits)}
        values["n_partitions"] = int(self.n_partitions)
        values["sketch_size"] = None if self.sketch_size is None else int(self.sketch_size)
        values["sparsity"] = None if self.sparsity is None else int(self.sparsity)
        values["alpha"] = float(self.alpha)
        values["deadline"] = None if self.deadline is None else float(self.deadline)
        values["min_partitions"] = None if self.min_partitions is None else int(self.min_partitions)
        # Where results were kept meanwhile says nothing about the model.
        del values["checkpoint"]
        return {**values, "engine": engine_name}


def _is_count(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_)


def _listed(names: Sequence[str]) -> str:
    *others, last = map(repr, names)
    return f"{', '.join(others)} or {last}"


def seed_from(random_state: Any, checkpoint: str | PathLike[str] | None = None) -> int:
    """Return a seed in 0..2⁶⁴−1 from None (fresh entropy), a whole number, or a NumPy generator.

    A run that goes on from a checkpoint takes its seed from there, unless another is given.
    """
    if random_state is None and checkpoint is not None:
        from partsketch.engines.checkpoint import recorded_seed

        seed = recorded_seed(Path(checkpoint))
        if seed is not None:
            return seed
    if random_state is None:
        return secrets.randbits(64)
    if _is_count(random_state):
        if not 0 <= random_state < 2**64:
            raise InputError(f"random_state is {random_state}: give a whole number from 0 to 2**64 - 1.")
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**64, dtype=np.uint64, endpoint=False))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**64, dtype=np.uint64))
    raise InputError("random_state is None, a whole number, or a NumPy random generator.")
