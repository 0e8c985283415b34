"""The limits as options of commands that plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from partsketch.fitting.limits import Limits

_OPTIONS = (
    click.option("--max-excess", help="Largest expected excess loss, such as 1%."),
    click.option("--max-bytes-per-partition", help="Most bytes that may leave a partition, such as 10kB."),
    click.option("--rows-stay", is_flag=True, help="Rows may not leave their partition, not even a sample of them."),
    click.option("--memory", help="Most memory at once, such as 2GB."),
    click.option("--seconds", "seconds_limit", help="Longest time, such as 30 or 5min."),
)


def limit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def limits_given(
    max_excess: str | None,
    max_bytes_per_partition: str | None,
    rows_stay: bool,
    memory: str | None,
    seconds: str | None,
) -> Limits | None:
    """Return the limits, or None when no option was used."""
    from partsketch.fitting.limits import limits_from

    values = {
        "max_excess": max_excess,
        "max_bytes_per_partition": max_bytes_per_partition,
        "memory": memory,
        "seconds": seconds,
    }
    limits = limits_from({**values, "rows_stay": rows_stay})
    return limits if limits.any else None
