"""Tables whose folders hold more files than the table has: a log says which of them count."""

from __future__ import annotations

from collections.abc import Iterable

from partsketch.common.errors import InputError


def refuse_tables_with_logs(paths: Iterable[str], entry: str) -> None:
    """Refuse a folder of a Delta, Iceberg or Hudi table: rows that were deleted or replaced are still in its files."""
    for path in paths:
        parts = path.split("/")
        kind = ""
        if "_delta_log" in parts:
            kind, instead = "a Delta", "deltalake.DeltaTable(…).to_pyarrow_dataset()"
        elif len(parts) > 1 and parts[-2] == "metadata" and parts[-1].endswith(".metadata.json"):
            kind, instead = "an Iceberg", "table.scan().to_arrow_batch_reader of pyiceberg"
        elif ".hoodie" in parts:
            kind, instead = "a Hudi", "a stream of its rows"
        if kind:
            raise InputError(
                f"{entry} holds {kind} table, and not all rows in its files are rows of the table: pass {instead}."
            )
