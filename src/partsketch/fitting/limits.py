"""What a plan may not exceed: limits, and how people write them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from partsketch.common.errors import InputError

_BYTE_UNITS = {"": 1, "b": 1}
_BYTE_UNITS |= {f"{letter}{ending}": 1000**power for power, letter in enumerate("kmgt", 1) for ending in ("", "b")}
_BYTE_UNITS |= {f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", 1)}
_SECOND_UNITS = {"": 1.0, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_NUMBER = re.compile(r"\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*([a-zA-Z%]*)\s*")


@dataclass(frozen=True)
class Limits:
    """What a fit may lose and cost; None means no limit.

    Values may be written as people write them: `max_excess="1%"`, `memory="2 GB"`, `seconds="5 min"`.

    Attributes
    ----------
    max_excess
        Largest expected excess loss, as a part of the minimal loss. Giving it says that some loss is welcome if it
        saves time: the quickest candidate within all limits is then recommended.
    max_bytes_per_partition
        Most bytes that may leave a partition.
    rows_stay
        Whether rows may not leave their partition, not even a sample of them.
    memory
        Most bytes of memory at once.
    seconds
        Longest time.
    certified
        Whether the fit must be able to state its own loss: averages then send whole summaries, not coefficients alone.
        Fits always are.
    """

    max_excess: float | None = None
    max_bytes_per_partition: float | None = None
    rows_stay: bool = False
    memory: float | None = None
    seconds: float | None = None
    certified: bool = False

    def __post_init__(self) -> None:
        readers = {
            "max_excess": _share,
            "max_bytes_per_partition": _bytes,
            "memory": _bytes,
            "seconds": _seconds,
        }
        for name, reader in readers.items():
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, reader(name, value))

    @property
    def any(self) -> bool:
        """Whether there is a limit at all."""
        return self.rows_stay or any(
            value is not None for value in (self.max_excess, self.max_bytes_per_partition, self.memory, self.seconds)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the limits as plain data."""
        return asdict(self)


def limits_from(limits: Limits | Mapping[str, Any] | None) -> Limits:
    """Return limits given as such, as a mapping of their names, or not at all."""
    if limits is None:
        return Limits()
    if isinstance(limits, Limits):
        return limits
    if not isinstance(limits, Mapping):
        raise InputError("limits is a partsketch.Limits or a mapping such as {'max_excess': '1%', 'seconds': 10}.")
    known = [field.name for field in fields(Limits)]
    for name in limits:
        if name not in known:
            raise InputError(f"There is no limit called {name!r}: choose from {', '.join(known)}.")
    return Limits(**limits)


def _share(name: str, value: Any) -> float:
    return _number(name, value, {"": 1.0, "%": 0.01}, "a share such as 0.01 or '1%'")


def _bytes(name: str, value: Any) -> float:
    return _number(name, value, _BYTE_UNITS, "a number of bytes such as 2e9 or '2 GB'")


def _seconds(name: str, value: Any) -> float:
    return _number(name, value, _SECOND_UNITS, "a number of seconds such as 30 or '5 min'")


def _number(name: str, value: Any, units: Mapping[str, float], wanted: str) -> float:
    problem = InputError(f"{name} is {value!r}: give {wanted}, greater than 0.")
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value)
        if match is None or match[2].lower() not in units:
            raise problem
        value = float(match[1]) * units[match[2].lower()]
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise problem from error
    if not (math.isfinite(number) and number > 0) or isinstance(value, bool):
        raise problem
    return number
