"""What an experiment gives back: tables of plain rows that become JSON and CSV."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Value: TypeAlias = str | int | float | bool | None
Row: TypeAlias = Mapping[str, Value]
Tables: TypeAlias = Mapping[str, Sequence[Row]]


@dataclass(frozen=True)
class Result:
    """One unit of the study: what was asked, what came out, where and how long it ran.

    Attributes
    ----------
    unit
        Name of the unit, such as "figure-1.digits".
    key
        Fingerprint of settings, seed and versions: a stored unit is used again only when it is the same.
    settings
        Everything that decides the outcome, the seed included.
    tables
        Rows by table name.
    machine
        Versions and processor.
    seconds
        How long it took.
    """

    unit: str
    key: str
    settings: Mapping[str, Any]
    tables: Tables
    machine: Mapping[str, Any]
    seconds: float

    def to_json(self) -> bytes:
        """Return the JSON text of the unit."""
        return dumps(
            {
                "unit": self.unit,
                "key": self.key,
                "settings": dict(self.settings),
                "machine": dict(self.machine),
                "seconds": self.seconds,
                "tables": {name: [dict(row) for row in rows] for name, rows in self.tables.items()},
            }
        )

    @classmethod
    def from_json(cls, text: bytes) -> Result:
        """Read a unit back; raises ValueError or KeyError when the text is not one."""
        stored = json.loads(text)
        return cls(*(stored[name] for name in ("unit", "key", "settings", "tables", "machine", "seconds")))


def clean(value: Any) -> Any:
    """Replace what JSON cannot hold (NaN, infinities, NumPy numbers) by what it can."""
    if isinstance(value, Mapping):
        return {str(name): clean(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [clean(entry) for entry in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def dumps(value: Any) -> bytes:
    """Return JSON text with one row of a table per line, so that changes can be read."""
    return (json.dumps(clean(value), ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode()


def fingerprint(*parts: Any) -> str:
    """Return a short hash of values that JSON can hold."""
    return hashlib.sha256(json.dumps(clean(list(parts)), sort_keys=True).encode()).hexdigest()[:20]


def to_csv(rows: Sequence[Row]) -> bytes:
    """Return CSV text; the columns are those of all rows in order of appearance."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(clean(dict(row)) for row in rows)
    return out.getvalue().encode()
