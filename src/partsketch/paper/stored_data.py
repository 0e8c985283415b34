"""House and Cover as they lie in the package: Parquet files that give the very numbers of scikit-learn's loaders."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.sources.arrow_values import as_numbers

FloatArray = NDArray[np.float64]

TARGETS = {"house": "MedHouseVal", "cover": "Cover_Type"}
#: Columns that hold the number of the one indicator that is 1, and how many indicators they stand for.
CODES = {"Wilderness_Area": 4, "Soil_Type": 40}


@dataclass(frozen=True, eq=False)
class StoredData:
    """Features with their names, target, and the size of the data set from which the rows were taken."""

    feature_names: tuple[str, ...]
    X: FloatArray
    y: FloatArray
    source_rows: int
    source_features: int


def stored_data(name: str) -> StoredData:
    """Read one of the package's data sets.

    Parameters
    ----------
    name : str
        "house" (all 20,640 rows) or "cover" (100,000 of 581,012 rows).

    Returns
    -------
    StoredData
        Values bit for bit as scikit-learn's loaders give them, codes of areas and soils made indicators again.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        content = resources.files("partsketch.paper").joinpath("data", f"{name}.parquet").read_bytes()
        table = pq.read_table(pa.BufferReader(content)).combine_chunks()
    except (OSError, pa.ArrowInvalid) as error:
        reason = f"data/{name}.parquet of partsketch is damaged ({error})"
        raise InputError(f"{reason}: install partsketch again.") from error
    columns = {column: _numbers(table, column) for column in table.column_names}
    y = columns.pop(TARGETS[name])
    names: list[str] = []
    features: list[NDArray[Any]] = []
    for column, values in columns.items():
        count = CODES.get(column)
        if count is None:
            names.append(column)
            features.append(values)
        else:
            names += [f"{column}_{code}" for code in range(count)]
            features += [values == code for code in range(count)]
    # scikit-learn gives rows one after another in memory.
    X = np.ascontiguousarray(np.array(features, dtype=np.float64).T)
    sizes = table.schema.metadata
    return StoredData(tuple(names), X, y.astype(np.float64), int(sizes[b"source_rows"]), int(sizes[b"source_features"]))


def _numbers(table: Any, column: str) -> NDArray[Any]:
    chunked = table.column(column)
    return as_numbers(chunked.chunk(0))[0]
