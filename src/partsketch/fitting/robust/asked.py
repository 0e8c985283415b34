"""Errors by one more pass, where they were asked for: a plain fit need not load what makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partsketch.common.errors import InputError
from partsketch.engines.base import Engine
from partsketch.fitting.robust.vcov import IID
from partsketch.sources.base import Source
from partsketch.summaries.partitions import Partitioning

if TYPE_CHECKING:
    from partsketch.fitting.robust.errors import RowErrors


def check_replayable(source: Source, vcov: str) -> None:
    """Refuse rows that can be read only once, before any work."""
    if not source.replayable:
        raise InputError(
            f"vcov={vcov!r} reads the rows twice, and a {source.description} can be read only once: pass a table "
            "(reader.read_all()) or a file."
        )


def errors_asked(source: Source, partitioning: Partitioning, engine: Engine, vcov: str) -> RowErrors | None:
    """Return what makes the errors that were asked for; None for those that need no pass."""
    if vcov == IID:
        return None
    from partsketch.fitting.robust.errors import RowErrors

    return RowErrors(source, partitioning, engine, vcov)
