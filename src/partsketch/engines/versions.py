"""Which partsketch the workers of a cluster have: another one, or none, is refused before any work is sent there.

Workers are asked by a function of Python's own library, which they have whatever else they lack.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping

from partsketch._version import __version__
from partsketch.common.errors import InputError, reason_of

#: Called on a worker with `WANTED`, this imports partsketch there and returns its version.
ask = pkgutil.resolve_name
WANTED = "partsketch:__version__"


def check_versions(cluster: str, found: Mapping[str, object]) -> None:
    """Refuse a cluster where a worker has no partsketch, or another one than this process.

    Parameters
    ----------
    cluster
        Its kind, such as "Dask".
    found
        Worker → the version, or the exception that was raised there.
    """
    wrong = {
        worker: f"cannot import it ({reason_of(version)})" if isinstance(version, BaseException) else f"has {version}"
        for worker, version in found.items()
        if version != __version__
    }
    if not wrong:
        return
    shown = "; ".join(f"{worker} {why}" for worker, why in list(wrong.items())[:3])
    more = f"; and {len(wrong) - 3} more" if len(wrong) > 3 else ""
    raise InputError(
        f"Workers of the {cluster} cluster do not have partsketch {__version__}, as this process does: {shown}{more}; "
        "install the same version there."
    )
