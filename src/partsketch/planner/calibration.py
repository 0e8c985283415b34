"""How fast this machine is: a few kernels timed for about two seconds, kept in the user's cache folder.

What is timed are the routines that a fit spends its time in, on the data sizes that it gives them. Every number is the
best of several runs: other work on the machine can only make a run slower.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from partsketch.common.errors import PartsketchError
from partsketch.common.files import write_atomically
from partsketch.planner.machine import cache_folder, describe_machine, machine_key

#: Raised when what is measured changes: older files are then ignored.
FORMAT_VERSION = 4


@dataclass(frozen=True)
class Calibration:
    """Seconds that one core of a machine takes for the units of work in `costs.py`.

    Attributes
    ----------
    machine
        Description of the machine and of the versions that were measured.
    cores
        Cores that a fit may use.
    speedup
        How many times one core's work all cores do together.
    symmetric_product
        Seconds per row of the exact summary's product, by number of columns.
    exact_row
        Seconds per row of the whole exact summary of rows in memory, by number of columns, reading included.
    product
        Seconds per multiplication and addition of a matrix product, by number of columns.
    small_factorisation
        Seconds of the singular value decomposition of a square matrix, by number of columns.
    tall_factorisation
        Seconds per entry and column of the rows that a taller matrix has beyond a square one.
    normal
        Seconds per normal random number.
    copied_byte
        Seconds per byte copied in memory.
    fresh_byte
        Seconds per byte of memory that the system has to hand out anew.
    decoded_number
        Seconds per number read from a file, by format.
    sketched_number
        Seconds per number of the data, by kind of sketch unless it is dense, reading from memory included.
    sketch_unit
        Seconds per entry of such a sketch, or per row of a sample, for every time that the whole is gone through.
    summary_overhead
        Seconds of a partition's way through a fit apart from arithmetic.
    """

    machine: Mapping[str, str]
    cores: int
    speedup: float
    symmetric_product: Mapping[int, float]
    exact_row: Mapping[int, float]
    product: Mapping[int, float]
    small_factorisation: Mapping[int, float]
    tall_factorisation: float
    normal: float
    copied_byte: float
    fresh_byte: float
    decoded_number: Mapping[str, float]
    sketched_number: Mapping[str, float]
    sketch_unit: Mapping[str, float]
    summary_overhead: float

    def to_dict(self) -> dict[str, Any]:
        """Return the calibration as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibration:
        """Return the calibration that `to_dict` described, also after JSON has turned its widths into text."""
        widths = ("symmetric_product", "exact_row", "product", "small_factorisation")
        tables = {name: {int(width): float(value) for width, value in values[name].items()} for name in widths}
        return cls(**{**values, **tables})

    def sentence(self) -> str:
        """Return the calibration in words."""
        width = max(self.product)
        return (
            f"{self.machine.get('processor', 'this machine')}, {self.cores} cores "
            f"(together {self.speedup:.1f} times one): {2e-9 / self.product[width]:.1f} Gflop/s in products, "
            f"{1e-9 / self.copied_byte:.1f} GB/s in memory, {1e-6 / self.normal:.0f} million normal numbers/s, "
            f"{1e-6 / self.decoded_number['Parquet']:.0f} million numbers/s from Parquet, each on one core"
        )


def at_width(table: Mapping[int, float], width: float, power: float) -> float:
    """Return the value at a width: interpolated between logarithms, continued beyond the ends with this power."""
    known = sorted(table)
    if width <= known[0]:
        # Overheads keep narrow problems from becoming free.
        return table[known[0]]
    if width >= known[-1]:
        return table[known[-1]] * math.exp(power * math.log(width / known[-1]))
    logs = np.interp(math.log(width), np.log(known), np.log([table[one] for one in known]))
    return math.exp(float(logs))


def calibration(again: bool = False, folder: Path | None = None) -> Calibration:
    """Return the calibration of this machine: the one that is kept, or a new one, which is then kept.

    Parameters
    ----------
    again
        Whether to measure anew although there is one.
    folder
        Where calibrations are kept; None means the user's cache folder.
    """
    machine = describe_machine()
    path = (cache_folder() if folder is None else folder) / f"calibration-{machine_key(machine)}.json"
    if not again and (kept := _read(path)) is not None:
        return kept
    from partsketch.planner.measurement import measure

    measured = measure(machine)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps({"version": FORMAT_VERSION, **measured.to_dict()}).encode())
    except (OSError, PartsketchError):
        # A folder that cannot be written costs two seconds each time, not the plan.
        pass
    return measured


def _read(path: Path) -> Calibration | None:
    try:
        values = json.loads(path.read_bytes())
        if values.pop("version") != FORMAT_VERSION:
            return None
        kept = Calibration.from_dict(values)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return kept if set(timed_kinds()) <= set(kept.sketched_number) else None


def timed_kinds() -> list[str]:
    """Return the kinds of sketch that are timed as a whole."""
    from partsketch.sketches.base import get_sketch, sketch_kinds

    costs = {kind: get_sketch(kind).cost for kind in sketch_kinds()}
    return [kind for kind, cost in costs.items() if not cost.is_dense and not cost.as_exact]
