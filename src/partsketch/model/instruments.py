"""Tests that belong to two-stage least squares."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from partsketch.common.units import p_value_phrase


@dataclass(frozen=True)
class FirstStage:
    """F test that the instruments say nothing of an endogenous column, beside the exogenous ones."""

    column: str
    statistic: float
    df: tuple[int, float]
    p_value: float


@dataclass(frozen=True)
class Overidentification:
    """Sargan's test that the instruments agree with one another; it takes noise for independent."""

    statistic: float
    df: int
    p_value: float


@dataclass(frozen=True)
class InstrumentTests:
    """Tests of the instruments: a first stage for each endogenous column, and whether they agree if there are more."""

    first_stages: tuple[FirstStage, ...]
    overidentification: Overidentification | None

    def sentences(self) -> list[str]:
        """Return what is to be said of the instruments."""
        found = [
            f"First stage of {stage.column!r}: F = {stage.statistic:.4g} with {stage.df[0]} and {stage.df[1]:.4g} "
            f"degrees of freedom, {p_value_phrase(stage.p_value, 3)}."
            for stage in self.first_stages
        ]
        if self.overidentification is not None:
            test = self.overidentification
            found.append(
                f"Sargan's test, which takes noise for independent: {test.statistic:.4g} with {test.df} "
                f"degree{'s' if test.df > 1 else ''} of freedom, {p_value_phrase(test.p_value, 3)}."
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the tests as plain data."""
        return asdict(self)
