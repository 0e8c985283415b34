"""Which machine this is, and where what was measured on it is kept."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path

from partsketch._version import __version__
from partsketch.engines.local import usable_cores


def cache_folder() -> Path:
    """Return the folder of this user for what can be made again: that of the XDG rules, or the system's own."""
    if chosen := os.environ.get("XDG_CACHE_HOME"):
        return Path(chosen) / "partsketch"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", str(Path.home() / "AppData" / "Local"))) / "partsketch"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "partsketch"
    return Path.home() / ".cache" / "partsketch"


def describe_machine() -> dict[str, str]:
    """Return what speeds depend on: processor, cores that may be used, and the versions of what computes."""
    return {
        "processor": processor_name(),
        "cores": str(usable_cores()),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "partsketch": __version__,
        **{name: version(name) for name in ("numpy", "scipy", "numba", "pyarrow")},
    }


def machine_key(description: dict[str, str]) -> str:
    """Return a short name that differs when any part of the description does."""
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()[:16]


def processor_name() -> str:
    """Return the processor's own name as far as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def available_memory() -> int | None:
    """Return how many bytes of memory this process may still take, as far as the system tells."""
    found = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) * 1024)
    except (OSError, ValueError):
        pass
    # A container has a smaller share than the machine.
    try:
        most = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
        if most != "max":
            found.append(max(0, int(most) - used))
    except (OSError, ValueError):
        pass
    if not found and hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(found) if found else None
