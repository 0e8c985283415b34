"""The source over any storage with named columns: conversion, checks, encoding, labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.sources.arrow_values import as_numbers, coded, missing_values
from partsketch.sources.base import Capabilities, Codes, FilePart, FloatArray, IntArray, PartitionLeftOut
from partsketch.sources.blocks import ColumnBlock, Indicators
from partsketch.sources.encoding import Encoding
from partsketch.sources.faults import (
    FIT_AGAIN,
    Fault,
    Missing,
    complete_rows,
    level_fault,
    missing_fault,
    number_faults,
    weight_faults,
)
from partsketch.sources.files.paths import DataFiles
from partsketch.sources.formula.assembly import Assembler, BlockColumn
from partsketch.sources.levels import PartitionColumn
from partsketch.sources.roles import Selection, all_numbers
from partsketch.sources.row_numbers import consecutive
from partsketch.sources.storage import RawBlock, Rows


@dataclass(frozen=True)
class ColumnSource(Capabilities):
    """Rows with named columns, of which `rows` delivers exactly those that the selection uses, in its order.

    Attributes
    ----------
    labels
        The columns whose values rows are labelled with: that of the partitions, and one of clusters beside it.
    unreadable
        Files that were asked for and are not among the rows, because they could not be opened.
    remedy
        What to do about levels that the encoding does not know.
    """

    rows: Rows
    selection: Selection
    encoding: Encoding
    labels: tuple[PartitionColumn, ...]
    missing: Missing
    leaves_finiteness: bool = False
    leaves_labels: bool = False
    unreadable: tuple[PartitionLeftOut, ...] = ()
    remedy: str = FIT_AGAIN

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, encoded columns replaced by their indicators."""
        if self.encoding.design is not None:
            return self.encoding.design.feature_names
        encoded = set(self.encoding.columns)
        return tuple(
            feature
            for name in self.selection.features
            for feature in (self.encoding.indicator_names(name) if name in encoded else (name,))
        )

    @property
    def target_names(self) -> tuple[str, ...]:
        """Names of the targets."""
        if self.encoding.design is not None:
            return self.encoding.design.target_names
        return self.selection.targets

    @property
    def row_count(self) -> int | None:
        """Number of rows, if known."""
        return self.rows.row_count

    @property
    def replayable(self) -> bool:
        """Whether the rows can be read again."""
        return self.rows.replayable

    @property
    def random_access(self) -> bool:
        """Whether reading may start anywhere at little cost."""
        return self.rows.random_access

    @property
    def boundaries(self) -> tuple[int, ...]:
        """Row numbers where reading may start at no cost."""
        return self.rows.boundaries

    @property
    def files(self) -> tuple[FilePart, ...]:
        """The files behind the rows."""
        return self.rows.files

    @property
    def partition_values(self) -> tuple[str, ...]:
        """Values of the partition column as text."""
        return self.labels[0].texts if self.labels else ()

    @property
    def has_weights(self) -> bool:
        """Whether blocks carry weights."""
        return self.selection.weights is not None

    @property
    def description(self) -> str:
        """The source in one phrase."""
        return self.rows.description

    @property
    def opened_files(self) -> DataFiles | None:
        """The files that are read."""
        return self.rows.opened_files

    @property
    def partition_count(self) -> int:
        """How many values the partition column has."""
        return len(self.labels[0].values) if self.labels else 0

    @property
    def cluster_count(self) -> int:
        """How many values the column of clusters beside that of the partitions has."""
        return len(self.labels[1].values) if len(self.labels) > 1 else 0

    @property
    def codes(self) -> Codes:
        """How many of the features are held as codes."""
        design, drop = self.encoding.design, int(self.encoding.drop_first)
        if design is not None:
            return Codes(*design.codes)
        counts = [len(levels) - drop for name, levels in self.encoding.levels if name in self.selection.features]
        return Codes(sum(counts), len(counts))

    @property
    def notes(self) -> tuple[str, ...]:
        """What was found only nearly, which columns were left out, and names that look like a row."""
        found = () if self.encoding.design is None else self.encoding.design.notes
        files = self.opened_files
        named = files is not None and files.format == "CSV" and files.csv.header
        row = all_numbers([column.name for column in self.rows.columns]) if named else ""
        return (*found, *self.selection.notes, *((row,) if row else ()))

    def counted(self) -> ColumnSource:
        """Return this source with its rows counted."""
        return replace(self, rows=self.rows.counted())

    def leaving_finiteness(self) -> ColumnSource:
        """Return this source without its check for NaN and infinity, for a reader that checks what it makes of them.

        The check is a pass of its own over the values, worth a twentieth of the time of a fit. It stays where rows are
        to be dropped, and where they cannot be read again to say exactly what was wrong.
        """
        if self.missing == "drop" or not self.replayable:
            return self
        return replace(self, leaves_finiteness=True)

    def leaving_labels(self) -> ColumnSource:
        """Return this source without labels: to find the text of every row among all texts takes longer than a fit."""
        unread = self.selection.only_labels if all(column.complete for column in self.labels) else ()
        rows = self.rows.without(unread) if unread else None
        if rows is None:
            return replace(self, leaves_labels=True)
        selection = replace(self.selection, partition=None, clusters=None)
        return replace(self, rows=rows, selection=selection, labels=(), leaves_labels=True)

    def decoded_by(self, threads: int) -> ColumnSource:
        """Return this source, a row group being decoded by several threads."""
        return replace(self, rows=self.rows.decoded_by(threads))

    def read(self, start: int = 0, stop: int | None = None, block_rows: int = 65536) -> Iterator[ColumnBlock]:
        """Yield rows start to stop, converted and checked."""
        held = {column.name: column.held for column in self.labels if column.held is not None}
        rows = self.rows.without(held) if held and not self.leaves_labels else None
        assembler = _Assembler(self, {} if rows is None else held)
        dropped = 0
        seen = False
        for raw in (rows or self.rows).raw_blocks(start, stop, block_rows):
            seen = True
            block = assembler.block(raw, dropped)
            if len(block):
                yield block
                dropped = 0
            else:
                dropped = block.dropped
                empty = block
        if dropped:
            yield empty
        if not seen and start == 0 and stop is None:
            raise InputError(f"The data ({self.description}) has no rows.")


