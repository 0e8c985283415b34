"""The keys of saved models, kept beside the version of the file: `python -m tests.model_keys` writes them anew.

It refuses to while the version is the same: whoever adds, renames or drops a key raises `FILE_VERSION` first.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import partsketch as ps
from partsketch.model.file import FILE_VERSION

KEPT = Path(__file__).with_suffix(".json")

#: Mappings whose keys are words of the fit at hand, not of the format.
FREE = ("record.reasons", "record.versions", "record.origin.levels")


def key_paths(value: Any, path: str = "") -> Iterator[str]:
    """Yield the path of every key below; entries of lists have one path together."""
    if isinstance(value, dict) and path not in FREE:
        for key, inner in value.items():
            below = f"{path}.{key}" if path else str(key)
            yield below
            yield from key_paths(inner, below)
    elif isinstance(value, list):
        for inner in value:
            yield from key_paths(inner, f"{path}[]")


def saved_keys() -> list[str]:
    """Return all keys that a model file may have: of every method, with and without what is optional."""
    rng = np.random.default_rng(0)
    rows = 240
    table = pa.table(
        {
            "a": rng.normal(size=rows),
            "b": rng.normal(size=rows),
            "kind": ["x", "y", "z"] * 80,
            "y": rng.normal(size=rows),
        }
    )
    asked: list[dict[str, Any]] = [
        {"method": method, "n_partitions": 2, "sketch_size": None if method in ("exact", "average") else 40}
        for method in ("exact", "average", "partition", "stack", "whole")
    ]
    asked += [{**asked[0], "alpha": 1.0}, {**asked[2], "averaging": "inverse_variance"}, {**asked[3], "sketch": "srht"}]
    models = [ps.fit(table, "y", encode=True, random_state=0, **options) for options in asked]
    models.append(ps.fit(table, "y ~ center(a) * kind", vcov="HC1"))
    # As a file has it: tuples are lists there.
    files = [json.loads(json.dumps(model.to_dict())) for model in models]
    return sorted({path for file in files for path in key_paths(file)})


def main() -> None:
    kept, found = json.loads(KEPT.read_text()) if KEPT.exists() else {"version": 0, "keys": []}, saved_keys()
    if kept["keys"] != found and kept["version"] == FILE_VERSION:
        sys.exit("The keys of a saved model have changed: raise FILE_VERSION in model_file.py first.")
    KEPT.write_text(json.dumps({"version": FILE_VERSION, "keys": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
