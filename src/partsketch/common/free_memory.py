"""How much memory there is to be had: what the machine has free, within the limits of container and process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_PROCESS = Path("/proc/self")
CONTROL_GROUP = Path("/sys/fs/cgroup")
#: Version 1 of control groups writes "no limit" as a number of this order.
_NO_LIMIT = 2**60


def available_memory() -> int:
    """Return how many bytes of memory this process may still take."""
    import psutil

    return min([int(psutil.virtual_memory().available), *_groups(), *_process()])


def _groups() -> Iterator[int]:
    """Yield what is left in every control group that this process is in: its own, and those around it.

    A container has a smaller share than the machine, which psutil does not know of.
    """
    for line in _text(_PROCESS / "cgroup").splitlines() or ["0::/"]:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers == "":
            names, top = ("memory.max", "memory.current"), CONTROL_GROUP
        elif "memory" in controllers.split(","):
            names, top = ("memory.limit_in_bytes", "memory.usage_in_bytes"), CONTROL_GROUP / "memory"
        else:
            continue
        # Inside a container the path may be that of the host: then the files of the group are at the top.
        group = top / path.lstrip("/")
        for folder in dict.fromkeys([group, *group.parents, top]):
            if folder == top or top in folder.parents:
                yield from _left(folder, *names)


def _left(folder: Path, most_name: str, used_name: str) -> Iterator[int]:
    most, used = _text(folder / most_name).strip(), _text(folder / used_name).strip()
    if not (most.isdigit() and used.isdigit()) or int(most) >= _NO_LIMIT:
        return
    # Pages of files that were read are given back when memory is short: they count as free.
    pages = dict(line.split(" ", 1) for line in _text(folder / "memory.stat").splitlines() if " " in line)
    yield max(0, int(most) - int(used) + int(pages.get("inactive_file", 0)))


def _process() -> Iterator[int]:
    """Yield what is left of the address space, where `ulimit -v` limits it."""
    try:
        import resource
    except ImportError:  # Windows
        return
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    used = _text(_PROCESS / "statm").split()
    if most != resource.RLIM_INFINITY and used:
        yield max(0, most - int(used[0]) * resource.getpagesize())


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, ValueError):
        return ""
