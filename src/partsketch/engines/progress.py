"""Progress on a terminal, for work that takes longer than a second; silence everywhere else."""

from __future__ import annotations

import os
import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_SILENT_SECONDS = 1.0


class RowProgress:
    """Counts rows and shows a bar on the terminal once the work has lasted a second."""

    def __init__(self, total_rows: int | None) -> None:
        self._total = total_rows
        self._rows = 0
        self._started = time.monotonic()
        # A bar is drawn with escape sequences.
        self._wanted = sys.stderr is not None and sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        self._lock = threading.Lock()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> RowProgress:
        return self

    def advance(self, rows: int) -> None:
        """Count rows that are done; may be called from any thread."""
        if not self._wanted:
            return
        with self._lock:
            self._rows += rows
            if self._bar is None and time.monotonic() - self._started > _SILENT_SECONDS:
                self._show()
            if self._bar is not None and self._task is not None:
                self._bar.update(self._task, completed=self._rows)

    def _show(self) -> None:
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
        self._task = self._bar.add_task("rows", total=self._total)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._wanted = False
            if self._bar is not None:
                self._bar.stop()
