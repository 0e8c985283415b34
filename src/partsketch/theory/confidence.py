"""What is known of a number: a distribution whose quantiles are the ends of intervals, small enough for a file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from partsketch.common.errors import InputError
from partsketch.common.special import chdtri, chndtrix, ncfdtri, ndtri

_TAIL = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4)
#: Where a distribution of the kind "quantiles" is known; between them it is interpolated.
PROBABILITIES = (*_TAIL, 0.5, *(1 - p for p in reversed(_TAIL)))

#: Parameters of each kind, in order.
KINDS = {
    "quantiles": tuple(f"{probability:g}" for probability in PROBABILITIES),
    "point": ("value",),
    "noncentral_f": ("scale", "numerator_freedom", "denominator_freedom", "noncentrality"),
    "inverse_chi_square": ("estimate", "freedom"),
    "log_normal": ("median", "log_deviation"),
}


@dataclass(frozen=True)
class ConfidenceDistribution:
    """A confidence distribution: the p-quantile is the end of a one-sided interval that covers with probability p.

    Attributes
    ----------
    kind : str
        - "point": the value is known. Parameters: value.
        - "noncentral_f": `scale` times a non-central F variate. Parameters: scale, degrees of freedom of numerator and
          denominator (`math.inf` is allowed for the denominator), non-centrality.
        - "inverse_chi_square": of s when `estimate · freedom/s` is chi-square. Parameters: estimate, freedom.
        - "log_normal": parameters: median, standard deviation of the logarithm.
        - "quantiles": parameters: the quantiles at `PROBABILITIES`; levels above 99.9% are not known.
    parameters : tuple of float
        In that order.
    """

    kind: str
    parameters: tuple[float, ...]

    def __post_init__(self) -> None:
        if self.kind not in KINDS or len(self.parameters) != len(KINDS[self.kind]):
            raise InputError(
                f"a confidence distribution of kind {self.kind!r} with {len(self.parameters)} parameters is not known."
            )

    def quantile(self, probability: float) -> float:
        """Return the value below which the unknown number lies with this confidence."""
        values = self.parameters
        if self.kind == "point":
            return values[0]
        if self.kind == "quantiles":
            return self._interpolated(probability)
        if self.kind == "inverse_chi_square":
            estimate, freedom = values
            return estimate * freedom / float(chdtri(freedom, probability))
        if self.kind == "log_normal":
            median, deviation = values
            return median * math.exp(deviation * float(ndtri(probability)))
        scale, above, below, noncentrality = values
        if math.isinf(below):
            return scale * float(chndtrix(probability, above, noncentrality)) / above
        return scale * float(ncfdtri(above, below, noncentrality, probability))

    def _interpolated(self, probability: float) -> float:
        """Interpolate as if the number were normal between two neighbours."""
        first, last = PROBABILITIES[0], PROBABILITIES[-1]
        # A level of 0.999 written as (1 ± level)/2 may be off by rounding.
        if not first * (1 - 1e-9) <= probability <= last * (1 + 1e-9):
            raise InputError(
                f"The distribution is known between {first} and {last} only: give a level of at most 0.999."
            )
        return float(np.interp(ndtri(probability), ndtri(PROBABILITIES), self.parameters))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the two-sided interval with equal tails."""
        if not 0 < level < 1:
            raise InputError(f"level is {level}: give a number between 0 and 1, such as 0.95.")
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)

    def scaled(self, factor: float) -> ConfidenceDistribution:
        """Return the distribution of the number times a positive factor."""
        first = len(self.parameters) if self.kind == "quantiles" else 1
        moved = tuple(value * factor for value in self.parameters[:first])
        return ConfidenceDistribution(self.kind, (*moved, *self.parameters[first:]))

    def to_dict(self) -> dict[str, Any]:
        """Return the distribution as plain data; an infinite parameter is the text "inf", which JSON can hold."""
        return {"kind": self.kind, "parameters": [float(v) if math.isfinite(v) else "inf" for v in self.parameters]}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ConfidenceDistribution:
        """Return the distribution that `to_dict` described."""
        return cls(str(values["kind"]), _numbers(values["parameters"]))


def _numbers(values: Sequence[Any]) -> tuple[float, ...]:
    return tuple(math.inf if value == "inf" else float(value) for value in values)
