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
#: Comparisons by the sign that formulas use, and the function of Arrow that makes them.
COMPARISONS = {
    "==": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
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

    def compared(self, sign: str, other: object) -> NDArray[np.bool_]:
        """Return where the dates stand so to a date in quotes, in the column's own zone, or to those of a column."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not isinstance(other, str | Dates):
            raise InputError(
                f"Dates are compared with {other!r} in the formula: compare them with a date in quotes, such as "
                "'2024-02-01', or take a part of them, such as year(…)."
            )
        left = _in_own_zone(self.column)
        try:
            right = _in_own_zone(other.column) if isinstance(other, Dates) else pa.scalar(other).cast(left.type)
            found = getattr(pc, COMPARISONS[sign])(left, right)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            what = "a column of another kind" if isinstance(other, Dates) else repr(other)
            raise InputError(
                f"A column of type {self.column.type} cannot be compared with {what} in the formula: write a date as "
                "'2024-02-01', a timestamp as '2024-02-01 18:30:00', and of times of day and durations take seconds(…)."
            ) from error
        return np.asarray(found.fill_null(False).to_numpy(zero_copy_only=False), dtype=bool)


def is_dates(arrow_type: Any) -> bool:
    """Tell whether an Arrow type is one of dates, timestamps, times of day or durations."""
    from pyarrow import types

    return bool(types.is_temporal(arrow_type) and not types.is_interval(arrow_type))


def _in_own_zone(column: Any) -> Any:
    """Return timestamps with a zone as the clocks there show them; everything else as it is."""
    import pyarrow.compute as pc
    from pyarrow import types

    with_zone = types.is_timestamp(column.type) and column.type.tz is not None
    return pc.local_timestamp(column) if with_zone else column


def _filled(column: Any) -> NDArray[np.float64]:
    return np.asarray(column.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.float64)
