"""How every figure looks: colours that colour-blind readers can tell apart, one font, two layouts, two formats."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from partsketch.common.errors import InputError
from partsketch.paper.results import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from partsketch.paper.study import Study

    Drawing = Callable[[Study, bool], Figure]

#: Okabe and Ito's palette: distinct under every common kind of colour blindness.
BLUE, ORANGE, GREEN, PURPLE, SKY, AMBER, BLACK, GREY = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#AA4488",
    "#56B4E9",
    "#E69F00",
    "#000000",
    "#6b6b6b",
)

#: Estimators look the same in every figure.
STYLES: dict[str, dict[str, Any]] = {
    "whole": {"color": BLUE, "marker": "s"},
    "partition": {"color": ORANGE, "marker": "o"},
    "stack": {"color": GREEN, "marker": "D"},
    "weighted": {"color": SKY, "marker": "v"},
    "orthogonal": {"color": AMBER, "marker": "P"},
    "bound": {"color": GREY, "marker": None},
    "average": {"color": PURPLE, "marker": "^"},
    "exact": {"color": BLACK, "marker": None},
}
LABELS = {
    "whole": "β̄ sketches of all rows",
    "partition": "θ̄ sketches of partitions",
    "stack": "stacked sketches, one fit",
    "weighted": "stacked, weights by data",
    "orthogonal": "the same, orthogonal",
    "bound": "least of unbiased fits",
    "average": "ᾱ no sketch, averaged",
    "exact": "exact OLS (zero)",
}


def require_matplotlib() -> None:
    """Refuse in one sentence when the drawing library is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise InputError(
            'The figures need matplotlib, which is not installed: run pip install "partsketch[report]".'
        ) from error


def style() -> AbstractContextManager[None]:
    """Return the settings in which every figure is drawn and saved."""
    import matplotlib as library

    return cast(
        "AbstractContextManager[None]",
        library.rc_context(
            {
                "font.family": "DejaVu Sans",
                "font.size": 9,
                "axes.titlesize": 10,
                "axes.labelsize": 9,
                "axes.spines.top": False,
                "axes.spines.right": False,
                "axes.grid": True,
                "grid.color": "#e3e3e3",
                "grid.linewidth": 0.6,
                "lines.linewidth": 1.6,
                "lines.markersize": 4.5,
                "legend.frameon": False,
                "legend.fontsize": 8.5,
                "svg.fonttype": "path",
                # The same numbers give the same file.
                "svg.hashsalt": "partsketch",
                "figure.facecolor": "white",
            }
        ),
    )


def panels(
    count: int, wide: bool, columns: int = 3, height: float = 3.1, narrow_columns: int = 1
) -> tuple[Figure, list[Axes]]:
    """Return a figure of panels: side by side on a wide page, below one another on a narrow one."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    across = min(columns if wide else narrow_columns, count)
    down = math.ceil(count / across)
    legend = 0.45 if wide else 1.0
    size = (11.0 if wide else 4.4, height * down + legend)
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(down, across, squeeze=False)
    axes = [cast("Axes", axis) for axis in np.asarray(grid).ravel()]
    for axis in axes[count:]:
        axis.set_visible(False)
    return figure, axes[:count]


def shared_legend(figure: Figure, axes: Sequence[Axes], wide: bool, columns: int = 5) -> None:
    """Put one legend above all panels, each label once."""
    found: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    # A narrow page has room for two short labels side by side, or for one long one.
    beside = 2 if max(len(label) for label in found) <= 27 else 1
    figure.legend(found.values(), found.keys(), loc="outside upper center", ncols=columns if wide else beside)


def partition_axis(axis: Axes, counts: Iterable[int], label: str = "partitions k") -> None:
    """Logarithmic axis of k with a tick at (almost) every value that was used."""
    ticks: list[int] = []
    for count in sorted(set(counts)):
        # Labels closer than a factor of 1.35 would touch one another.
        if not ticks or count / ticks[-1] > 1.35:
            ticks.append(count)
    axis.set_xscale("log")
    axis.set_xticks(ticks, [str(tick) for tick in ticks])
    axis.set_xticks([], minor=True)
    axis.set_xlabel(label)


def loss_axis(axis: Axes, values: Sequence[float]) -> None:
    """Logarithmic axis of losses that ends in zero, where exact least squares is."""
    positive = [value for value in values if value > 0]
    lowest = 10.0 ** math.floor(math.log10(min(positive)))
    highest = 10.0 ** math.ceil(math.log10(max(positive)) + 0.05)
    axis.set_yscale("symlog", linthresh=lowest, linscale=0.6)
    exponents = range(round(math.log10(lowest)), round(math.log10(highest)) + 1)
    axis.set_yticks([0.0, *(10.0**exponent for exponent in exponents)])
    axis.set_yticks([], minor=True)
    axis.set_ylim(-0.12 * lowest, highest)


def plain_log_axis(axis: Axes) -> None:
    """Logarithmic y axis with plain numbers: 1, 2 and 5 of every power of ten, or all powers where there are many."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_yscale("log")
    low, high = axis.get_ylim()
    decades = math.log10(high / low)
    if decades < 4:
        axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2.5 else (1.0,), numticks=20))
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())


def column(rows: Iterable[Row], name: str) -> list[float]:
    """Return one column of a table as numbers; what is missing becomes NaN."""
    return [float("nan") if row[name] is None else float(cast(float, row[name])) for row in rows]


def save(figure: Figure, kind: str) -> bytes:
    """Return the figure as the bytes of an SVG or PNG file."""
    out = io.BytesIO()
    metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {"Software": None}
    figure.savefig(out, format=kind, dpi=150, metadata=metadata)
    return out.getvalue()
