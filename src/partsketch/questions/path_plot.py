"""A path of penalties on the terminal: the cross-validated error against the penalty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from partsketch.questions.paths import Path

_WIDTH, _HEIGHT = 60, 12


def plotted(path: Path) -> str:
    """Return the error of a path as a figure of text, the largest penalty on the left, and what was chosen below."""
    errors, alphas = path.cv_errors, path.alphas
    places = np.linspace(0, len(alphas) - 1, min(_WIDTH, len(alphas))).round().astype(int)
    best, simple = (int(np.argmin(np.abs(alphas - a))) for a in (path.best_alpha, path.one_standard_error_alpha))
    low, high = float(errors.min()), float(errors.max())
    span = (high - low) or 1.0
    rows = [[" "] * len(places) for _ in range(_HEIGHT)]
    for column, place in enumerate(places):
        height = round((errors[place] - low) / span * (_HEIGHT - 1))
        rows[_HEIGHT - 1 - height][column] = "·"
    for place, sign in ((simple, "s"), (best, "b")):
        column = int(np.argmin(np.abs(places - place)))
        height = round((errors[places[column]] - low) / span * (_HEIGHT - 1))
        rows[_HEIGHT - 1 - height][column] = sign
    labels = [f"{high:.4g}", *[""] * (_HEIGHT - 2), f"{low:.4g}"]
    lines = [f"{path.kind} path of {path.target}: mean squared error over {path.fold_errors.shape[1]} folds"]
    lines += [f"{label:>10} │{''.join(row)}" for label, row in zip(labels, rows, strict=True)]
    lines.append(f"{'':>10} └{'─' * len(places)}")
    lines.append(f"{'':>11} alpha {alphas[0]:.3g} to {alphas[-1]:.3g}")
    for sign, name, place in (("b", "best", best), ("s", "one standard error", simple)):
        used = int(np.count_nonzero(path.coefficients[place]))
        lines.append(
            f"{sign} {name}: alpha {alphas[place]:.4g}, error {errors[place]:.5g} ± "
            f"{path.cv_standard_errors[place]:.2g}, {used} of {len(path.feature_names)} features"
        )
    return "\n".join(lines)
