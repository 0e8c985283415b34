"""Time and bytes of every method for the shape of a fit: predicted by the planner's model, measured where they were."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from partsketch.model.methods import FIT_METHODS, METHODS
from partsketch.planner.calibration import Calibration
from partsketch.planner.costs import flops, seconds, sent_bytes, summary_bytes
from partsketch.planner.work import Work
from partsketch.report.page.entry import Entry
from partsketch.sketches.base import is_kind, usual_size


@dataclass(frozen=True)
class MethodCost:
    """What one method takes with the rows, columns, k and m of a fit.

    Attributes
    ----------
    method
        Name.
    estimator_bytes, summary_bytes
        What the estimator needs from each partition; what leaves it when the whole summary does.
    bytes_in_all
        All summaries together.
    operations
        Floating-point operations; None when not counted for the kind of sketch.
    predicted, measured
        Seconds on this machine; None when unknown.
    is_this_fit
        Whether it is the method of the fit.
    """

    method: str
    estimator_bytes: int
    summary_bytes: int
    bytes_in_all: int
    operations: float | None
    predicted: float | None
    measured: float | None
    is_this_fit: bool


def method_costs(entry: Entry, speeds: Calibration) -> list[MethodCost]:
    """Return what each method takes, on a machine with these speeds."""
    model = entry.model
    costs = []
    for name in FIT_METHODS:
        work = _work(entry, name)
        # The package that a kind of sketch came from need not be on this machine.
        known = is_kind(work.sketch)
        measured = entry.seconds if name == model.method else entry.exact_seconds if name == "exact" else None
        costs.append(
            MethodCost(
                method=name,
                estimator_bytes=sent_bytes(work),
                summary_bytes=summary_bytes(work),
                bytes_in_all=summary_bytes(work) * (1 if name == "exact" else work.partitions),
                operations=_known(flops(work)) if known else None,
                predicted=_known(seconds(work, speeds)) if known else None,
                measured=measured,
                is_this_fit=name == model.method,
            )
        )
    return costs


def _storage(data: str) -> str:
    """Return where the rows were: "2 CSV files" in CSV; arrays in files are mapped into memory."""
    files = re.fullmatch(r"\d+ (.+) files?", data)
    return files[1] if files and files[1] not in ("NumPy", "sketch") else "memory"


def _work(entry: Entry, name: str) -> Work:
    model, record = entry.model, entry.model.record
    columns = len(model.column_names)
    own, method = METHODS[model.method], METHODS[name]
    has_parts = own.by_partition or own.sketched
    return Work(
        rows=record.row_count,
        columns=columns,
        targets=len(model.target_names),
        method=name,
        sketch=str(record.options.get("sketch", "gaussian")) if method.sketched else "triangular",
        partitions=len(record.partitions) if has_parts else int(record.options.get("n_partitions", 1)),
        sketch_size=(record.sketch_size or usual_size(columns)) if method.sketched else None,
        storage=_storage(record.data),
    )


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
