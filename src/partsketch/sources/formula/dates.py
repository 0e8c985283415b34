"""Parts of dates, timestamps, times of day and durations, as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError

#: Parts by the name that formulas use, and the function of Arrow that takes them.
DATE_PARTS = {
    "year": "year",
    "quarter": "quarter",
    "month": "month",
    "day": "day",
    "dayofyear": "day_of_year",
    "day_of_year": "day_of_year",
    "weekday": "day_of_week",
    "dayofweek": "day_of_week",
    "day_of_week": "day_of_week",
    "hour": "hour",
    "minute": "minute",
    "second": "second",
    "days": "",
    "seconds": "",
}
_SECONDS_PER_DAY = 86_400.0
_PARTS_OF_A_DAY = ("hour", "minute", "second")
_PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


@dataclass(frozen=True, eq=False)
class Dates:
    """A column of dates, timestamps, times of day or durations, as Arrow holds it; nulls have been noted elsewhere."""

    column: Any

    def part(self, name: str) -> NDArray[np.float64]:
        """Return a part of every date; days and seconds are counted from the beginning of 1970, in UTC.

        Those of a time of day are counted from midnight; those of a duration are its length.
        """
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyarrow import types

        column = self.column
        if name in _PARTS_OF_A_DAY and types.is_date(column.type):
            return np.zeros(len(column))
        if name not in ("days", "seconds"):
            if types.is_duration(column.type) or (types.is_time(column.type) and name not in _PARTS_OF_A_DAY):
                what = "duration" if types.is_duration(column.type) else "time of day"
                raise InputError(f"A {what} has no {name}: write seconds(…) or days(…) in the formula.")
            return _filled(getattr(pc, DATE_PARTS[name])(column))
        if types.is_date32(column.type):
            days = _filled(column.cast(pa.int32()))
        elif types.is_date64(column.type):
            days = _filled(column.cast(pa.int64())) / (1e3 * _SECONDS_PER_DAY)
        else:
            # Times of 32 bits are cast to numbers of 32 bits alone.
            narrow = column.cast(pa.int32()) if types.is_time32(column.type) else column
            seconds = _filled(narrow.cast(pa.int64())) / _PER_SECOND[column.type.unit]
            return seconds if name == "seconds" else seconds / _SECONDS_PER_DAY
        return days if name == "days" else days * _SECONDS_PER_DAY


def is_dates(arrow_type: Any) -> bool:
    """Tell whether an Arrow type is one of dates, timestamps, times of day or durations."""
    from pyarrow import types

    return bool(types.is_temporal(arrow_type) and not types.is_interval(arrow_type))


def _filled(column: Any) -> NDArray[np.float64]:
    return np.asarray(column.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.float64)
