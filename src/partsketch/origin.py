"""Where a fit's rows came from, as asked: what a reader needs to repeat it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from partsketch.model import Model


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
