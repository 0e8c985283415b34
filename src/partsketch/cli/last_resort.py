"""The last line of defence: an error that nobody foresaw ends a command with one sentence, not with a traceback."""

from __future__ import annotations

import os
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from partsketch.cli.printing import complain, warn
from partsketch.common.errors import PartsketchWarning, reason_of
from partsketch.common.files import shown

#: What a fault of the program itself ends with, as sysexits.h has it.
SOFTWARE = 70

#: Where in the package an error came from → the step it happened in. The first one that fits counts.
_STEPS = (
    ("cli/completion", "writing the completion script"),
    ("cli", "reading the options"),
    ("sources", "reading the data"),
    ("sketches", "sketching rows"),
    ("summaries/file", "reading or writing a sketch file"),
    ("summaries", "summarising rows"),
    ("engines/checkpoint", "keeping results in the checkpoint"),
    ("engines", "running tasks"),
    ("model/file", "reading or writing the model file"),
    ("model/predict", "writing predictions"),
    ("model", "making the model"),
    ("fitting", "fitting"),
    ("questions", "answering from summaries"),
    ("sites", "working on sketch files"),
    ("planner/diagnosis", "diagnosing"),
    ("planner", "planning"),
    ("report/explorer", "serving the explorer"),
    ("report/page", "writing the report"),
    ("report", "printing the result"),
    ("paper", "reproducing the paper"),
    ("theory", "computing expected losses"),
)


#: Bytes of addresses below which libraries cannot even be loaded: they end the process or never answer.
_LEAST_ADDRESSES = 2**30


def has_room() -> bool:
    """Whether the process may use as many addresses as its libraries reserve (`ulimit -v`)."""
    try:
        import resource
    except ImportError:  # Windows
        return True
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    return most == resource.RLIM_INFINITY or most >= _LEAST_ADDRESSES


def unexpected(error: Exception, command: str, debug: bool) -> int:
    """Print one sentence about an error that nobody foresaw, or with `debug` its traceback; return the exit code."""
    if debug:
        traceback.print_exception(error)
    step, place = step_of(error)
    complain(
        f"Error: {command} failed unexpectedly while {step} ({type(error).__name__} in {place}: {reason_of(error)}): "
        "this is a fault of partsketch; run the command again with --debug to see the traceback, and report it."
    )
    return SOFTWARE


def without_memory(error: MemoryError, command: str, debug: bool) -> int:
    """Print one sentence about memory that could not be had; return the exit code."""
    if debug:
        traceback.print_exception(error)
    complain(
        f"Error: {command} needs more memory than there is (while {step_of(error)[0]}): use fewer columns, partitions "
        "or sketch rows, or a machine with more memory."
    )
    return 2


def without_library(error: ModuleNotFoundError, command: str, debug: bool) -> int:
    """Print one sentence about a library that is not installed; return the exit code."""
    library = (error.name or "partsketch").partition(".")[0]
    if library == "partsketch":
        return unexpected(error, command, debug)
    if debug:
        traceback.print_exception(error)
    complain(
        f"Error: {command} needs {library} (while {step_of(error)[0]}), and it is not installed here: install it, or "
        "partsketch again, which brings what it needs."
    )
    return 2


def failed_system(error: OSError, command: str, debug: bool) -> int:
    """Print one sentence about the operating system refusing something; return the exit code."""
    if debug:
        traceback.print_exception(error)
    of = f" of {shown(str(error.filename))}" if error.filename is not None else ""
    complain(f"Error: {command} met a failure{of} while {step_of(error)[0]}: {reason_of(error)}.")
    return 2


def step_of(error: BaseException) -> tuple[str, str]:
    """Return the step in which an error happened, in words, and the file and line of the package it came from."""
    package = Path(__file__).parent.parent
    frames: list[tuple[str, int]] = []
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if file.is_relative_to(package):
            frames.append((file.relative_to(package).as_posix(), trace.tb_lineno))
        trace = trace.tb_next
    # Tools in common/ serve every step: who called them tells which.
    telling = [frame for frame in frames if not frame[0].startswith(("common/", "cli/__init__", "cli/printing"))]
    file_name, line = (telling or frames or [("partsketch", 0)])[-1]
    step = next((words for beginning, words in _STEPS if file_name.startswith(beginning)), "starting")
    if file_name.startswith("cli") and frames[-1][0].startswith("cli/printing"):
        step = "printing the result"
    return step, f"{(frames or [(file_name, line)])[-1][0]}, line {(frames or [(file_name, line)])[-1][1]}"


@contextmanager
def only_our_warnings(debug: bool) -> Iterator[None]:
    """Print warnings of partsketch as sentences; those of libraries are for whoever debugs."""

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, PartsketchWarning):
            warn(str(message))
        elif debug:
            complain(f"{category.__name__}: {message} ({place[0]}, line {place[1]})")

    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.showwarning = show
        yield


@contextmanager
def quiet_threads(debug: bool) -> Iterator[None]:
    """Say nothing of a worker that ends before its work begins: the others do it, or whoever waits says so."""
    before = threading.excepthook
    if not debug:
        threading.excepthook = lambda ended: None
    try:
        yield
    finally:
        threading.excepthook = before


def prepare_streams() -> bool:
    """Make the standard streams take any text, and tell whether there is a standard output.

    A stream that was closed gets its number back, leading nowhere: else the next file that is opened would have it, and
    what is printed would go there.
    """
    is_there = sys.stdout is not None
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_WRONLY)
            if handle != number:
                os.dup2(handle, number)
            setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))  # noqa: SIM115
        getattr(sys, name).reconfigure(errors="backslashreplace")
    return is_there


def silence(stream: Any) -> None:
    """Lead a stream nowhere whose reader is gone or whose disk is full: the process flushes it once more at its end."""
    try:
        handle = os.open(os.devnull, os.O_WRONLY)
        os.dup2(handle, stream.fileno())
        os.close(handle)
    except (OSError, ValueError, AttributeError):
        return
