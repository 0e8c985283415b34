"""What an attack is, and what can come of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

FaultKind = Literal[
    "traceback", "wrong accept", "wrong refusal", "input changed", "hang", "left behind", "raw control", "sentence"
]

#: What a case counts as in the report.
Counted = Literal["inputs", "sketch files", "model files", "kills"]


@dataclass(frozen=True)
class Fault:
    """A promise that was not kept.

    Attributes
    ----------
    kind
        Which promise: "sentence" means that the message is not one clear sentence; the others say it themselves.
    detail
        What was seen, in a few lines.
    """

    kind: FaultKind
    detail: str


@dataclass(frozen=True)
class Case:
    """One attack.

    Attributes
    ----------
    name
        What is attacked and how, for the reader of a report.
    attack
        Given an empty folder, builds what it needs there, runs the program, and returns the fault, if any.
    counts_as
        What the report counts it as.
    """

    name: str
    attack: Callable[[Path], Fault | None]
    counts_as: Counted = "inputs"
