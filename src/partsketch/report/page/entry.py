"""One model of a report, with what is known beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from partsketch.common.errors import InputError
from partsketch.model.effects import column_of_effects
from partsketch.model.model import Model
from partsketch.report.page.residual_sample import ResidualSample, sample_residuals


@dataclass(frozen=True)
class Entry:
    """A model in a report.

    Attributes
    ----------
    model
        The model.
    name
        What the report calls it.
    residuals
        A sample of residuals, or None when `residuals_reason` says why.
    seconds, exact_seconds
        Measured time of this fit, and of exact least squares on the same rows; None when they were not measured.
    """

    model: Model
    name: str
    residuals: ResidualSample | None = None
    residuals_reason: str = "the rows were not given; add --data to the command, or data= in Python"
    seconds: float | None = None
    exact_seconds: float | None = None


def entries_of(models: Sequence[Model], names: Sequence[str] | None = None, data: Any = None) -> list[Entry]:
    """Return one entry per model, with residuals from a sample of the rows of `data` if it is given."""
    if not models:
        raise InputError("A report needs at least one model.")
    chosen = list(names) if names is not None else [model.method for model in models]
    chosen = [f"{number}: {name}" if len(models) > 1 else name for number, name in enumerate(chosen, start=1)]
    entries = []
    for model, name in zip(models, chosen, strict=True):
        if data is None:
            entries.append(Entry(model, name))
        else:
            entries.append(_beside_rows(model, name, data))
    return entries


def _beside_rows(model: Model, name: str, data: Any) -> Entry:
    try:
        column_of_effects(model)
    except InputError as error:
        return Entry(model, name, None, as_clause(str(error)))
    return Entry(model, name, sample_residuals(model, open_rows(model, data)), "")


def as_clause(sentence: str) -> str:
    """Return a sentence as it goes on behind a colon."""
    return sentence[:1].lower() + sentence[1:].rstrip(".")


def open_rows(model: Model, data: Any) -> Any:
    """Open data with the features and targets of a model; rows with missing values are left out."""
    from partsketch.sources import open_source

    asked = model.record.asked or {}
    return open_source(
        data,
        target=list(model.target_names),
        features=model.encoding.source_columns(model.feature_names),
        weights=asked.get("weights"),
        partition_column=column_of_effects(model),
        encoding=model.encoding,
        missing="drop",
    )
