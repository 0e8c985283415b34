"""The figures of the study: how each is drawn, what its caption says, and what a reader who cannot see it is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from partsketch.paper.drawing import save, style
from partsketch.paper.drawing_losses import draw_heat_maps, draw_losses
from partsketch.paper.drawing_theory import draw_bound, draw_divergence, draw_gap, draw_theorem
from partsketch.paper.drawing_times import draw_hadamard, draw_times
from partsketch.paper.steps import SHARED_UNITS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from partsketch.paper.study import Study


@dataclass(frozen=True)
class FigureKind:
    """A figure: its drawing (study, wide or narrow), its caption and its description in words."""

    draw: Callable[[Study, bool], Figure]
    caption: str
    description: str


@dataclass(frozen=True)
class Picture:
    """A drawn figure: SVG for a wide and for a narrow page, and PNG."""

    name: str
    wide_svg: bytes
    narrow_svg: bytes
    png: bytes


_LOSS_CAPTION = (
    "Lines are expectations given the data: exact for β̄, θ̄ and ᾱ, an approximation (dotted) for the stacked fit. "
    "Filled marks with bars are the median and quartiles of fits on explicit Gaussian sketches (on orthogonal ones "
    "where that is said), crosses their means. Weights by data are those of weighting='auto'. The least of unbiased "
    "fits is the bound for these orthogonal sketches, as if partitions shared coefficients and noise. "
    "Where m ≤ rank + 3 the variance of the loss is infinite, so means of draws scatter and usually lie below the "
    "line, which rare large losses hold up. Exact least squares loses nothing: it is the zero at the bottom."
)

FIGURES: dict[str, FigureKind] = {
    "figure-1": FigureKind(
        partial(draw_losses, step="figure-1"),
        "The paper's Figure 1 with further curves: default order, m = d + 2, no intercept, even partitions. "
        + _LOSS_CAPTION,
        "Excess loss against the number of partitions for each data set; one curve per estimator.",
    ),
    "figure-1-shuffled": FigureKind(
        partial(draw_losses, step="figure-1-shuffled"),
        "The same rows in a random order. The law of β̄ does not depend on the order, so it is not drawn again. "
        + _LOSS_CAPTION,
        "Excess loss against the number of partitions for each data set after shuffling the rows.",
    ),
    "figure-1-larger": FigureKind(
        partial(draw_losses, step="figure-1-larger"),
        "Default order with sketches of m = 2d rows, where all variances are finite: means of draws lie on the curves. "
        + _LOSS_CAPTION,
        "Excess loss against the number of partitions for each data set with sketches of 2d rows.",
    ),
    "figure-2": FigureKind(
        draw_times,
        "Processor time of one thread to build one estimator: generation and application of the sketch, and the fit. "
        "Marks are medians with quartiles. Both axes are logarithmic, so a power of k is a straight line (the paper's "
        "logarithmic y axis alone would make an exponential straight). OLS on all rows and β̂ᵢ do not depend on k.",
        "Time against the number of partitions for each data set; one curve per estimator.",
    ),
    "figure-3": FigureKind(
        draw_hadamard,
        "Appendix C: rows of Digits drawn at random; a randomised Hadamard transform (padded to a power of two, fast "
        "transform in NumPy) in place of the Gaussian sketch for β̂ᵢ, and θ̂ᵢ against k. The last panel goes on to "
        "larger n, where rows are repeated, which does not matter to a clock.",
        "Time against k at three numbers of rows, and time against n for Gaussian and Hadamard sketches.",
    ),
    "figure-4": FigureKind(
        draw_theorem,
        "B_β (Remark 3.2) and B_θ (Theorem 3.3) against averages in which noise and sketches are drawn afresh, "
        "n = 480, d = 5, centred exponential noise of variance 1.",
        "Expected excess loss against k for several sketch sizes, formula and averages, and their distance.",
    ),
    "figure-5": FigureKind(
        draw_divergence,
        "D/d against k with the expectation of Remark 3.4 for Gaussian rows (black); on House in both orders, with and "
        "without its 20 rows of highest leverage; and the average Burg divergence, which equals D − d because the log "
        "determinants of all pairs cancel.",
        "Divergence against k on synthetic rows and on House, and Burg divergence against D minus d.",
    ),
    "figure-6": FigureKind(
        draw_gap,
        "The gap between β̄ and θ̄. The paper's F multiplies its first term by k where B_β divides by k. With the right "
        "term the gap is never positive for Gaussian rows and only widens. On the data sets it is computed exactly "
        "given the data.",
        "Gap against k as printed, as corrected with simulated means, and on the data sets.",
    ),
    "figure-7": FigureKind(
        draw_bound,
        "The bound B'_θ of Remark 3.5 beside B_θ and quantiles over explicit sketches of the out-of-sample excess loss "
        "expected over the noise; and the ratio of the two formulas as m/d and p/m grow.",
        "Bound, expectation and quantiles against the sketch size, and the ratio of bound and expectation.",
    ),
    "figure-8": FigureKind(
        draw_heat_maps,
        "D_ij = tr(Gᵢ Gⱼ⁺) of ten partitions, divided by the rank of Gⱼ. A bright column is a partition that lacks a "
        "direction the others have; a bright row is a partition with rows of extreme leverage. Where Gⱼ is singular "
        "its pseudo-inverse is used.",
        "Heat maps of the divergence between all pairs of ten partitions, default and shuffled order.",
    ),
}


def available_figures(study: Study) -> list[str]:
    """Return the names of the chosen figures whose units were run."""
    return [name for name in FIGURES if name in study.chosen and study.units(SHARED_UNITS.get(name, name))]


def draw_figure(study: Study, name: str) -> Picture:
    """Draw one figure in both layouts."""
    with style():
        wide = FIGURES[name].draw(study, True)
        narrow = FIGURES[name].draw(study, False)
        return Picture(name, save(wide, "svg"), save(narrow, "svg"), save(wide, "png"))
