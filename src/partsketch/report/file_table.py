"""Files of any kind that travels, described: sketches, exact summaries, and those with a promise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from partsketch.report.noisy_table import describe_noisy, print_noisy
from partsketch.report.sketch_table import describe_sketch, print_sketches
from partsketch.sites.reading import NamedFile
from partsketch.summaries.noisy_summary import NoisySummary
from partsketch.summaries.summary import Summary


def describe_file(name: str, summary: Summary | NoisySummary) -> dict[str, Any]:
    """Return what a file tells of itself, as plain data."""
    return describe_noisy(name, summary) if isinstance(summary, NoisySummary) else describe_sketch(name, summary)


def print_files(named: Sequence[NamedFile]) -> None:
    """Print what files tell of themselves: sketches and exact summaries first."""
    plain = [(name, summary) for name, summary in named if isinstance(summary, Summary)]
    noisy = [(name, summary) for name, summary in named if isinstance(summary, NoisySummary)]
    if plain:
        print_sketches(plain)
    if noisy:
        print_noisy(noisy)
