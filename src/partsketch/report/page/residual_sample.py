"""Residuals of a sample of the rows: always the same rows, few reads, bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.model.effects import column_of_effects, effects_of
from partsketch.model.model import Model
from partsketch.sources.base import Block, Source

FloatArray = NDArray[np.float64]

#: About this many rows are looked at.
SAMPLE_ROWS = 1500
_STRETCHES = 50


@dataclass(frozen=True, eq=False)
class ResidualSample:
    """Fitted values and residuals (rows × targets) of the rows with these numbers, and how the rows were picked."""

    row_numbers: NDArray[np.int64]
    fitted: FloatArray
    residuals: FloatArray
    how: str


def sample_residuals(model: Model, source: Source) -> ResidualSample:
    """Return the residuals of about `SAMPLE_ROWS` rows, spread evenly over the source.

    Long sources that can be entered anywhere are read in 50 stretches; all others are read once from the beginning and
    thinned on the way.
    """
    if source.feature_names != model.feature_names:
        raise InputError(f"The data give the features {source.feature_names}, the model has {model.feature_names}.")
    effects = None if column_of_effects(model) is None else effects_of(model, source)
    rows = source.row_count
    if source.random_access and rows is not None and rows > 20 * SAMPLE_ROWS:
        picked = _stretches(source, rows)
        how = f"{_STRETCHES} stretches of {SAMPLE_ROWS // _STRETCHES} neighbouring rows, spread evenly"
    else:
        picked, step = _thinned(source)
        how = "all rows" if step == 1 else f"every row whose number is a multiple of {step:,}"
    numbers, values, weights, labels = picked
    if len(numbers) == 0:
        raise InputError("There are no complete rows among those sampled for residuals.")
    features = len(model.feature_names)
    fitted = model.predicted(values[:features])
    if effects is not None:
        # Labels may tell clusters too; levels are what is left.
        fitted = fitted + effects[labels % len(effects)]
    residuals = values[features:].T - fitted
    # With weights the noise of a row has variance σ²/w: this puts all rows on one scale.
    return ResidualSample(numbers, fitted, residuals * np.sqrt(weights)[:, None], how)


#: Numbers, columns, weights and labels of rows.
_Picked = tuple[NDArray[np.int64], FloatArray, FloatArray, NDArray[np.int64]]


def _stretches(source: Source, rows: int) -> _Picked:
    length = SAMPLE_ROWS // _STRETCHES
    starts = np.linspace(0, rows - length, _STRETCHES).astype(np.int64)
    blocks = (block for start in starts for block in source.read(int(start), int(start) + length, length))
    return _joined(source, [_columns(source, block) for block in blocks])


def _thinned(source: Source) -> tuple[_Picked, int]:
    """Keep rows whose number is a multiple of a step, which doubles whenever too many are kept."""
    step = 1
    kept: list[_Picked] = []
    for block in _read(source):
        kept.append(_columns(source, block, step))
        while sum(len(numbers) for numbers, *_ in kept) > SAMPLE_ROWS:
            step *= 2
            kept = [
                (numbers[keep], values[:, keep], weights[keep], labels[keep])
                for numbers, values, weights, labels in kept
                for keep in [numbers % step == 0]
            ]
    return _joined(source, kept), step


def _read(source: Source) -> Iterator[Block]:
    if not source.replayable:
        raise InputError("The rows came from a stream that can be read only once.")
    return source.read(0, None, 16384)


def _columns(source: Source, block: Block, step: int = 1) -> _Picked:
    rows = block.take(np.flatnonzero(block.row_numbers % step == 0))
    values = np.empty((len(source.feature_names) + len(source.target_names), len(rows)))
    rows.copy_into(values, 0, len(rows))
    weights = np.ones(len(rows)) if rows.weights is None else rows.weights
    return rows.row_numbers, values, weights, rows.row_numbers if rows.labels is None else rows.labels


def _joined(source: Source, kept: list[_Picked]) -> _Picked:
    width = len(source.feature_names) + len(source.target_names)
    if not kept:
        nothing = np.empty(0, dtype=np.int64)
        return nothing, np.empty((width, 0)), np.empty(0), nothing
    numbers, values, weights, labels = zip(*kept, strict=True)
    joined = map(np.concatenate, (numbers, weights, labels))
    return next(joined), np.concatenate(values, axis=1), next(joined), next(joined)
