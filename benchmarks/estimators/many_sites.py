"""Sketches with fewer rows than columns at a hundred sites: bytes of real files, and what their stack loses."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import partsketch as ps
from benchmarks.problem import FloatArray

#: Sites, rows and features at each; an intercept comes on top.
_SITES, _ROWS, _FEATURES = 100, 500, 100

_SEED = 20261123


def run(quick: bool) -> list[dict[str, Any]]:
    """Return bytes and losses for sketches of a tenth and of half as many rows as there are features."""
    draws, features = (2, 20) if quick else (16, _FEATURES)
    rng = np.random.default_rng(_SEED)
    X = rng.standard_normal((_SITES * _ROWS, features))
    y = X.sum(axis=1) + rng.standard_normal(len(X))
    table = pa.table({**{f"x{place}": X[:, place] for place in range(features)}, "y": y})
    answers = np.column_stack([np.ones(len(X)), X])
    exact = _bytes_and_model(ps.sketch(table, "y", n_partitions=_SITES, sketch="triangular"))
    rows = []
    for size in (features // 10, features // 2):
        asked: dict[str, Any] = {"n_partitions": _SITES, "sketch_size": size}
        found = [_bytes_and_model(ps.sketch(table, "y", **asked, random_state=_SEED + draw)) for draw in range(draws)]
        rows.append(_row(size, found, exact, answers, y))
        print(f"estimators / many sites, m = {size}: {rows[-1]}", flush=True)
    return rows


def _bytes_and_model(summaries: Sequence[ps.Summary]) -> tuple[int, ps.Model]:
    """Return the bytes of all files together, and the model that is made from them."""
    with tempfile.TemporaryDirectory() as folder:
        for number, summary in enumerate(summaries):
            summary.save(Path(folder) / f"{number}.psk")
        files = sorted(Path(folder).iterdir())
        return sum(file.stat().st_size for file in files), ps.combine(files)


def _row(
    size: int,
    found: Sequence[tuple[int, ps.Model]],
    exact: tuple[int, ps.Model],
    X: FloatArray,
    y: FloatArray,
) -> dict[str, Any]:
    answer = _coefficients(exact[1])
    least = float(np.sum((y - X @ answer) ** 2))
    losses = [float(np.sum((X @ (_coefficients(model) - answer)) ** 2)) / least for _, model in found]
    columns, stacked = X.shape[1], _SITES * size
    held = [_holds(model, loss) for (_, model), loss in zip(found, losses, strict=True)]
    return {
        "sketch_size": size, "features": columns - 1, "sites": _SITES, "draws": len(found),
        "bytes": found[0][0] / _SITES, "exact_bytes": exact[0] / _SITES,
        # What a triangle of doubles would take with the same header and checksum; files hold squares, some of them two.
        "triangle_bytes": found[0][0] / _SITES + (columns + 1) * (4 * (columns + 2) - 8 * size),
        "loss": float(np.mean(losses)), "error": float(np.std(losses) / math.sqrt(len(losses))),
        "formula": columns / (stacked - columns - 1),
        "certified": float(np.mean([model.certificate.relative_excess_loss for _, model in found])),
        "held": sum(held),
    }  # fmt: skip


def _coefficients(model: ps.Model) -> FloatArray:
    return np.asarray(np.r_[model.intercept[0], model.coefficients[:, 0]])


def _holds(model: ps.Model, loss: float) -> bool:
    low, high = model.certificate.interval(0.95, relative=True)
    return bool(low <= loss <= high)


def table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of the table."""
    heads = (
        "m",
        "draws",
        "bytes of a file",
        "of the exact file",
        "loss, measured",
        "by formula",
        "certified",
    )
    yield "| " + " | ".join(heads) + " | in the 95% interval |"
    yield "|---:|---:|---:|---|---:|---:|---:|---:|"
    for row in rows:
        share = f"{row['bytes'] / row['exact_bytes']:.3f} (of a triangle: {row['bytes'] / row['triangle_bytes']:.3f})"
        told = (
            row["sketch_size"], row["draws"], f"{row['bytes']:,.0f}", share,
            f"{100 * row['loss']:.2f}% ± {100 * row['error']:.2f}", f"{100 * row['formula']:.2f}%",
            f"{100 * row['certified']:.2f}%", f"{row['held']} of {row['draws']}",
        )  # fmt: skip
        yield "| " + " | ".join(map(str, told)) + " |"
