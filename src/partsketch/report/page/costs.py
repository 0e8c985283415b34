"""Time and bytes of every method for the shape of a fit."""

from __future__ import annotations

from dataclasses import dataclass

from partsketch.options import METHODS
from partsketch.report.page.entry import Entry

_BYTES = 8


@dataclass(frozen=True)
class MethodCost:
    """What one method takes: bytes that leave each partition, bytes in all, multiplications, measured seconds."""

    method: str
    description: str
    bytes_per_partition: int
    bytes_in_all: int
    multiplications: float
    seconds: float | None
    is_this_fit: bool


def method_costs(entry: Entry) -> list[MethodCost]:
    """Return what each method takes with the rows, columns, k and m of this fit.

    Exact summaries are triangles of one row per column; sketches have m rows. A dense Gaussian sketch multiplies every
    row m times, an exact summary once per column.
    """
    model, record = entry.model, entry.model.record
    method = METHODS[model.method]
    width = len(model.column_names) + len(model.target_names)
    chosen = method.by_partition or method.sketched
    parts = len(record.partitions) if chosen else int(record.options.get("n_partitions", 1))
    size = record.sketch_size or max(4 * len(model.column_names), len(model.column_names) + 16)
    costs = []
    for name, kind in METHODS.items():
        looks = parts if name == "whole" else 1
        height = size * looks if kind.sketched else width
        one = _BYTES * height * width
        seconds = entry.seconds if name == model.method else entry.exact_seconds if name == "exact" else None
        work = float(record.row_count) * width * height / (1 if kind.sketched else 2)
        costs.append(
            MethodCost(name, kind.description, one, one * parts, work, seconds, is_this_fit=name == model.method)
        )
    return costs


def with_unit(count: float, units: tuple[str, ...] = ("B", "kB", "MB", "GB", "TB")) -> str:
    """Return a count of bytes, or of anything, with a unit of thousands."""
    for unit in units[:-1]:
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} {units[-1]}"
