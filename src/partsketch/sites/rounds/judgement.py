"""What is known of a model after some rounds: certificate, standard errors, intervals, and its record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.fitting.fit import Fit
from partsketch.model.around_exact import AroundExact, raw_covariance
from partsketch.model.certificate import Certificate
from partsketch.model.checks import checked_certificate
from partsketch.model.coordinates import Coordinates, standardise
from partsketch.model.held import MOST_COLUMNS_WITH_COVARIANCE, held_covariance
from partsketch.model.inference import Inference, level_covariance, restored_variance
from partsketch.model.model import Model
from partsketch.model.moments import FitMoments
from partsketch.model.regression import Regression
from partsketch.sites.rounds.steps import ROUNDING, Advance
from partsketch.summaries.law_of_sketches import law_of_sketches
from partsketch.summaries.summary import Summary
from partsketch.theory.confidence import ConfidenceDistribution
from partsketch.theory.covariance import CoefficientCovariance
from partsketch.theory.rounds import RoundLaw, effective_sketch_rows
from partsketch.theory.stacking import StackedFit, stacked_fit

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TargetStart:
    """The stacked fit of one target, and the rows of one sketch that it is worth."""

    fit: StackedFit
    rows: float


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """The stacked sketches in their own coordinates, and the fit that rounds start from."""

    columns: tuple[str, ...]
    targets: tuple[str, ...]
    coordinates: Coordinates
    standard: tuple[Summary, ...]
    by_target: tuple[TargetStart, ...]

    @classmethod
    def of(cls, fit: Fit) -> Preconditioner:
        """Return the preconditioner of a stacked fit."""
        model = fit.model
        columns, targets = model.column_names, model.target_names
        free = int(columns != model.feature_names)
        coordinates, moved = standardise(fit.summaries, columns, targets, free)
        standard = tuple(moved)
        counts, law = [summary.row_count for summary in standard], law_of_sketches(standard)
        stacked = [stacked_fit(FitMoments(standard, columns, target, free).sketches, counts, law) for target in targets]
        by_target = tuple(TargetStart(found, effective_sketch_rows(found)) for found in stacked)
        return cls(columns, targets, coordinates, standard, by_target)

    @property
    def solution(self) -> FloatArray:
        """Coefficients of the stacked fit, shape (columns, targets)."""
        return np.column_stack([known.fit.pooled.solution for known in self.by_target])

    @property
    def regression(self) -> Regression:
        """The regression, for conversions to the columns as they are."""
        return Regression(self.columns, self.targets, self.coordinates.free, coordinates=self.coordinates)


def refined_model(
    fit: Fit,
    start: Preconditioner,
    coefficients: FloatArray,
    advances: Sequence[Advance],
    laws: Sequence[RoundLaw],
    losses: FloatArray | None,
    rounds: int,
) -> Model:
    """Return the model with these coefficients, in the coordinates of the sketches."""
    base, free = fit.model, start.coordinates.free
    raw = start.coordinates.coefficients(coefficients)
    certificates, inferences = [], []
    for number, (found, law) in enumerate(zip(advances, laws, strict=True)):
        known = start.by_target[number]
        loss = known.fit.minimal_loss
        if losses is not None:
            # What the best known point still loses is at least what the step from there gains.
            loss = max(float(losses[number]) - found.gained - law.step * found.seen, 0.0)
        certificate = _certificate(base.certificates[number], known, found, law, loss, len(start.standard), rounds)
        square = float(np.square(start.coordinates.unit[len(start.columns) + number]))
        inferences.append(_inference(base.inferences[number], start, number, raw[:, number], certificate, law))
        certificates.append(checked_certificate(certificate, square))
    features, intercept = raw[free:], raw[0] if free else np.zeros(len(start.targets))
    plural = "" if rounds == 1 else "s"
    reasons = {
        **base.record.reasons,
        "rounds": f"refined in {rounds} round{plural}: every site sent the gradient of its rows at the coefficients of "
        "each, and conjugate gradients with the stacked sketches as preconditioner gave the next",
    }
    record = replace(base.record, options={**base.record.options, "rounds": rounds}, reasons=reasons)
    return replace(
        base,
        coefficients=features,
        intercept=intercept,
        partition_coefficients=features[None],
        partition_intercepts=intercept[None],
        certificates=tuple(certificates),
        inferences=tuple(inferences),
        record=record,
        level=start.coordinates.levels(coefficients) if free else base.level,
    )


def _certificate(
    base: Certificate, known: TargetStart, found: Advance, law: RoundLaw, loss: float, sketches: int, rounds: int
) -> Certificate:
    """Return what is left after the last step, by the law of the sketches."""
    rank, rows = known.fit.pooled.rank, known.fit.row_count
    floor = loss * rank * ROUNDING**2
    finite = bool((known.fit.sampling < 1).any())
    confidence = law.confidence(found.seen, floor, finite)
    excess = max(float(np.mean(law.ratios)) * found.seen, floor)
    relative = excess / loss if loss > 0 else None
    exact = sketches == 1 and law_is_exact(known)
    relative_confidence = None if relative is None else confidence.scaled(1 / loss)
    return Certificate(
        kind="estimated" if exact else "approximate",
        excess_loss=excess,
        standard_error=float(np.std(law.ratios)) * found.seen,
        relative_excess_loss=relative,
        minimal_loss=loss,
        divergence=base.divergence,
        noise_variance=loss / (rows - rank) if rows > rank else None,
        heterogeneity=base.heterogeneity,
        reason="the law of Gaussian sketches says how far the gradient of the last round is from the minimum"
        + ("" if exact else "; for several sketches it is that of one with as many rows, allowing for unlike ones"),
        sentence=_sentence(relative_confidence or confidence, relative, excess, excess <= 10 * floor, exact, rounds),
        confidence=confidence,
        relative_confidence=relative_confidence,
    )


def _sentence(
    distribution: ConfidenceDistribution, relative: float | None, excess: float, rounded: bool, exact: bool, rounds: int
) -> str:
    low, high = distribution.interval(0.95)
    shown, scale = ("{:.2g}", 1.0) if relative is None else ("{:.2g}%", 100.0)
    after = f"After {rounds} round{'' if rounds == 1 else 's'} the fit is"
    if rounded:
        most = shown.format(scale * high)
        return f"{after} exact least squares up to rounding: it loses at most {most} in squared loss."
    amount = shown.format(scale * (excess if relative is None else relative))
    ends = f"(95% interval: {shown.format(scale * low)} to {shown.format(scale * high)})"
    about = "" if exact else "about "
    return f"{after} estimated to lose {about}{amount} in squared loss against exact least squares {ends}."


def law_is_exact(known: TargetStart) -> bool:
    """Whether the law of the rounds holds exactly: one Gaussian sketch of all rows."""
    return len(known.fit.sizes) == 1 and not bool((known.fit.sampling < 1).any())


def _inference(
    base: Inference, start: Preconditioner, number: int, raw: FloatArray, certificate: Certificate, law: RoundLaw
) -> Inference:
    """Return standard errors: the noise of the rows, and what is left to exact least squares, by the sketched Gram."""
    known, columns = start.by_target[number], len(start.columns)
    freedom = max(known.rows - columns + 1, 1.0)
    # For a fixed direction c, c′G⁻¹c is c′A⁻¹c times a chi-square of so many degrees of freedom, divided by M.
    inverse = known.fit.pooled.inverse_gram * (freedom / known.rows)
    left = (certificate.excess_loss or 0.0) / columns
    noise = certificate.noise_variance
    around = _around_exact(start, number, raw, inverse * left, min(freedom, law.freedom))
    if noise is None:
        return replace(base, around_exact=around)
    rows = max(known.fit.row_count - columns, 1)
    of_truth = CoefficientCovariance(inverse * (noise + left), 1 / (1 / freedom + 1 / rows), noise)
    try:
        matrix = raw_covariance(of_truth, start.regression, number)
    except InputError as error:
        return replace(
            base,
            standard_errors=None,
            degrees_of_freedom=None,
            covariance=None,
            level_covariance=None,
            covariance_root=None,
            reason=str(error).rstrip("."),
            around_exact=around,
        )
    if not np.isfinite(matrix).all():
        return replace(base, around_exact=around)
    errors = np.sqrt(np.diagonal(matrix))
    return replace(
        base,
        standard_errors=errors,
        degrees_of_freedom=of_truth.degrees_of_freedom,
        noise_variance=restored_variance(noise, start.regression, number),
        covariance=held_covariance(matrix, errors) if columns <= MOST_COLUMNS_WITH_COVARIANCE else None,
        level_covariance=level_covariance(of_truth, start.regression, number),
        covariance_root=None,
        reason="",
        around_exact=around,
    )


def _around_exact(
    start: Preconditioner, number: int, raw: FloatArray, matrix: FloatArray, freedom: float
) -> AroundExact:
    try:
        covariance = raw_covariance(CoefficientCovariance(matrix, freedom, float("nan")), start.regression, number)
    except InputError as error:
        return AroundExact(raw, None, None, None, "", str(error).rstrip("."))
    if not np.isfinite(covariance).all():
        return AroundExact(raw, None, None, None, "", "columns are too unlike in size for doubles")
    errors = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    kept = held_covariance(covariance, errors) if len(covariance) <= MOST_COLUMNS_WITH_COVARIANCE else None
    basis = "approximate: what is left after the rounds points to no direction in particular"
    return AroundExact(raw, errors, freedom if errors.any() else None, kept, basis, "")
