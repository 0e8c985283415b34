"""What a fit checks of itself before it states numbers: that it solves its equations, and that all is finite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from partsketch.common.changed import changed
from partsketch.common.errors import InputError
from partsketch.common.linalg.solution import LARGEST_GRADIENT, Solution
from partsketch.model.certificate import Certificate
from partsketch.model.coordinates import SMALLEST_SIZE
from partsketch.model.held import held
from partsketch.model.inference import Inference
from partsketch.model.regression import Combination, Regression

FloatArray = NDArray[np.float64]

#: Part of the largest term of predictions that rounding a coefficient may take off it.
_FELT = 1e-12


def check_solutions(solutions: Sequence[Solution], names: Sequence[str]) -> None:
    """Refuse solutions that do not solve their own equations: Fᵀ(t − F a) must be what rounding explains."""
    for solution, name in zip(solutions, names, strict=True):
        if np.isinf(solution.residual_sums).any():
            raise InputError(
                "The residual sum of squares is beyond what a double holds: divide the target, or all weights, by a "
                "constant."
            )
        if not solution.gradient <= LARGEST_GRADIENT or not np.isfinite(solution.residual_sums).all():
            where = "" if len(solutions) == 1 else f" of {name!r}"
            raise InputError(
                f"The fit{where} does not pass its own check (a gradient of {solution.gradient:.1e} is left where "
                "rounding explains 1e-14): columns are too nearly dependent; leave some of them out."
            )


def check_targets(target_range: FloatArray, names: Sequence[str], mean_weight: float) -> None:
    """Refuse targets that lost digits, or all of them, when they were multiplied by the roots of tiny weights."""
    for name, low, high in zip(names, *target_range, strict=True):
        if low < high and mean_weight < 1 and max(-low, high) * np.sqrt(mean_weight) < SMALLEST_SIZE:
            raise InputError(
                f"Target {name!r} times the roots of the weights is below what doubles hold with all digits: multiply "
                "the target, or all weights, by a constant."
            )


def check_coefficients(raw: FloatArray, combination: Combination, regression: Regression) -> None:
    """Refuse coefficients of the columns as they are that a double does not hold, naming the column."""
    if np.isfinite(raw).all() and (np.abs(raw) >= SMALLEST_SIZE).all():
        return
    lost = np.zeros(raw.shape)
    if (coordinates := regression.coordinates) is not None:
        free, units = regression.free_columns, np.split(coordinates.unit, [coordinates.features])
        sizes = np.abs(combination.coefficients[free:])
        # What rounding to whole multiples of the smallest double takes off terms of predictions.
        steps = np.spacing(0.0) * units[0][free:, None] / units[1]
        seen = (sizes > 0) & (steps > _FELT * sizes.max(axis=0, initial=0.0))
        lost[free:] = seen & (np.abs(raw[free:]) < SMALLEST_SIZE)
    for column, values, parts in zip(regression.features, raw, lost, strict=True):
        small = bool(parts.any())
        if small or not np.isfinite(values).all():
            remedy = "divide the column by a constant, or multiply" if small else "divide the column, or"
            raise InputError(
                f"The coefficient of column {column!r} is {'below' if small else 'beyond'} what a double holds: "
                f"{remedy} the target{'' if small else ', by a constant'}."
            )


def checked_certificate(certificate: Certificate, target_square: float) -> Certificate:
    """Return a certificate in the square of the target's unit; unavailable if it is beyond what a double holds."""
    names = ("excess_loss", "standard_error", "minimal_loss", "noise_variance")
    with np.errstate(over="ignore"):
        values = {name: getattr(certificate, name) for name in names}
        scaled = {name: None if value is None else float(value * target_square) for name, value in values.items()}
        confidence = certificate.confidence and certificate.confidence.scaled(target_square)
    known = [certificate.relative_excess_loss, certificate.divergence]
    are_held = all(value is None or held(value, values[name] or 0.0) for name, value in scaled.items())
    if are_held and all(value is None or np.isfinite(value) for value in known):
        if target_square == 1.0:
            return certificate
        return changed(certificate, confidence=confidence, **scaled)
    reason = "the sizes of the partitions' columns, or of the target, differ by more than a double holds"
    return replace(
        certificate,
        kind="unavailable",
        **dict.fromkeys((*names, "relative_excess_loss", "divergence")),
        heterogeneity=None,
        confidence=None,
        relative_confidence=None,
        reason=reason,
        sentence=f"What the fit loses is not known: {reason}; divide columns by constants, or fit exactly.",
    )


def checked_inference(inference: Inference) -> Inference:
    """Return an inference without the numbers that a double does not hold, and with the reason.

    Infinitely many degrees of freedom are right: the normal distribution has them.
    """
    reason = "the sizes of the columns, or of the target, differ by more than a double holds"
    around = inference.around_exact
    if not _hold(around.standard_errors, around.degrees_of_freedom, around.covariance):
        around = replace(around, standard_errors=None, degrees_of_freedom=None, covariance=None, reason=reason)
    kept: dict[str, object] = {"around_exact": around}
    if not _hold(inference.standard_errors, inference.degrees_of_freedom, inference.covariance):
        kept["covariance_root"] = None
        kept |= {"standard_errors": None, "degrees_of_freedom": None, "covariance": None, "reason": reason}
    if inference.standard_errors is None and not inference.reason:
        kept["reason"] = reason
    if not _hold(inference.spread_standard_errors, inference.spread_degrees_of_freedom):
        kept |= {"spread_standard_errors": None, "spread_degrees_of_freedom": None}
    for name in ("noise_variance", "r_squared"):
        if not _hold(getattr(inference, name)):
            kept[name] = None
    is_changed = len(kept) > 1 or around is not inference.around_exact
    return replace(inference, **kept) if is_changed else inference  # type: ignore[arg-type]


def _hold(*values: FloatArray | float | None) -> bool:
    """Tell whether arrays are finite, and numbers are numbers."""
    return all(
        value is None or bool(np.isfinite(value).all() if isinstance(value, np.ndarray) else not np.isnan(value))
        for value in values
    )
