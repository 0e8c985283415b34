"""Commands in a process that was split off from this one: surroundings can be changed for it, and it starts at once."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence

from tests.attack.case import Fault
from tests.attack.judges import HANG_SECONDS, Ended

_NEW_NAMESPACE = 0x00020000
_NEW_USER = 0x10000000


def run_forked(
    arguments: Sequence[str],
    prepare: Callable[[], None] = lambda: None,
    finish: Callable[[], None] = lambda: None,
    seconds: float = HANG_SECONDS,
    read: bool = True,
    kill_after: float | None = None,
) -> Ended | Fault:
    """Run a command in a child of this process.

    Parameters
    ----------
    arguments
        Of the command line.
    prepare, finish
        Called in the child before and after the command; what `finish` raises is a fault.
    seconds
        After which the child counts as hanging.
    read
        Whether the standard output of the child is read; otherwise its reader is gone from the start.
    kill_after
        Seconds after which the child is killed.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    out, err = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(out[1], 1)
        os.dup2(err[1], 2)
        os.closerange(3, 64)
        _run_child(arguments, prepare, finish)
    os.close(out[1])
    os.close(err[1])
    if not read:
        os.close(out[0])
    timer = None if kill_after is None else threading.Timer(kill_after, os.kill, (child, signal.SIGKILL))
    if timer is not None:
        timer.start()
    texts = _read_all([out[0]] if read else [], err[0], child, seconds)
    if timer is not None:
        # Until the child has been waited for, its number is not given to another process.
        timer.cancel()
        timer.join()
    _, status = os.waitpid(child, 0)
    if texts is None:
        return Fault("hang", f"{arguments} did not end within {seconds:.0f} s")
    return Ended(os.waitstatus_to_exitcode(status), *texts)


def _run_child(arguments: Sequence[str], prepare: Callable[[], None], finish: Callable[[], None]) -> None:
    """Run the command as `partsketch` does, its last flush included, and end."""
    code = 99
    try:
        sys.stdin = open(os.devnull)  # noqa: SIM115
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        prepare()
        from partsketch.cli import main

        try:
            main(list(arguments))
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 98
        sys.stdout.flush()
        finish()
        sys.stderr.flush()
    except BaseException:
        code = 97
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


def _read_all(outs: list[int], err: int, child: int, seconds: float) -> tuple[str, str] | None:
    """Read both streams to their ends; None, and the child is killed, when that takes too long."""
    texts = dict.fromkeys([*outs, err], b"")
    still, until = set(texts), time.monotonic() + seconds
    late = False
    while still:
        ready, _, _ = select.select(list(still), [], [], max(0.0, until - time.monotonic()))
        if not ready:
            os.kill(child, signal.SIGKILL)
            late = True
            break
        for handle in ready:
            content = os.read(handle, 1 << 16)
            texts[handle] += content
            if not content:
                still.discard(handle)
    for handle in texts:
        os.close(handle)
    if late:
        return None
    return (texts[outs[0]] if outs else b"").decode("utf-8", "replace"), texts[err].decode("utf-8", "replace")


def mount(kind: str, options: str, place: str, what: str = "none") -> None:
    """Mount a file system for this process and its children alone; call it in a child."""
    library = ctypes.CDLL(None, use_errno=True)
    flags = _NEW_NAMESPACE if os.geteuid() == 0 else _NEW_NAMESPACE | _NEW_USER
    user = os.getuid()
    if library.unshare(flags) != 0:
        raise PermissionError(ctypes.get_errno(), "no namespace of its own")
    if flags & _NEW_USER:
        with open("/proc/self/uid_map", "w") as file:
            file.write(f"0 {user} 1")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", *(["-t", kind] if kind else []), "-o", options, what, place], check=True)


def can_mount() -> bool:
    """Tell whether this machine lets us mount file systems in a namespace."""
    command = ["unshare", *([] if os.geteuid() == 0 else ["-r"]), "-m", "mount", "-t", "tmpfs", "none", "/mnt"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False
