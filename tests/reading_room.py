"""Carrying out the steps of pages and examples, those of each in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.network_guard import CLOSED_DOOR
from tests.warm_process import WarmProcess

#: A step: Python, a script with its arguments, a command of partsketch, or a line for the shell.
Step = tuple[str, str]

ROOT = Path(__file__).parent.parent
#: Pages whose steps need a cluster.
ON_CLUSTERS = ("dask", "ray", "spark")
_FENCE = re.compile(r"^```([\w{}]+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
#: What is not code: the navigation, output, and formats shown as they are.
_NOT_RUN = ("{toctree}", "text", "json")


def steps_of(page: Path) -> list[Step]:
    """Return what a page shows, in its order; nothing that looks like code is passed over."""
    steps: list[Step] = []
    for language, text in _FENCE.findall(page.read_text()):
        if language == "python":
            steps.append(("python", text))
        elif language == "sh":
            for line in text.replace("\\\n", " ").splitlines():
                if line.startswith("partsketch "):
                    steps.append(("shell" if set(line) & set("|<>$&;`") else "command", line))
                elif line.startswith("python examples/"):
                    # Every script in examples/ is run by a test of its own.
                    assert (ROOT / line.split()[1]).is_file()
                elif line and not line.startswith("#"):
                    # The make targets are what continuous integration runs.
                    assert line.startswith("make "), f"{page.name}: a shell example that no test runs: {line}"
        else:
            assert language in _NOT_RUN, f"{page.name}: a block of {language!r} that no test runs"
    return steps


#: What a reader does: the steps of a page in one sitting.
SITTING = """
import json, runpy, shlex, subprocess, sys

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

#: Fits once so that what is compiled is loaded.
PREPARATION = """
import sklearn.linear_model, pandas, pyarrow.parquet, scipy.linalg, scipy.stats, partsketch
X = [[float(i % 7), float(i % 5)] for i in range(60)]
for method in ("exact", "partition"):
    partsketch.SketchedRegression(method, n_partitions=2, random_state=0).fit(X, [sum(row) for row in X])
"""

ALONE = "read(json.load(sys.stdin))\n"


class ReadingRoom:
    """Carries out steps, each list of them in a process of its own."""

    def __init__(self) -> None:
        self.environment = {**os.environ, **CLOSED_DOOR}
        self.environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.room = WarmProcess(SITTING + PREPARATION, self.environment) if hasattr(os, "fork") else None

    def carry_out(self, steps: Sequence[Step], folder: Path) -> str:
        """Carry out steps in a folder and return what they printed."""
        if self.room is None:
            command, pipe = [sys.executable, "-c", SITTING + ALONE], subprocess.PIPE
            alone = subprocess.Popen(command, cwd=folder, env=self.environment, text=True, stdin=pipe, stdout=pipe)
            text = alone.communicate(json.dumps(steps), timeout=300)[0]
            assert alone.returncode == 0, text
            return text
        out = folder.parent / f"{folder.name}.printed"
        code = self.room.run(f"read({list(steps)!r})", folder, out)
        assert code == 0, f"{'five minutes are over' if code is None else f'exit code {code}'}\n{out.read_text()}"
        return out.read_text()

    def close(self) -> None:
        """End the process."""
        if self.room is not None:
            self.room.close()
