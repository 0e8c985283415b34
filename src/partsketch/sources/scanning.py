"""The pass over the data before a fit, over no more columns than it needs."""

from __future__ import annotations

import numpy as np

from partsketch.errors import InputError
from partsketch.sources.checking import Fault, Missing, complete_rows, missing_fault, number_faults
from partsketch.sources.columns import Selection
from partsketch.sources.encoding import Encoding
from partsketch.sources.levels import PartitionColumn, find_values
from partsketch.sources.rows import RawBatch, Rows
from partsketch.sources.values import BoolArray, as_numbers, as_texts


def scan(
    rows: Rows,
    chosen: Rows,
    selection: Selection,
    encoded: tuple[str, ...],
    encoding: Encoding,
    encoding_is_given: bool,
    missing: Missing,
) -> tuple[Encoding, PartitionColumn | None]:
    """Read the data once for the levels and the values of the partition column."""
    if not rows.replayable:
        purpose = "Encoding text" if encoded and not encoding_is_given else "A partition column"
        raise InputError(
            f"{purpose} needs a pass over the data before the fit, and this stream can be read only once: "
            "pass a table (reader.read_all()) or a file."
        )
    to_find = () if encoding_is_given else encoded
    names = selection.used
    scanned = chosen
    if missing == "error":
        names = tuple(name for name in names if name in to_find or name == selection.partition)
        scanned = rows.choose(names, [name for name in names if name in encoded or name in selection.only_partition])

    def keep(batch: RawBatch) -> BoolArray | None:
        return None if missing == "error" else _complete(batch, names, encoded, selection)

    levels, keys = find_values(scanned.batches(0, None, 65536), names, to_find, selection.partition, keep)
    if not encoding_is_given:
        encoding = Encoding(levels, encoding.drop_first)
    if selection.partition is None:
        return encoding, None
    if not keys:
        raise InputError(f"Partition column '{selection.partition}' has no values in the rows that can be used.")
    return encoding, PartitionColumn(selection.partition, keys)


def _complete(
    batch: RawBatch, names: tuple[str, ...], encoded: tuple[str, ...], selection: Selection
) -> BoolArray | None:
    faults: list[Fault] = []
    with np.errstate(over="ignore", invalid="ignore"):
        for name, column in zip(names, batch.columns, strict=True):
            if name in encoded or name in selection.only_partition:
                absent = as_texts(column)[0] < 0
                faults.extend([missing_fault(name, absent)] if absent.any() else [])
            else:
                faults.extend(number_faults(name, *as_numbers(column)))
    return complete_rows(batch, faults, "drop")
