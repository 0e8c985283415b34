"""Writes the study's data files anew: `python -m benchmarks.make_study_data FOLDER`.

FOLDER is where scikit-learn keeps its data; its loaders download what is missing there. The files in the package
were made by this script. It is needed again only if another sample or layout is wanted.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from sklearn import datasets

from partsketch.paper import data_sets
from partsketch.paper.stored_data import CODES, TARGETS

DATA = Path(data_sets.__file__).parent / "data"


def encoded(name: str, feature_names: Sequence[str], X: NDArray[Any], y: NDArray[Any], source_rows: int) -> pa.Table:
    """Return the table that the package stores: indicators as codes, whole numbers in the smallest type that fits."""
    columns: dict[str, NDArray[Any]] = {}
    taken = 0
    while taken < len(feature_names):
        stem = feature_names[taken].rsplit("_", 1)[0]
        count = CODES.get(stem, 1)
        group = X[:, taken : taken + count]
        if count > 1:
            if not (np.isin(group, (0, 1)).all() and (group.sum(axis=1) == 1).all()):
                raise ValueError(f"{stem} is not exactly one of {count} indicators in every row.")
            columns[stem] = group.argmax(axis=1)
        else:
            columns[feature_names[taken]] = group[:, 0]
        taken += count
    columns[TARGETS[name]] = y
    # House keeps its 64 bits throughout: readers of the file then see what the loader shows.
    kept = columns if name == "house" else {column: _smallest(values) for column, values in columns.items()}
    table = pa.table({column: np.ascontiguousarray(values) for column, values in kept.items()})
    sizes = {"source_rows": str(source_rows), "source_features": str(len(feature_names))}
    return table.replace_schema_metadata(sizes)


def _smallest(values: NDArray[Any]) -> NDArray[Any]:
    for kind in (np.uint8, np.int16, np.float64):
        if np.array_equal(values.astype(kind), values):
            return values.astype(kind)
    raise ValueError("There are values that are not numbers.")


def write(name: str, table: pa.Table, folder: Path = DATA) -> Path:
    path = folder / f"{name}.parquet"
    # Dictionaries before zstd: coordinates, counts and prices repeat. It is the smallest of what was tried.
    pq.write_table(table, path, compression="zstd", compression_level=19)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.make_study_data", description=__doc__)
    parser.add_argument("data_home", type=Path, help="folder where scikit-learn keeps its data")
    home = str(parser.parse_args().data_home)
    house = datasets.fetch_california_housing(data_home=home)
    tables = {"house": encoded("house", house.feature_names, house.data, house.target, len(house.data))}
    cover = datasets.fetch_covtype(data_home=home)
    rows = data_sets.cover_sample(len(cover.data))
    tables["cover"] = encoded("cover", cover.feature_names, cover.data[rows], cover.target[rows], len(cover.data))
    for name, table in tables.items():
        path = write(name, table)
        print(f"{path}: {table.num_rows:,} rows, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
