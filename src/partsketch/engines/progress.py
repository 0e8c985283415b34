"""Progress on a terminal or in a notebook, for work that takes longer than a second; silence everywhere else."""

from __future__ import annotations

import os
import sys
import threading
import time
from types import TracebackType
from typing import Any, Protocol

_SILENT_SECONDS = 1.0
#: A notebook is told this often: each time is a message to the browser.
_NOTEBOOK_SECONDS = 0.2


class _Bar(Protocol):
    def update(self, rows: int) -> None:
        """Show how many rows are done."""

    def stop(self) -> None:
        """Take the bar away."""


class RowProgress:
    """Counts rows and shows a bar once the work has lasted a second."""

    def __init__(self, total_rows: int | None) -> None:
        self._total = total_rows
        self._rows = 0
        self._started = time.monotonic()
        # On a terminal a bar is drawn with escape sequences.
        on_terminal = sys.stderr is not None and sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        self._kind = _NotebookBar if _in_notebook() else _TerminalBar if on_terminal else None
        self._lock = threading.Lock()
        self._bar: _Bar | None = None

    def __enter__(self) -> RowProgress:
        return self

    def advance(self, rows: int) -> None:
        """Count rows that are done; may be called from any thread."""
        if self._kind is None:
            return
        with self._lock:
            self._rows += rows
            if self._bar is None and self._kind is not None and time.monotonic() - self._started > _SILENT_SECONDS:
                self._bar = self._kind(self._total)
            if self._bar is not None:
                self._bar.update(self._rows)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._kind = None
            if self._bar is not None:
                self._bar.stop()


class _TerminalBar:
    def __init__(self, total: int | None) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        from partsketch.common.terminal import terminal_console

        self._bar = Progress(
            TextColumn("reading rows"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=terminal_console(stderr=True),
            transient=True,
        )
        self._bar.start()
        self._task = self._bar.add_task("rows", total=total)

    def update(self, rows: int) -> None:
        self._bar.update(self._task, completed=rows)

    def stop(self) -> None:
        self._bar.stop()


class _NotebookBar:
    """A progress element of the browser itself, which needs no other package."""

    def __init__(self, total: int | None) -> None:
        from IPython.display import HTML, display

        self._html, self._total = HTML, total
        self._shown: Any = display(self._html(""), display_id=True)
        self._last = 0.0

    def update(self, rows: int) -> None:
        now = time.monotonic()
        if now - self._last >= _NOTEBOOK_SECONDS:
            self._last = now
            done = f' value="{rows}" max="{self._total}"' if self._total else ""
            of = f" of {self._total:,}" if self._total else ""
            self._shown.update(self._html(f"reading rows <progress{done}></progress> {rows:,}{of}"))

    def stop(self) -> None:
        self._shown.update(self._html(""))


def _in_notebook() -> bool:
    """Tell whether a kernel of Jupyter runs this; nothing is imported to find out."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None
