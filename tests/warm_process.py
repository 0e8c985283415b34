"""A process that has imported much, and splits off a child for every piece of Python: importing takes longer than it.

Every piece still runs in a process of its own; only what was imported is there already.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

#: Waits for pieces of Python. A child and all that it started are ended when it is done or its time is over.
_LOOP = """
import contextlib, json, os, signal, sys, time

def _carry_out(text, folder, out, environment):
    os.setsid()
    os.chdir(folder)
    os.environ.update(environment)
    written = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(written, 1)
    os.dup2(written, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    code = 1
    try:
        exec(compile(text, "<piece>", "exec"), globals())
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if not isinstance(ended.code, int):
            print(ended)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

def _end(child):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)

for line in sys.stdin:
    text, folder, out, environment, seconds = json.loads(line)
    child, started = os.fork(), time.monotonic()
    if child == 0:
        _carry_out(text, folder, out, environment)
    signal.signal(signal.SIGALRM, lambda *_: _end(child))
    signal.alarm(seconds)
    try:
        status = os.waitpid(child, 0)[1]
    finally:
        signal.alarm(0)
        _end(child)
    code = os.waitstatus_to_exitcode(status)
    late = code == -signal.SIGKILL and time.monotonic() - started >= seconds
    print("late" if late else code, flush=True)
"""


class WarmProcess:
    """A process that prepares itself once, and then splits off children.

    Parameters
    ----------
    preparation
        Python that is carried out first; its names are there for all pieces.
    environment
        Of the process and its children.
    """

    def __init__(self, preparation: str, environment: Mapping[str, str]) -> None:
        command, pipe = [sys.executable, "-c", preparation + _LOOP], subprocess.PIPE
        self._process = subprocess.Popen(command, env=environment, text=True, stdin=pipe, stdout=pipe)

    def run(
        self, text: str, folder: Path, out: Path, environment: Mapping[str, str] | None = None, seconds: int = 300
    ) -> int | None:
        """Carry out a piece of Python in a folder and return its exit code; None when its time was over.

        Parameters
        ----------
        text
            The piece.
        folder
            Where it is carried out.
        out
            The file for what it prints.
        environment
            What is other than in the environment of the process.
        seconds
            After which it is ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = [text, str(folder), str(out), dict(environment or {}), seconds]
        print(json.dumps(order), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline().strip()
        assert answer, "the process that splits off others is gone"
        return None if answer == "late" else int(answer)

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=60)
