"""The pass over the data before a fit, over no more columns than it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from partsketch.common.errors import InputError
from partsketch.sources.arrow_values import BoolArray, as_numbers, as_texts
from partsketch.sources.cluster.chunked import ChunkedRows
from partsketch.sources.encoding import Encoding
from partsketch.sources.faults import Fault, Missing, complete_rows, missing_fault, number_faults
from partsketch.sources.keys import Keys
from partsketch.sources.levels import Found, PartitionColumn, find_values, holding, label_columns
from partsketch.sources.roles import Selection
from partsketch.sources.storage import RawBlock, Rows

#: Rows whose labels are held in memory, so that they are decoded once: those of a million take 8 MB.
_MOST_HELD = 1 << 22


@dataclass(frozen=True)
class Search:
    """What is looked for in which columns; a value, so that it can be sent to where the rows are."""

    names: tuple[str, ...]
    texts: tuple[str, ...]
    to_find: tuple[str, ...]
    encoded: tuple[str, ...]
    selection: Selection
    missing: Missing

    def __call__(self, rows: Rows) -> Found:
        """Read the columns of some rows once."""
        return self.holding(rows, {})

    def holding(self, rows: Rows, held: dict[str, list[Any]]) -> Found:
        """Do the same, and hold the blocks of the columns that are keys of `held`."""
        blocks = rows.choose(self.names, self.texts).raw_blocks(0, None, 65536)
        return find_values(blocks, self.names, self.to_find, self.selection.labels, self._keep, held)

    def _keep(self, raw: RawBlock) -> BoolArray | None:
        return None if self.missing == "error" else _complete(raw, self.names, self.encoded, self.selection)


def scan(
    rows: Rows,
    selection: Selection,
    encoded: tuple[str, ...],
    encoding: Encoding,
    encoding_is_given: bool,
    missing: Missing,
) -> tuple[Encoding, tuple[PartitionColumn, ...]]:
    """Read the data once for the levels and the values of the columns of labels."""
    if not rows.replayable:
        purpose = "Encoding text" if encoded and not encoding_is_given else "A partition column"
        raise InputError(
            f"{purpose} needs a pass over the data first, and this stream can be read only once: "
            "pass a table (reader.read_all()) or a file."
        )
    to_find = () if encoding_is_given else encoded
    names = selection.used
    if missing == "error":
        names = tuple(name for name in names if name in to_find or name in selection.labels)
    texts = tuple(name for name in names if name in encoded or name in selection.only_labels)
    search = Search(names, texts, to_find, encoded, selection, missing)
    found = Found({name: set() for name in to_find}, {name: Keys() for name in selection.labels})
    held: dict[str, list[Any]] = {}
    if rows.without(()) is not None and rows.row_count is not None and rows.row_count <= _MOST_HELD:
        held = {name: [] for name in selection.only_labels}
    for part in rows.map(search) if isinstance(rows, ChunkedRows) else (search.holding(rows, held),):
        found.add(part)
    if not encoding_is_given:
        levels = tuple((name, tuple(sorted(found.levels[name]))) for name in to_find)
        encoding = Encoding(levels, encoding.drop_first)
    return encoding, holding(label_columns(found.keys, selection.labels), held)


def _complete(
    raw: RawBlock, names: tuple[str, ...], encoded: tuple[str, ...], selection: Selection
) -> BoolArray | None:
    faults: list[Fault] = []
    with np.errstate(over="ignore", invalid="ignore"):
        for name, column in zip(names, raw.columns, strict=True):
            if name in encoded or name in selection.only_labels:
                absent = as_texts(column)[0] < 0
                faults.extend([missing_fault(name, absent)] if absent.any() else [])
            else:
                faults.extend(number_faults(name, *as_numbers(column)))
    return complete_rows(raw, faults, "drop")
