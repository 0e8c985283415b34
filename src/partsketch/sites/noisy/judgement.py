"""What is known of a fit to noisy sums of products: its loss, its errors, and how it came about."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.model.around_exact import AroundExact
from partsketch.model.build import library_versions
from partsketch.model.certificate import Certificate, percentage
from partsketch.model.inference import EXACT_FIT, Inference
from partsketch.model.methods import METHODS, NOISY
from partsketch.model.record import PartitionRecord, Record
from partsketch.sites.agreement import stay_at_home
from partsketch.sites.noisy.doubts import cautions, doubt, tells_loss
from partsketch.sites.noisy.inverted import inverted_intervals
from partsketch.sites.noisy.pool import Pool
from partsketch.theory.confidence import ConfidenceDistribution
from partsketch.theory.noisy_products import EDGE, NoisyFit, excess_distribution

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NoisyRegression:
    """Which columns of a pool are regressed on which.

    With the ones, columns are taken as the pool measures them; without, as they are: what was taken off is put back.
    """

    pooled: Pool
    features: tuple[str, ...]
    targets: tuple[str, ...]
    with_ones: bool

    def places(self, names: Sequence[str]) -> list[int]:
        """Return the numbers of columns in the pool."""
        return [self.pooled.first.columns.index(name) for name in names]

    @property
    def lines(self) -> FloatArray:
        """The features, the ones first if they are in, in the coordinates of the pool."""
        lines = [self.target_line(name) for name in self.features]
        ones = np.zeros(len(self.pooled.first.columns))
        ones[0] = 1.0
        return np.stack([ones, *lines] if self.with_ones else lines)

    def target_line(self, name: str) -> FloatArray:
        """Return a column in the coordinates of the pool."""
        (place,) = self.places([name])
        line = np.zeros(len(self.pooled.first.columns))
        line[place] = 1.0 if self.with_ones else self.pooled.unit[place - 1]
        line[0] = 0.0 if self.with_ones else self.pooled.centre[place - 1]
        return line

    def unit(self, name: str) -> float:
        """Return the unit in which a target was fitted."""
        return float(self.pooled.unit[self.places([name])[0] - 1]) if self.with_ones else 1.0

    def transformation(self, name: str, around_centre: bool) -> FloatArray:
        """Return what coefficients of a target are multiplied with to be those of columns as they are.

        Around the centre, the first is the value there; else it is the intercept.
        """
        if not self.with_ones:
            return np.eye(len(self.features))
        places = [place - 1 for place in self.places(self.features)]
        units = np.concatenate([[1.0], self.pooled.unit[places]])
        matrix = np.diag(self.unit(name) / units)
        if not around_centre:
            matrix[0] -= self.pooled.centre[places] @ matrix[1:]
        return matrix

    def restored(self, name: str, coefficients: FloatArray, around_centre: bool) -> FloatArray:
        """Return coefficients of columns as they are, or the value at the centre and the slopes."""
        restored = self.transformation(name, around_centre) @ coefficients
        if self.with_ones:
            restored[0] += self.pooled.centre[self.places([name])[0] - 1]
        return np.asarray(restored)

    @property
    def rows(self) -> int:
        """About how many rows there are."""
        return max(1, round(float(self.pooled.products[0, 0])))

    def noise_variance(self, fit: NoisyFit) -> float:
        """Return the variance of what the features leave of a target, zero where the noise hides it."""
        return max(fit.minimal_loss, 0.0) / max(self.rows - len(self.lines), 1)


def certify(regression: NoisyRegression, name: str, fit: NoisyFit) -> Certificate:
    """Return what privacy cost: the loss above least squares on the same rows without noise."""
    square = regression.unit(name) ** 2
    why = doubt(fit)
    known = not why
    told = known and tells_loss(fit)
    excess = fit.excess_loss * square
    relative = fit.excess_loss / fit.minimal_loss if told else None
    confidence = excess_distribution(fit.excess_weights * square) if known else None
    share = None
    if relative is not None:
        # The loss that it is divided by has noise of its own: a mean square with that variance to first order.
        below = 2 * (fit.minimal_loss / fit.loss_deviation) ** 2 if fit.loss_deviation > 0 else math.inf
        share = excess_distribution(fit.excess_weights / fit.minimal_loss, below)
    return Certificate(
        kind="approximate" if known else "unavailable",
        excess_loss=excess if known else None,
        standard_error=math.sqrt(2 * float(fit.excess_weights @ fit.excess_weights)) * square if known else None,
        relative_excess_loss=relative,
        minimal_loss=fit.minimal_loss * square if told else None,
        divergence=None,
        noise_variance=regression.noise_variance(fit) * square if told else None,
        heterogeneity=None,
        reason=why or "the law of the noise is known, and used to first order",
        sentence=_sentence(excess, relative, share or confidence, why),
        confidence=confidence,
        relative_confidence=share,
    )


def _sentence(excess: float, relative: float | None, known: ConfidenceDistribution | None, why: str) -> str:
    if known is None:
        return f"Nothing can be said of what privacy cost: {why}."
    low, high = known.interval(0.95)
    if relative is None:
        return (
            f"Privacy cost about {excess:.4g} in squared loss against least squares without noise (95% interval: "
            f"{low:.4g} to {high:.4g}); the noise hides how much of the minimal loss that is."
        )
    return (
        f"Privacy cost about {percentage(relative)} in squared loss against least squares without noise (95% interval: "
        f"{percentage(low)} to {percentage(high)})."
    )


def infer(regression: NoisyRegression, name: str, fit: NoisyFit, coefficients: FloatArray) -> Inference:
    """Return what is known of the coefficients of a target."""
    why = doubt(fit)
    variance, square = regression.noise_variance(fit), regression.unit(name) ** 2
    whole = fit.covariance + variance * fit.inverse
    matrix = regression.transformation(name, around_centre=False)
    covariance, of_noise = (_symmetric(matrix @ part @ matrix.T) for part in (whole, fit.covariance))
    around_centre = regression.transformation(name, around_centre=True)
    freedom = float(max(regression.rows - len(regression.lines), 1))
    told = tells_loss(fit) and not why
    return Inference(
        standard_errors=None if why else np.sqrt(np.diagonal(covariance)),
        degrees_of_freedom=None if why else freedom,
        noise_variance=variance * square if told else None,
        spread_standard_errors=None,
        spread_degrees_of_freedom=None,
        r_squared=_r_squared(regression, name, fit) if told else None,
        is_estimated=True,
        reason=why,
        noise_variance_of=EXACT_FIT,
        r_squared_of=EXACT_FIT,
        covariance=None if why else covariance,
        around_exact=AroundExact(
            coefficients,
            None if why else np.sqrt(np.diagonal(of_noise)),
            None if why else freedom,
            None if why else of_noise,
            "" if why else "the law of the noise is known; they are for the rows as they were bounded and clipped",
            why,
        ),
        level_covariance=(None if why or not regression.with_ones else (around_centre @ whole @ around_centre.T)[0]),
        inverted=inverted_intervals(regression, name, fit, coefficients),
    )


def _symmetric(matrix: FloatArray) -> FloatArray:
    return np.asarray((matrix + matrix.T) / 2)


def _r_squared(regression: NoisyRegression, name: str, fit: NoisyFit) -> float | None:
    line, products = regression.target_line(name), regression.pooled.products
    total = float(line @ products @ line)
    if regression.with_ones:
        total -= float(products[0] @ line) ** 2 / float(products[0, 0])
    share = 1 - fit.minimal_loss / total if total > 0 else -1.0
    return share if 0 <= share <= 1 else None


def record_of(regression: NoisyRegression, fits: Sequence[NoisyFit]) -> Record:
    """Return how the coefficients came about."""
    pooled = regression.pooled
    named = [*pooled.noisy, *pooled.exact]
    partitions = [PartitionRecord(summary.name, summary.row_count, None, None) for _, summary in pooled.noisy] + [
        PartitionRecord(summary.parts[0].name, summary.row_count, None, None) for _, summary in pooled.exact
    ]
    count = len(named)
    return Record(
        options={
            "method": NOISY,
            "fit_intercept": regression.with_ones,
            "sketch": "noisy_products",
            "files": [_told(name, summary) for name, summary in named],
        },
        seed=None,
        sketch_size=None,
        row_count=sum(known.row_count for known in partitions),
        weight_sum=float(sum(known.row_count for known in partitions)),
        rows_dropped=0,
        rows_left_out=0,
        rank=len(regression.lines),
        condition=None,
        tolerance=EDGE,
        aliased=(),
        partitions=tuple(partitions),
        reasons={
            "method": f"method={NOISY!r}: {METHODS[NOISY].description}",
            "rows": "the model was made from files with a promise; no rows were read",
            "repair": "eigenvalues of the Gram matrix below the edge of the noise, 2 deviations of an entry times the "
            f"root of the number of columns, are raised to it: {max(fit.repaired for fit in fits)} were",
        },
        warnings=tuple(_warnings(regression, fits)),
        versions=library_versions(),
        data=f"{count} sketch file{'' if count == 1 else 's'}",
    )


def _told(name: str, summary: Any) -> dict[str, Any]:
    promise = getattr(summary, "promise", None)
    told = {"file": name, "rows": summary.row_count, "private": promise is not None}
    if promise is None:
        return {**told, "sketch": summary.kind}
    return {**told, "sketch": "noisy_products", "epsilon": promise.epsilon, "delta": promise.delta}


def _warnings(regression: NoisyRegression, fits: Sequence[NoisyFit]) -> list[str]:
    first = regression.pooled.first
    found = [
        f"{name}: {why}." if len(fits) > 1 else f"{why[0].upper()}{why[1:]}."
        for name, fit in zip(regression.targets, fits, strict=True)
        if (why := doubt(fit))
    ]
    found += list(dict.fromkeys(sentence for fit in fits for sentence in cautions(fit)))
    found += stay_at_home(regression.pooled.exact, others=True)
    meant = set(first.about.targets)
    other = [name for name in regression.targets if name not in meant]
    if other and first.clips:
        found.append(
            f"Rows were clipped by their values of {other[0]!r}, which was not named as a target when the files were "
            "made: coefficients are those of the clipped rows, and may be biased."
        )
    return found
