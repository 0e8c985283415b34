"""What a fit explains: its residual variance and R², exact or from the sketches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.solve import solve_least_squares
from partsketch.model.methods import METHODS
from partsketch.model.regression import Combination, Regression
from partsketch.summaries.summary import Summary

if TYPE_CHECKING:
    from partsketch.model.certificate import Certificate

FloatArray = NDArray[np.float64]


def of_averaged_fit(
    summaries: Sequence[Summary], regression: Regression, number: int, certificate: Certificate, sketched: bool
) -> tuple[float | None, float | None]:
    """Return the residual variance and R² of the averaged fit itself, whose loss the certificate knows."""
    if certificate.excess_loss is None or certificate.minimal_loss is None:
        return None, None
    loss = certificate.minimal_loss + certificate.excess_loss
    rows, columns = sum(summary.row_count for summary in summaries), len(regression.features)
    variance = loss / (rows - columns) if rows > columns else None
    total = _residual_sum(summaries, regression.features[: regression.free_columns], regression.targets[number])
    if sketched:
        size = sum(summary.height for summary in summaries)
        total *= size / (size - regression.free_columns)
    return variance, 1.0 - loss / total if 0 < total < np.inf else None


def explained_of(options: Mapping[str, Any]) -> str:
    """Say of which sum of squares R² is a share, where that is not the one around the mean: with a space before it."""
    intercept = options.get("intercept", "common" if options.get("fit_intercept", True) else False)
    if options.get("absorb") is not None or intercept == "partition":
        return " within"
    return "" if intercept else " around zero"


def known_r_squared(combination: Combination, number: int) -> float | None:
    """Return 1 − ℓ/(total sum of squares) of a fit that computed both, else None."""
    solution = combination.solutions[0]
    if solution.total_sums is None:
        return None
    total = float(solution.total_sums[number])
    return 1.0 - float(solution.residual_sums[number]) / total if 0 < total < np.inf else None


def estimated_r_squared(
    method: str,
    summaries: Sequence[Summary],
    combination: Combination,
    regression: Regression,
    number: int,
    noise: float,
) -> float | None:
    """Return 1 − ℓ/(total sum of squares), both exact or both estimated from the sketches without bias."""
    features, target, free_columns = regression.features, regression.targets[number], regression.free_columns
    total = _residual_sum(summaries, features[:free_columns], target)
    if METHODS[method].sketched:
        # Sketches of the whole are k looks at the same rows: their mean counts the rows once.
        looks = len(summaries) if method == "whole" else 1
        size = sum(summary.height for summary in summaries)
        total *= size / (size - free_columns) / looks
        rows = sum(summary.row_count for summary in summaries) / looks
        loss = noise * (rows - len(features))
    else:
        loss = float(combination.solutions[0].residual_sums[number])
    return 1.0 - loss / total if 0 < total < np.inf else None


def _residual_sum(summaries: Sequence[Summary], features: tuple[str, ...], target: str) -> float:
    """Return the residual sum of squares of the target on these features, from all summaries stacked."""
    rows = np.vstack([_rows((*features, target), summary) for summary in summaries])
    if not features:
        return float(rows[:, 0] @ rows[:, 0])
    if len(features) == 1 and rows[0, 0] and not rows[1:, 0].any():
        # Of a triangle the first column explains the first row, and no other.
        return float(rows[1:, 1] @ rows[1:, 1])
    return float(solve_least_squares(rows, features).residual_sums[0])


def _rows(columns: tuple[str, ...], summary: Summary) -> FloatArray:
    """Return rows with the same sums of products of these columns: few, where the triangle has been made."""
    triangle: FloatArray | None = vars(summary).get("triangle")
    return summary.select(columns) if triangle is None else triangle[:, summary.places(columns)]


def is_rounding(loss: float, summaries: Sequence[Summary], regression: Regression, number: int) -> bool:
    """Tell whether a residual sum of squares is what rounding the target to doubles leaves: one step of each value."""
    if not summaries or regression.coordinates is None:
        return loss == 0
    place = regression.coordinates.features + number
    column = summaries[0].matrix[:, place]
    middle = regression.coordinates.centre[place] / regression.coordinates.unit[place]
    with np.errstate(over="ignore"):
        squares = float(column @ column + summaries[0].weight_sum * middle**2)
    return np.isfinite(squares) and loss <= float(np.finfo(np.float64).eps) ** 2 * squares
