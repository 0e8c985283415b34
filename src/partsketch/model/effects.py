"""Which rows a model can predict: their columns, and the intercepts of levels that were absorbed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError

if TYPE_CHECKING:
    from partsketch.model.model import Model
    from partsketch.sources.base import Source

FloatArray = NDArray[np.float64]


def absorbed_column(model: Model) -> str | None:
    """Return the column whose levels have intercepts of their own; refuse where these were too many to keep."""
    column: str | None = model.record.options.get("absorb")
    if column is not None and len(model.partition_intercepts) < len(model.record.partitions):
        raise InputError("The model has fewer intercepts than levels: its file was changed.")
    if column is not None and [part.name for part in model.record.partitions] == ["all"]:
        raise InputError(
            f"The levels of {column!r} were too many for the model to keep their intercepts: their effects are not "
            "known here; predict differences within a level by the coefficients."
        )
    return column


def column_of_effects(model: Model) -> str | None:
    """Return the column whose levels have intercepts of their own, or say why the intercepts of rows are not known."""
    if model.record.options.get("intercept") == "partition":
        raise InputError(
            "The model has an intercept for each partition, and rows do not say theirs: add partition_intercepts "
            "to the products with the coefficients, or fit with intercept='common'."
        )
    return absorbed_column(model)


def effects_of(model: Model, source: Source) -> FloatArray:
    """Return the intercepts of the levels that rows have, in the order of their labels, or name one that is new."""
    known = {part.name: number for number, part in enumerate(model.record.partitions) if part.row_count}
    for name in source.partition_values:
        if name not in known:
            column = model.record.options["absorb"]
            raise InputError(
                f"Column {column!r} has the level {name!r}, which was not there in the fit: nothing is known of its "
                "intercept; leave its rows out."
            )
    return np.asarray(model.partition_intercepts[[known[name] for name in source.partition_values]])


def open_for_prediction(model: Model, data: Any, missing: Literal["error", "drop"]) -> Source:
    """Open data with the columns and levels of a model, or say why its rows cannot be predicted."""
    from partsketch.sources import open_source

    absorbed = column_of_effects(model)
    raw = model.encoding.source_columns(model.feature_names)
    source = open_source(
        data, features=raw or None, partition_column=absorbed, missing=missing, encoding=model.encoding
    )
    if source.feature_names != model.feature_names:
        raise InputError(f"The data give the features {source.feature_names}, the model has {model.feature_names}.")
    return source
