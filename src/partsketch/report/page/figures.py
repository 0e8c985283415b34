"""The figures of a report: excess loss over k and over m, divergences, residuals; each with its words and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from partsketch.model.assumptions import fits_without_residuals
from partsketch.model.outlook import LossPoint
from partsketch.report.charts.heat_map import heat_map
from partsketch.report.charts.plots import Line, Mark, line_chart, point_chart
from partsketch.report.charts.scales import ROUNDING, percent, short
from partsketch.report.page.entry import Entry

_METHODS = ("whole", "partition", "stack", "average")
_CURVES = {
    "whole": "average of sketches of all rows (whole)",
    "partition": "average of sketches of partitions (partition)",
    "stack": "stacked sketches of partitions (stack)",
    "average": "average of exact fits of partitions (average)",
}
_BASES = {
    "exact": "from the exact summaries, neighbouring partitions merged",
    "estimated": "estimated from the sketches, neighbouring partitions merged",
    "extrapolated": "extrapolated to more partitions than there are",
    "assumed": "as if rows were Gaussian and dealt out at random",
}


@dataclass(frozen=True)
class Figure:
    """A picture, its words, and its numbers as a table (head and rows) for those who cannot or need not see it."""

    title: str
    picture: str
    words: str
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def loss_figures(entry: Entry, number: int) -> list[Figure]:
    """Return excess loss against k and against m for one target; nothing when the outlook is empty."""
    outlook = entry.model.outlook
    if not outlook.targets:
        return []
    curves = outlook.targets[number]
    record = entry.model.record
    by_k, by_m = curves.over_partitions, curves.over_sizes
    chosen_k, chosen_m = by_m[0].partitions, by_k[0].sketch_size
    is_sketched = record.sketch_size is not None
    m_words = f"{chosen_m:,} sketch rows" + ("" if is_sketched else ", the size that would be chosen")
    figures = [
        _losses(entry, number, by_k, "partitions", "number of partitions (k)", f"with {m_words}", chosen_k),
        _losses(entry, number, by_m, "sketch_size", "sketch rows (m)", f"with {chosen_k:,} partitions", chosen_m),
    ]
    return [figure for figure in figures if figure is not None]


def _losses(
    entry: Entry, number: int, points: Sequence[LossPoint], axis: str, axis_name: str, where: str, chosen: int
) -> Figure | None:
    """Return the losses over one axis; nothing if no method loses anything."""
    certificate = entry.model.certificates[number]
    least = certificate.minimal_loss or 0.0
    unit = least if least > 0 else 1.0
    text = percent if least > 0 else short

    def share(point: LossPoint, method: str) -> float | None:
        value = getattr(point, method)
        return None if value is None else value / unit

    border = max((getattr(p, axis) for p in points if p.basis in ("exact", "estimated")), default=None)
    lines = []
    for colour, method in enumerate(_METHODS, start=1):
        pairs = [(float(getattr(p, axis)), share(p, method)) for p in points]
        shown = tuple((x, y) for x, y in pairs if y is not None and y > ROUNDING)
        guessed = border if axis == "partitions" and method in ("partition", "average") else None
        lines.append(Line(_CURVES[method], shown, colour, guessed))
    if not any(line.points for line in lines):
        return None
    own = None if certificate.excess_loss is None else certificate.excess_loss / unit
    colour = _METHODS.index(entry.model.method) + 1 if entry.model.method in _METHODS else 5
    # Exact least squares has neither k nor m: the line is where a sketched fit would be unless told otherwise.
    marked = f"this fit ({entry.model.method})" if entry.model.method != "exact" else "usual choice"
    mark = Mark(marked, float(chosen), own if own and own > ROUNDING else None, colour)
    title = f"Excess loss against {axis_name}"
    bases = list(dict.fromkeys(_BASES[p.basis] for p in points))
    words = (
        f"Expected excess loss {'as a share of the minimal loss ' if least > 0 else ''}{where}. "
        f"Averages of partitions: {'; '.join(bases)}{' (dashed)' if len(bases) > 1 else ''}. "
        f"Exact least squares loses nothing. The vertical line marks {marked.replace('usual', 'the usual')}."
    )
    head = ("k" if axis == "partitions" else "m", *_METHODS)
    rows = tuple(
        (f"{getattr(p, axis):,}", *("–" if share(p, m) is None else text(share(p, m) or 0.0) for m in _METHODS))
        for p in points
    )
    picture = line_chart(lines, [mark], f"{title}, {where}", axis_name, "excess loss", text)
    return Figure(title, picture, words, head, rows)


def divergence_figure(entry: Entry) -> Figure | None:
    """Return the heat map of divergences between partitions, per row and column; None when they are unknown."""
    outlook, partitions = entry.model.outlook, entry.model.record.partitions
    if outlook.divergences is None:
        return None
    rows = np.array([max(part.row_count, 1) for part in partitions], dtype=np.float64)
    matrix = np.array(outlook.divergences)
    # A partition with more rows has a larger Gram matrix; per row and per column, 1 means "alike".
    ratios = matrix * rows[None, :] / rows[:, None] / np.maximum(np.diag(matrix), 1.0)[None, :]
    names = [f"{number}: {part.name}" for number, part in enumerate(partitions, start=1)]
    oddest = int(np.argmax(ratios.mean(axis=0) + ratios.mean(axis=1)))
    known = "exact" if outlook.divergences_are_exact else "estimated from the sketches"
    words = (
        "How large the rows of one partition (down) look in the metric of another (across): "
        f"the trace of Gᵢ Gⱼ⁻¹ per row and column, {known}; 1 means alike. "
        f"The most unlike the others is partition {names[oddest]}."
    )
    head = ("", *(str(number + 1) for number in range(len(names))))
    table = tuple((name, *(short(value) for value in row)) for name, row in zip(names, ratios, strict=True))
    title = f"Divergence between {len(names)} partitions"
    return Figure("How unlike partitions are", heat_map(ratios.tolist(), names, title), words, head, table)


def residual_figures(entry: Entry, number: int) -> list[Figure]:
    """Return residuals against fitted values, against normal quantiles, and along the rows."""
    sample = entry.residuals
    if sample is None or fits_without_residuals(entry.model, number):
        return []
    residuals, fitted = sample.residuals[:, number], sample.fitted[:, number]
    scale = float(residuals.std()) or 1.0
    count = len(residuals)
    normal = NormalDist()
    quantiles = [normal.inv_cdf((i + 0.5) / count) for i in range(count)]
    beyond = float(np.mean(np.abs(residuals) > 3 * scale))
    halves = [residuals[fitted <= np.median(fitted)], residuals[fitted > np.median(fitted)]]
    spreads = [float(half.std()) if len(half) else 0.0 for half in halves]
    ordered = np.sort(residuals)
    ends = [(quantiles[0], quantiles[0] * scale), (quantiles[-1], quantiles[-1] * scale)]
    numbers = sample.row_numbers.astype(float)
    return [
        Figure(
            "Residuals against fitted values",
            point_chart(
                list(zip(fitted.tolist(), residuals.tolist(), strict=True)),
                "Residuals against fitted values",
                "fitted value",
                "residual",
                [(float(fitted.min()), 0.0), (float(fitted.max()), 0.0)],
            ),
            f"Standard deviation {short(spreads[0])} in the lower half of the fitted values, {short(spreads[1])} in "
            "the upper: a fan or a bend here means noise of uneven size, or a curve that a line cannot follow.",
        ),
        Figure(
            "Residuals against the normal distribution",
            point_chart(
                list(zip(quantiles, ordered.tolist(), strict=True)),
                "Ordered residuals against quantiles of the normal distribution",
                "quantile of the normal distribution",
                "residual",
                ends,
            ),
            f"{percent(beyond)} of the residuals lie more than three standard deviations from zero; normal noise has "
            "0.27%. Heavy tails widen the true intervals.",
        ),
        Figure(
            "Residuals along the rows",
            point_chart(
                list(zip(numbers.tolist(), residuals.tolist(), strict=True)),
                "Residuals in the order of the rows",
                "row number",
                "residual",
                [(float(numbers.min()), 0.0), (float(numbers.max()), 0.0)],
            ),
            f"{count:,} rows: {sample.how}. A drift here means that partitions made by order differ.",
        ),
    ]
