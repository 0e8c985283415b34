"""Least squares of every partition alone, with standard errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.solve import solve_least_squares
from partsketch.questions.fit import Question

if TYPE_CHECKING:
    from partsketch.questions.summaries import Summaries

FloatArray = NDArray[np.float64]

#: Residuals below this part of the target's spread are rounding.
_NOTHING_LEFT = 1e-12


def site_fits(
    summaries: Summaries, question: Question
) -> tuple[dict[int, tuple[FloatArray, FloatArray]], dict[str, str]]:
    """Return coefficients and standard errors of each partition alone, and why others have none."""
    panel, regression = question.panel, question.regression
    coordinates = regression.coordinates
    assert coordinates is not None
    columns, width = panel.places(regression.features + regression.targets), len(regression.features)
    back = coordinates.transformation(0)
    fits, reasons = {}, {}
    for place, name in enumerate(summaries.names):
        low = None if panel.low is None else panel.low[place][:, columns]
        rows = panel.high[place][:, columns]
        solution = solve_least_squares(rows, regression.features, 1, regression.free_columns, low=low)
        freedom = int(panel.row_counts[place]) - width
        spread = float(np.linalg.norm(rows[:, -1]))
        if freedom <= 0:
            reasons[name] = f"{panel.row_counts[place]} rows for {width} coefficients"
        elif solution.rank < width:
            reasons[name] = f"{solution.aliased[0].column!r} adds nothing to the columns before it there"
        elif np.sqrt(float(solution.residual_sums[0])) <= _NOTHING_LEFT * spread:
            reasons[name] = "its fit leaves no residuals, and so tells no error"
        else:
            root = back @ solution.inverse_root * np.sqrt(float(solution.residual_sums[0]) / freedom)
            errors = np.sqrt(np.einsum("ij,ij->i", root, root))
            fits[place] = (coordinates.coefficients(solution.coefficients)[:, 0], errors)
    return fits, reasons