class _Assembler:
    """Turns raw blocks into blocks; made once per call of `read`."""

    def __init__(self, source: ColumnSource, held: Mapping[str, Any]) -> None:
        self.held = held
        self.missing = source.missing
        self.remedy = source.remedy
        self.labels = source.labels
        self.selection = source.selection
        self.names = tuple(name for name in source.selection.used if name not in held)
        self.drop_first = int(source.encoding.drop_first)
        self.codes_of = {
            name: {level: code for code, level in enumerate(levels)} for name, levels in source.encoding.levels
        }
        self.leaves_finiteness, self.leaves_labels = source.leaves_finiteness, source.leaves_labels
        self.regressors = (*source.selection.features, *source.selection.targets)
        design = source.encoding.design
        self.design = None if design is None else Assembler(design, source.leaves_finiteness)

    def block(self, raw: RawBlock, dropped: int) -> ColumnBlock:
        values = dict(zip(self.names, raw.columns, strict=True))
        for name, column in self.held.items():
            values[name] = column.slice(raw.start, raw.length).combine_chunks()
        faults: list[Fault] = []
        columns: list[BlockColumn] = []
        # The sums that look for values that are not finite overflow or meet infinities on purpose.
        with np.errstate(all="ignore"):
            if self.design is not None:
                columns = self.design.columns(values, raw.length, faults)
            for name in self.regressors if self.design is None else ():
                if name in self.codes_of:
                    codes = self._codes(name, values[name], faults)
                    columns.append(Indicators(codes, self.drop_first, len(self.codes_of[name]) - self.drop_first))
                else:
                    columns.append(_numbers(name, values[name], faults, not self.leaves_finiteness))
            weights = self._weights(values, faults)
        # A value that only rows have which are left out is none: theirs are not looked up.
        late = self.missing == "drop" and not self.leaves_labels
        labels = self._labels(values, faults, self.leaves_labels or late)
        block = ColumnBlock(
            row_numbers=consecutive(raw.start, raw.start + raw.length),
            columns=tuple(columns),
            weights=weights,
            labels=labels,
            dropped=dropped,
        )
        kept = complete_rows(raw, faults, self.missing, self.remedy)
        if kept is not None:
            positions = np.flatnonzero(kept)
            block = replace(block, dropped=dropped + raw.length - positions.size).take(positions)
        if self.labels and late:
            used = {
                column.name: values[column.name] if kept is None else values[column.name].take(positions)
                for column in self.labels
            }
            block = replace(block, labels=self._labels(used, [], False))
        return block

    def _labels(self, values: dict[str, Any], faults: list[Fault], left_out: bool) -> IntArray | None:
        """Return the labels of rows, None if they are left out, and note rows that have none."""
        labels: IntArray | None = None
        for column in self.labels:
            if left_out:
                unlabelled = missing_values(values[column.name])
            else:
                found, unlabelled = column.labels(values[column.name])
                labels = found if labels is None else labels + len(self.labels[0].values) * found
            if unlabelled is not None:
                faults.append(missing_fault(column.name, unlabelled))
        return labels

    def _codes(self, name: str, column: object, faults: list[Fault]) -> IntArray:
        codes, absent, unknown, texts = coded(column, self.codes_of[name])
        if absent.any():
            faults.append(missing_fault(name, absent))
        if unknown is not None:
            faults.append(level_fault(name, unknown, texts))
        return codes

    def _weights(self, values: dict[str, object], faults: list[Fault]) -> FloatArray | None:
        name = self.selection.weights
        if name is None:
            return None
        weights = np.asarray(_numbers(name, values[name], faults), dtype=np.float64)
        faults.extend(weight_faults(name, weights))
        return weights


def _numbers(name: str, column: object, faults: list[Fault], check_finite: bool = True) -> NDArray[np.generic]:
    values, null = as_numbers(column)
    if check_finite or null is not None:
        faults.extend(number_faults(name, values, null))
    return values
