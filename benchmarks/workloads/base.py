"""What a workload is: cases, each with contestants that get the same data, and targets that the results are held to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from benchmarks.problem import FloatArray

Role = Literal["ours", "rival", "baseline"]


@dataclass(frozen=True)
class Contestant:
    """One way to do the job.

    Attributes
    ----------
    name, label
        Key in results, and text in tables.
    run
        What is timed: from the prepared data to an answer.
    prepare
        What happens to the data before the clock starts.
    role
        "baseline" does not do the job (it only reads): it is measured but cannot win.
    """

    name: str
    label: str
    run: Callable[[Any], FloatArray]
    role: Role = "rival"
    prepare: Callable[[Any], Any] = lambda data: data


@dataclass(frozen=True)
class Unavailable:
    """A contestant that cannot take part, and why; shown as N/A."""

    name: str
    label: str
    reason: str


@dataclass(frozen=True)
class Case:
    """One size of a workload.

    Attributes
    ----------
    make
        Makes data files and the reference, before anything is measured.
    load, load_small
        Return the data, and a small version of it for warming up.
    judge
        From an answer to named figures of accuracy.
    main
        Name of our contestant that others are compared with.
    in_memory
        Whether the data are in memory beforehand; extra memory is then counted from there.
    budget_seconds
        Runs are repeated in one process until so many seconds have gone by.
    """

    name: str
    title: str
    contestants: tuple[Contestant, ...]
    make: Callable[[], object]
    load: Callable[[], Any]
    load_small: Callable[[], Any]
    judge: Callable[[FloatArray], dict[str, float]]
    main: str
    in_memory: bool
    absent: tuple[Unavailable, ...] = ()
    budget_seconds: float = 1.0


#: Results of one case: contestant name to its measured figures.
Figures = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Target:
    """A goal set in advance: `measured` from the figures of a case is at least (or at most) `limit`.

    `timed` says that it compares times, which other work on the machine makes doubtful. `reason` says of figures that
    do not reach it what stands in the way, by numbers of the same case.
    """

    case: str
    sentence: str
    measured: Callable[[Figures], float]
    limit: float
    at_least: bool = True
    form: str = "{:.2g}"
    timed: bool = True
    reason: Callable[[Figures], str] = lambda figures: ""

    def reached(self, figures: Figures) -> bool:
        """Tell whether the results reach the goal."""
        value = self.measured(figures)
        return value >= self.limit if self.at_least else value <= self.limit


@dataclass(frozen=True)
class Workload:
    """A question that the benchmarks answer."""

    name: str
    title: str
    cases: Callable[[bool], tuple[Case, ...]]
    targets: tuple[Target, ...]


def times(name: str, ours: str) -> Callable[[Figures], float]:
    """Return how many times longer `name` takes than ours."""
    return lambda figures: float(figures[name]["best_seconds"] / figures[ours]["best_seconds"])


def fastest(figures: Figures, *names: str) -> float:
    """Return the best time among these contestants."""
    return min(float(figures[name]["best_seconds"]) for name in names if "best_seconds" in figures[name])
