"""A process that has imported everything, and splits off a reader for each page: importing takes longer than reading.

Every page still begins in a process of its own, with a folder of its own; only what was imported is there already.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.network_guard import CLOSED_DOOR

#: A step: Python, a script with its arguments, a command of partsketch, or a line for the shell.
Step = tuple[str, str]

#: What a reader does: the steps of a page in one sitting.
SITTING = """
import json, os, runpy, shlex, signal, subprocess, sys

def read(steps):
    from partsketch.cli import run
    names = {"__name__": "__main__"}
    for kind, text in steps:
        if kind == "python":
            exec(compile(text, "<page>", "exec"), names)
        elif kind == "script":
            sys.argv = shlex.split(text)
            runpy.run_path(sys.argv[0], run_name="__main__")
        elif (subprocess.call(text, shell=True) if kind == "shell" else run(shlex.split(text)[1:])) != 0:
            sys.exit(f"failed: {text}")
"""

#: Fits once so that what is compiled is loaded, then waits for pages. A reader that takes five minutes is ended.
ROOM = """
import sklearn.linear_model, pandas, pyarrow.parquet, scipy.linalg, scipy.stats, partsketch
X = [[float(i % 7), float(i % 5)] for i in range(60)]
for method in ("exact", "partition"):
    partsketch.SketchedRegression(method, n_partitions=2, random_state=0).fit(X, [sum(row) for row in X])
for line in sys.stdin:
    folder, steps, out = json.loads(line)
    child = os.fork()
    if child == 0:
        signal.alarm(300)
        os.chdir(folder)
        written = os.open(out, os.O_WRONLY | os.O_CREAT)
        os.dup2(written, 1)
        os.dup2(written, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        code = 1
        try:
            read(steps)
            code = 0
        except SystemExit as ended:
            print(ended)
            code = int(bool(ended.code))
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""

ALONE = "read(json.load(sys.stdin))\n"


class ReadingRoom:
    """Carries out steps, each list of them in a process of its own."""

    def __init__(self) -> None:
        self.environment = {**os.environ, **CLOSED_DOOR}
        self.environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.room: subprocess.Popen[str] | None = None
        if hasattr(os, "fork"):
            self.room = self._start(ROOM)

    def _start(self, rest: str, folder: Path | None = None) -> subprocess.Popen[str]:
        command, pipe = [sys.executable, "-c", SITTING + rest], subprocess.PIPE
        return subprocess.Popen(command, cwd=folder, env=self.environment, text=True, stdin=pipe, stdout=pipe)

    def carry_out(self, steps: Sequence[Step], folder: Path) -> str:
        """Carry out steps in a folder and return what they printed."""
        if self.room is None:
            alone = self._start(ALONE, folder)
            text = alone.communicate(json.dumps(steps), timeout=300)[0]
            assert alone.returncode == 0, text
            return text
        assert self.room.stdin is not None
        assert self.room.stdout is not None
        out = folder.parent / f"{folder.name}.printed"
        print(json.dumps([str(folder), list(steps), str(out)]), file=self.room.stdin, flush=True)
        code = self.room.stdout.readline().strip()
        assert code == "0", f"exit code {code or 'of a reader that is gone'}\n{out.read_text() if out.exists() else ''}"
        return out.read_text()

    def close(self) -> None:
        """End the process."""
        if self.room is not None:
            self.room.communicate(timeout=60)
