"""What the result of a task depends on, as plain data: kept results are used for the same fit only."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any

from partsketch._version import __version__
from partsketch.engines.checkpoint_file import FORMAT_VERSION
from partsketch.fitting.options import FitOptions
from partsketch.sources.base import Source
from partsketch.sources.identity import column_identity, data_identity
from partsketch.summaries.tasks import SummaryRequest

#: What is done about failures, and where the work is done, may differ between a run and the one that continues it.
_MAY_DIFFER = ("engine", "on_partition_error", "deadline", "min_partitions")


def fit_identity(source: Source, request: SummaryRequest, options: FitOptions) -> dict[str, dict[str, Any]]:
    """Return groups of names and values, the same for two fits only if a task of one has the result of the other's."""
    asked = options.to_dict("")
    return {
        "options": {name: value for name, value in asked.items() if name not in _MAY_DIFFER},
        "columns": column_identity(source),
        "data": data_identity(source),
        "partitions": {
            "names": list(request.partitioning.names),
            "bounds": _digest(request.partitioning.bounds),
            "sketch": asdict(request.specification),
            "sketches per partition": request.sketches_per_partition,
            "noise is measured": request.measures_noise,
            "first pass": _digest([guide.tolist() for guide in request.guides]),
        },
        "versions": {
            "partsketch": __version__,
            "task format": FORMAT_VERSION,
            "rows of a segment": request.segment_rows,
        },
    }


def _digest(values: Any) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()
