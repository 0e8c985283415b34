"""Predicted against measured excess loss of the fast sketches on real data: `python -m benchmarks.sketch_predictions`.

Writes the table of docs/sketches.md. Every draw is an explicit sketch of the rows by the same code that fits use.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from partsketch import LocalEngine, theory
from partsketch.engines.gather import gather, guided
from partsketch.paper.data_sets import TITLES, load
from partsketch.sketches.base import SketchSpecification, get_sketch
from partsketch.sources.memory.arrays import array_source
from partsketch.summaries.partitions import single_partition
from partsketch.summaries.tasks import SummaryRequest

PAGE = Path(__file__).parent.parent / "docs" / "sketches.md"
BEGIN, END = "<!-- begin generated: predictions -->", "<!-- end generated: predictions -->"
KINDS = ("srht", "sparse_sign", "count_sketch", "row_sample", "leverage_sample")

FloatArray = NDArray[np.float64]


def measured(rotated: FloatArray, y: FloatArray, kind: str, size: int, draws: int) -> tuple[float, float]:
    """Return mean and standard error of the excess loss over the minimal loss, over independent sketches."""
    specification = SketchSpecification(kind, size, 0)
    source, engine = array_source(rotated, y), LocalEngine()
    request = SummaryRequest(specification, single_partition(len(y)), False, draws, len(y))
    summaries = gather(source, guided(source, request, engine), engine).summaries
    exact = rotated.T @ y
    loss = float(np.sum((y - rotated @ exact) ** 2))
    # The features are orthonormal, so that the excess loss is the squared distance of the coefficients.
    excess = [
        float(np.sum((np.linalg.lstsq(summary.matrix[:, :-1], summary.matrix[:, -1])[0] - exact) ** 2)) / loss
        for summary in summaries
    ]
    return float(np.mean(excess)), float(np.std(excess, ddof=1) / np.sqrt(draws))


def table(draws: int) -> str:
    lines = [
        "| data | rows × columns | sketch | m | predicted | measured | measured / predicted |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for name in TITLES:
        data = load(name)
        # Rotating the columns changes no excess loss, and lets ill-conditioned columns do no harm.
        rotated = np.ascontiguousarray(np.linalg.qr(data.X)[0])
        rows, columns = rotated.shape
        for kind in KINDS:
            for size in sorted({4 * columns, get_sketch(kind).default_size(columns)[0]}):
                if size > (get_sketch(kind).largest_size(rows) or size):
                    continue
                predicted = theory.approximate_whole_excess_loss(1.0, columns, size, 1, rows, kind)
                mean, error = measured(rotated, data.y, kind, size, draws)
                lines.append(
                    f"| {TITLES[name]} | {rows:,} × {columns} | `{kind}` | {size} | {predicted:.4f} | "
                    f"{mean:.4f} ± {error:.4f} | {mean / predicted:.2f} |"
                )
                print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sketch_predictions", description=__doc__)
    parser.add_argument("--draws", type=int, default=200, help="sketches per line of the table")
    arguments = parser.parse_args()
    made = table(arguments.draws)
    page = PAGE.read_text()
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    note = f"Made by `python -m benchmarks.sketch_predictions --draws {arguments.draws}`."
    PAGE.write_text(f"{before}{BEGIN}\n\n{made}\n\n{note}\n\n{END}{after}")


if __name__ == "__main__":
    main()
