"""A plan: candidates with what they lose and cost, the one to take, and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from partsketch.common.shown import ShownAsText
from partsketch.fitting.limits import Limits


@dataclass(frozen=True)
class Candidate:
    """One way to fit the model.

    Attributes
    ----------
    method, sketch, sketch_size, partitions
        What to ask of `fit`; sketch and size are None for exact summaries.
    excess, excess_kind, excess_reason
        Expected excess loss as a part of the minimal loss; "exact", "estimated" (over shuffles, where the fit will have
        one of its own), "approximate" or "unknown"; and why.
    bytes_per_partition, bytes_in_all
        What must leave each partition, and all of them together.
    summary_bytes_per_partition
        What leaves a partition when its whole summary does, as engines and sketch files have it.
    flops
        Floating-point operations; None when not known for the kind of sketch.
    passes
        Passes over the rows.
    peak_bytes
        By how much the memory of a warm process grows at most during the fit: the program, and rows that are in
        memory anyway, are not counted; what readers of files and allocators hold on to is.
    seconds
        Predicted time on this machine; None when it was not predicted.
    breaks
        The limits that it breaks, in words; empty when it meets all.
    """

    method: str
    sketch: str | None
    sketch_size: int | None
    partitions: int
    excess: float | None
    excess_kind: str
    excess_reason: str
    bytes_per_partition: int
    bytes_in_all: int
    summary_bytes_per_partition: int
    flops: float | None
    passes: int
    peak_bytes: float
    seconds: float | None
    breaks: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The candidate in a phrase."""
        if self.method == "exact":
            return "exact"
        parts = f"{self.partitions} {'sketches' if self.method == 'whole' else 'partitions'}"
        if self.sketch is None:
            return f"{self.method}, {parts}"
        return f"{self.method} with {self.sketch} sketches of {self.sketch_size} rows, {parts}"


@dataclass(frozen=True)
class Answer:
    """The answer to an inverse question: its value (None when there is none), and both in words."""

    question: str
    method: str
    sketch: str | None
    value: int | None
    sentence: str


@dataclass(frozen=True)
class Curve:
    """Expected relative excess loss of a method with Gaussian sketches of one size, against k."""

    method: str
    sketch_size: int | None
    points: tuple[tuple[int, float], ...]


@dataclass(frozen=True, repr=False)
class Plan(ShownAsText):
    """Which way to fit a model.

    Attributes
    ----------
    rows, columns, targets
        Sizes: rows (None when not known), columns to estimate with the intercept, targets.
    data
        The data in a phrase.
    engine
        Where the fit will run.
    limits
        What was asked.
    candidates
        All of them, those that meet the limits first, quickest first.
    recommended
        The one to take; None when none meets the limits.
    reason
        Why, in one sentence.
    answers
        To the inverse questions.
    curves
        Expected excess loss against k.
    notes
        What the predictions rest on, a sentence each.
    """

    rows: int | None
    columns: int
    targets: int
    data: str
    engine: str
    limits: Limits
    candidates: tuple[Candidate, ...]
    recommended: Candidate | None
    reason: str
    answers: tuple[Answer, ...]
    curves: tuple[Curve, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        return asdict(self)

    def __str__(self) -> str:
        from partsketch.planner.plan_table import plan_text

        return plan_text(self)
