"""The growth series as tables and as a plot: best seconds against the quantity that grows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_AXES = {"n": "rows n", "d": "columns d", "k": "partitions k", "m": "sketch rows m"}


def _of_axis(result: Mapping[str, Any], axis: str) -> dict[int, Mapping[str, Any]]:
    """Return the cases of one axis by its value."""
    return {
        int(name.partition("-")[2]): case["contestants"]
        for name, case in result["cases"].items()
        if name.startswith(f"{axis}-")
    }


def growth_tables(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield one table per axis, best seconds of every contestant."""
    for axis, title in _AXES.items():
        cases = _of_axis(result, axis)
        first = next(iter(cases.values()))
        titles = [case["title"] for name, case in result["cases"].items() if name.startswith(f"{axis}-")]
        yield f"**Seconds against {title}** (from {titles[0]} to {titles[-1]})"
        yield ""
        yield "| " + " | ".join([title, *(entry["label"] for entry in first.values())]) + " |"
        yield "|---:" * (1 + len(first)) + "|"
        for value, contestants in cases.items():
            cells = [_seconds(entry) for entry in contestants.values()]
            yield "| " + " | ".join([f"{value:,}", *cells]) + " |"
        yield ""


def _seconds(entry: Mapping[str, Any]) -> str:
    return f"{entry['best_seconds']:.3f}" if "best_seconds" in entry else str(entry.get("failed", ""))


def plot_growth(results: Path, figure: Path) -> None:
    """Draw the series on logarithmic axes."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    result = json.loads((results / "growth.json").read_text())
    panels, axes = plt.subplots(1, len(_AXES), figsize=(15, 4), layout="constrained")
    for panel, (axis, title) in zip(axes, _AXES.items(), strict=True):
        cases = _of_axis(result, axis)
        for name, entry in next(iter(cases.values())).items():
            points = [
                (value, case[name]["best_seconds"]) for value, case in cases.items() if "best_seconds" in case[name]
            ]
            if points:
                panel.loglog(*zip(*points, strict=True), marker="o", label=entry["label"])
        panel.set_xlabel(title)
        panel.set_ylabel("seconds")
        panel.grid(alpha=0.3)
        panel.legend(fontsize=7)
    figure.parent.mkdir(parents=True, exist_ok=True)
    # The same numbers give the same file: names inside it are drawn at random otherwise.
    with mpl.rc_context({"svg.hashsalt": "partsketch"}):
        panels.savefig(figure, metadata={"Date": None, "Creator": None})
    plt.close(panels)
