"""Limits as people write them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partsketch import InputError, Limits
from partsketch.fitting.limits import limits_from


@pytest.mark.parametrize(
    ("name", "written", "value"),
    [
        ("max_excess", "1%", 0.01),
        ("max_excess", 0.05, 0.05),
        ("max_excess", "0.5 %", 0.005),
        ("memory", "2 GB", 2e9),
        ("memory", "2GiB", 2 * 2**30),
        ("memory", "512MB", 512e6),
        ("max_bytes_per_partition", "10kB", 1e4),
        ("max_bytes_per_partition", 800, 800),
        ("seconds", "5 min", 300),
        ("seconds", "250ms", 0.25),
        ("seconds", "1e2", 100),
    ],
)
def test_values_are_read_as_written(name: str, written: Any, value: float) -> None:
    assert getattr(Limits(**{name: written}), name) == pytest.approx(value)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("max_excess", "1 GB"),
        ("max_excess", -0.1),
        ("max_excess", "nan"),
        ("memory", "2 parsecs"),
        ("memory", "lots"),
        ("seconds", 0),
        ("seconds", float("inf")),
        ("seconds", []),
        ("seconds", True),
    ],
)
def test_nonsense_is_refused_by_name(name: str, written: Any) -> None:
    with pytest.raises(InputError, match=name):
        Limits(**{name: written})


def test_mappings_are_limits_and_unknown_names_are_refused() -> None:
    assert limits_from({"max_excess": "1%"}) == Limits(max_excess=0.01)
    assert limits_from(None) == Limits()
    assert not limits_from({"certified": True}).any
    assert limits_from({"rows_stay": True}).any
    with pytest.raises(InputError, match="max_exces'"):
        limits_from({"max_exces": "1%"})


@given(st.floats(min_value=1e-6, max_value=1e12), st.sampled_from(["", "kB", "MB", "GB", "KiB"]))
def test_units_multiply(number: float, unit: str) -> None:
    factor = {"": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1024}[unit]
    assert Limits(memory=f"{number!r}{unit}").memory == pytest.approx(number * factor)  # type: ignore[arg-type]
