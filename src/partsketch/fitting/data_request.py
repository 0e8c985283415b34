"""What was asked of the data: opened for a fit, and told in the record so that a reader can repeat it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from partsketch.engines.base import Engine
from partsketch.fitting.options import FitOptions
from partsketch.model.model import Model
from partsketch.sources import open_source
from partsketch.sources.base import Source
from partsketch.sources.files.readable import open_readable
from partsketch.sources.opening import are_paths


def with_origin(
    model: Model,
    data: Any,
    targets: str | Sequence[str],
    features: Sequence[str] | None,
    weights: str | None,
    encode: bool,
    missing: str,
) -> Model:
    """Return the model with the data and columns that were asked for in its record.

    Rows that came from memory have no paths; the record then says so by None.
    """
    entries = data if isinstance(data, list | tuple) else [data]
    are_paths = all(isinstance(entry, str | os.PathLike) for entry in entries)
    origin = {
        "paths": [os.fspath(entry) for entry in entries] if are_paths else None,
        "targets": [targets] if isinstance(targets, str) else [str(name) for name in targets],
        "features": None if features is None else [str(name) for name in features],
        "weights": weights,
        "encode": bool(encode),
        "missing": missing,
    }
    return replace(model, record=replace(model.record, origin=origin))


def open_for_fit(
    data: Any,
    target: str | Sequence[str],
    features: Sequence[str] | None,
    options: FitOptions,
    weights: str | None,
    encode: bool,
    missing: Literal["error", "drop"],
    engine: Engine | None = None,
) -> Source:
    """Open the data with the columns that a fit with these options needs.

    When partitions are files and may be left out, those that cannot be opened are.
    """
    open_chosen = partial(
        open_source,
        target=target,
        features=features,
        weights=weights,
        partition_column=options.partition_column,
        encode=encode,
        missing=missing,
        fit_intercept=options.fit_intercept,
        engine=engine,
    )
    if options.on_partition_error == "drop" and options.partition_by == "file" and are_paths(data):
        return open_readable(data, open_chosen)
    return open_chosen(data)
