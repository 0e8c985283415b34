"""Which machine this is, and where what was measured on it is kept."""

from __future__ import annotations

import hashlib
import json
import platform
from importlib.metadata import version
from pathlib import Path

from partsketch._version import __version__
from partsketch.engines.local import usable_cores


def cache_folder() -> Path:
    """Return the folder of this user for what can be made again."""
    from platformdirs import user_cache_path

    return user_cache_path("partsketch", appauthor=False)


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
