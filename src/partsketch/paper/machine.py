"""Which machine and which versions a result comes from."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from partsketch._version import __version__

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "matplotlib")


def versions() -> dict[str, str]:
    """Return the versions that decide results: partsketch, Python and the libraries under it."""
    found = {"partsketch": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def machine() -> dict[str, str | int]:
    """Return processor, cores, memory and operating system."""
    return {
        "processor": _processor(),
        "cores": os.process_cpu_count() if hasattr(os, "process_cpu_count") else os.cpu_count() or 1,
        "memory_gigabytes": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _memory() -> int:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    except (AttributeError, OSError, ValueError):
        return 0
