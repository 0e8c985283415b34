"""What the sliders say: a small value that lives in the address of the page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from urllib.parse import urlencode

from partsketch.common.errors import InputError

#: How partitions differ, and in words.
DESIGNS = {
    "alike": "alike: all partitions have the same second moments",
    "gaussian": "Gaussian rows, dealt out at random",
    "odd": "one odd partition, its rows larger or smaller",
    "given": "a given divergence D/d",
}


@dataclass(frozen=True)
class Slider:
    """A number to be set: its name and words, its ends, and whether it is whole."""

    name: str
    words: str
    lowest: float
    highest: float
    whole: bool


SLIDERS = (
    Slider("n", "rows n", 100, 1e9, True),
    Slider("d", "columns d", 1, 2000, True),
    Slider("k", "partitions k", 1, 4096, True),
    Slider("m", "sketch rows m", 3, 100_000, True),
    Slider("variance", "noise variance σ²", 1e-3, 1e3, False),
    Slider("odd", "size of the odd partition's rows", 0.05, 20, False),
    Slider("unlikeness", "divergence D/d", 1, 100, False),
    Slider("delta", "chance δ that the bound fails", 1e-4, 0.5, False),
)


@dataclass(frozen=True)
class State:
    """Everything that can be set on the page."""

    n: int = 1_000_000
    d: int = 50
    k: int = 16
    m: int = 200
    variance: float = 1.0
    odd: float = 3.0
    unlikeness: float = 2.0
    delta: float = 0.05
    design: str = "gaussian"

    def __post_init__(self) -> None:
        for slider in SLIDERS:
            value = getattr(self, slider.name)
            if not slider.lowest <= value <= slider.highest:
                raise InputError(f"{slider.words} is {value:g}: it lies from {slider.lowest:g} to {slider.highest:g}.")
        if self.design not in DESIGNS:
            raise InputError(f"design is {self.design!r}: choose one of {', '.join(DESIGNS)}.")

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> State:
        """Return the state that an address describes; what it leaves out is as usual."""
        values: dict[str, float | int | str] = {}
        for field in fields(cls):
            text = query.get(field.name)
            if text is None:
                continue
            if field.name == "design":
                values[field.name] = text
                continue
            try:
                number = float(text)
            except ValueError:
                number = math.nan
            if not math.isfinite(number):
                raise InputError(f"{field.name} is {text[:40]!r}: give a number.")
            whole = next(slider.whole for slider in SLIDERS if slider.name == field.name)
            values[field.name] = round(number) if whole else number
        return cls(**values)  # type: ignore[arg-type]

    def to_query(self) -> str:
        """Return the state as the query of an address."""
        return urlencode({name: f"{value:.12g}" if name != "design" else value for name, value in asdict(self).items()})

    def plan_command(self) -> str:
        """Return the `plan` command for the same sizes."""
        return (
            f"partsketch plan --rows {self.n} --columns {self.d} --no-intercept --partitions {self.k} "
            f"--sketch-size {self.m} --delta {self.delta:g}"
        )
