"""What a site may ask of a sketch, checked before any work starts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Self

from partsketch.common.counts import refuse_too_many
from partsketch.common.errors import InputError
from partsketch.fitting.data_request import DataKeywords
from partsketch.fitting.keywords import FitKeywords, choices_of
from partsketch.fitting.options import RESERVED_PARTITIONS, seed_from
from partsketch.sites.disclosure.concerns import LEAST_LEVEL_ROWS, check_names
from partsketch.sketches.base import SketchSpecification, get_sketch
from partsketch.summaries.file_header import name_fault
from partsketch.theory.gaussian_mechanism import check_promise


class SketchKeywords(DataKeywords, total=False):
    """Keywords of `partsketch.sketch`, typed; their defaults are those of `SketchOptions` and `DataRequest`."""

    levels: Mapping[str, Sequence[str]] | None
    sketch: str
    sketch_size: int | None
    fit_intercept: bool
    site: str
    label: str
    private: bool
    round_rows: int
    noise: str
    delta: float
    bounds: Mapping[str, Any] | str | PathLike[str] | None
    ledger: str | PathLike[str] | None
    budget: float | None
    allow: Sequence[str] | None
    least_level_rows: int


@dataclass(frozen=True)
class SketchOptions:
    """What a site may ask; `seed` is None when the sketch is private, and only then.

    Attributes
    ----------
    sketch, sketch_size
        Kind of sketch ("triangular" is exact) and its rows; None chooses four per column.
    seed
        Seed that sites may share: names and labels make their random numbers different.
    n_partitions, partition_by
        How the rows are cut, as in a fit; both None make one summary of all rows.
    fit_intercept
        Whether a column of ones comes first.
    site, label
        Who made it, and of which rows (a day, say).
    private
        Random numbers from the operating system; neither seed nor row numbers are told.
    round_rows
        Private row counts are rounded to multiples of this.
    noise
        Whether the noise of the targets is "measured" on the rows in the same pass and told in the file, or left to be
        "estimated" from sketches; "auto" measures where that costs no more than the sketch.
    epsilon, delta
        A promise of differential privacy: the summary is of sums of products with noise that keeps it. None promises
        nothing.
    bounds
        With a promise: what is publicly known of every column, a mapping or a TOML file.
    ledger, budget
        With a promise: the file in which it is entered, and the ε that may not be exceeded in all.
    allow, least_level_rows
        What a file may show of single rows, by name; None checks nothing, for summaries that stay in memory. How many
        rows a level needs.
    stays
        Whether the file stays where the rows are: what it shows of single rows is then said, and not refused.
    """

    sketch: str = "gaussian"
    sketch_size: int | None = None
    seed: int | None = None
    n_partitions: int | None = None
    partition_by: str | None = None
    fit_intercept: bool = True
    site: str = ""
    label: str = ""
    private: bool = False
    round_rows: int = 1
    noise: str = FitKeywords.noise
    epsilon: float | None = None
    delta: float = 1e-6
    bounds: Mapping[str, Any] | str | PathLike[str] | None = None
    ledger: str | PathLike[str] | None = None
    budget: float | None = None
    allow: Sequence[str] | None = None
    least_level_rows: int = LEAST_LEVEL_ROWS
    stays: bool = False

    @classmethod
    def made_of(cls, random_state: Any, **keywords: Any) -> Self:
        """Return the options that keywords ask for; a private sketch takes no seed, any other has one."""
        if not keywords.get("private") and keywords.get("epsilon") is None:
            return cls(**keywords, seed=seed_from(random_state))
        if random_state is not None:
            raise InputError("A private sketch takes no seed (--seed): its random numbers must not be drawn again.")
        return cls(**keywords)

    def __post_init__(self) -> None:
        kind = get_sketch(self.sketch)
        size = self.sketch_size
        if size is not None and (not kind.is_random or not isinstance(size, int) or size < 1):
            wanted = "give a whole number, at least 1" if kind.is_random else "an exact summary has no such size"
            raise InputError(f"sketch_size is {size!r}: {wanted}.")
        if self.n_partitions is not None and (not isinstance(self.n_partitions, int) or self.n_partitions < 1):
            raise InputError(f"n_partitions is {self.n_partitions!r}: give a whole number, at least 1.")
        if self.n_partitions is None and self.partition_by in ("order", "shuffle"):
            raise InputError(f"partition_by={self.partition_by!r} needs n_partitions, the number of partitions.")
        if self.n_partitions is not None and self.partition_by not in (None, "order", "shuffle"):
            raise InputError(
                f"partition_by={self.partition_by!r} tells the number of partitions: give no n_partitions."
            )
        for what, text in (("site", self.site), ("label", self.label)):
            fault = name_fault(text)
            if fault:
                raise InputError(f"The {what} {text[:50]!r} {fault}: choose another name.")
        refuse_too_many(n_partitions=self.n_partitions, sketch_size=size, round_rows=self.round_rows)
        if not isinstance(self.round_rows, int) or self.round_rows < 1:
            raise InputError(f"round_rows is {self.round_rows!r}: give a whole number, at least 1.")
        self._check_promise()
        self._check_noise(kind.is_random)
        if self.allow is not None:
            check_names(self.allow)
        least = self.least_level_rows
        if not isinstance(least, int) or isinstance(least, bool) or least < 1:
            raise InputError(f"least_level_rows is {least!r}: give a whole number, at least 1 (--least-level-rows).")
        if self.private:
            # The specification refuses kinds that cannot be private, and seeds.
            SketchSpecification(self.sketch, 1 if kind.is_random else None, self.seed, private=True)
        elif self.round_rows > 1:
            raise InputError("round_rows goes with private sketches only: others tell their row numbers anyway.")
        elif self.seed is None and self.epsilon is None:
            raise ValueError("a sketch that is not private needs a seed")

    def _check_noise(self, random: bool) -> None:
        if self.noise not in choices_of("noise"):
            raise InputError(f"noise is {self.noise!r}: choose from {', '.join(choices_of('noise'))}.")
        if self.noise != "measured":
            return
        if self.private or self.epsilon is not None:
            raise InputError("noise='measured' does not go with private files: it is an exact number of the rows.")
        if not random:
            raise InputError("noise='measured' goes with sketches: an exact summary tells its noise itself.")

    def _check_promise(self) -> None:
        """Refuse what does not go with a promise, or needs one."""
        if self.epsilon is None:
            for name in ("bounds", "ledger", "budget"):
                if getattr(self, name) is not None:
                    raise InputError(f"{name} goes with a promise only: give an epsilon (--epsilon), or leave it out.")
            return
        check_promise(self.epsilon, self.delta)
        if self.bounds is None:
            raise InputError("A promise needs public bounds of every column: give them as bounds (--bounds FILE).")
        for name, given, remedy in (
            ("sketch", self.sketch != "gaussian", "a file with a promise is of a kind of its own (--sketch)"),
            ("sketch_size", self.sketch_size is not None, "noisy sums of products have no such size (--sketch-size)"),
            ("private", self.private, "a promise is private by itself (--private)"),
            ("n_partitions", self.cuts, "a promise is for all rows together (--partitions, --partition-by)"),
            ("fit_intercept", not self.fit_intercept, "the ones are always in; combine without an intercept instead"),
        ):
            if given:
                raise InputError(f"{name} does not go with epsilon: {remedy}.")
        budget = self.budget
        number = isinstance(budget, int | float) and not isinstance(budget, bool)
        if budget is not None and not (number and 0 < budget < math.inf):
            raise InputError(f"budget is {budget!r}: give the largest ε that all files may have together (--budget).")

    @property
    def partition_column(self) -> str | None:
        """Name of the column that defines the partitions, if one does."""
        return None if self.partition_by in (None, *RESERVED_PARTITIONS) else self.partition_by

    @property
    def cuts(self) -> bool:
        """Whether the rows are cut into partitions, with a summary each."""
        return self.n_partitions is not None or self.partition_by is not None
