"""The fitted model: coefficients, how they came about, predictions, and a file in JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from partsketch.errors import InputError
from partsketch.files import write_atomically
from partsketch.sources.base import Source
from partsketch.sources.encoding import Encoding

FloatArray = NDArray[np.float64]

FILE_FORMAT = "partsketch model"
FILE_VERSION = 1


@dataclass(frozen=True)
class PartitionRecord:
    """One partition (or one sketch of the whole): its name, rows, rank and condition number."""

    name: str
    row_count: int
    rank: int | None
    condition: float | None


@dataclass(frozen=True)
class Record:
    """How a model came about: everything needed to repeat the fit, and the reason of every automatic choice.

    Attributes
    ----------
    options
        The options of the fit, as asked.
    seed
        The seed that was used, also when none was given.
    sketch_size
        Rows m of each sketch; None for exact summaries.
    row_count, rows_dropped, rows_left_out
        Rows used; rows dropped for missing values; rows left out as remainder.
    rank, condition, tolerance
        Of the fit: numerical rank, condition number after columns were scaled, relative tolerance of the rank.
    aliased
        Dependent columns, each with those it depends on.
    partitions
        One entry per partition, or per sketch of the whole.
    reasons
        Automatic choice → the reason in words.
    warnings
        What a user should know, a sentence each.
    versions
        Versions of partsketch and of the libraries that computed.
    data
        Description of the rows.
    """

    options: dict[str, Any]
    seed: int
    sketch_size: int | None
    row_count: int
    weight_sum: float
    rows_dropped: int
    rows_left_out: int
    rank: int
    condition: float | None
    tolerance: float
    aliased: tuple[tuple[str, tuple[str, ...]], ...]
    partitions: tuple[PartitionRecord, ...]
    reasons: dict[str, str]
    warnings: tuple[str, ...]
    versions: dict[str, str]
    data: str


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted linear model.

    Attributes
    ----------
    feature_names, target_names
        Column names.
    coefficients
        Shape (features, targets).
    intercept
        One per target; zeros without an intercept.
    partition_coefficients, partition_intercepts
        Of the fits that were averaged: shapes (k, features, targets) and (k, targets); a single one when solved once.
    record
        How the model came about.
    encoding
        One-hot encoding of text columns.
    """

    feature_names: tuple[str, ...]
    target_names: tuple[str, ...]
    coefficients: FloatArray
    intercept: FloatArray
    partition_coefficients: FloatArray
    partition_intercepts: FloatArray
    record: Record
    encoding: Encoding = field(default_factory=Encoding)

    @property
    def method(self) -> str:
        """The method of the fit."""
        return str(self.record.options["method"])

    def predict_blocks(self, source: Source, block_rows: int = 65536) -> Iterator[tuple[NDArray[np.int64], FloatArray]]:
        """Yield row numbers and predictions (rows × targets), block by block."""
        buffer = np.empty((len(self.feature_names), block_rows))
        for block in source.read(0, None, block_rows):
            columns = buffer[:, : len(block)]
            block.copy_into(columns, 0, len(block))
            yield block.row_numbers, columns.T @ self.coefficients + self.intercept

    def predict(self, data: Any, missing: Literal["error", "drop"] = "error") -> FloatArray:
        """Predict the targets of all rows of an array, data frame, file or glob.

        Parameters
        ----------
        data
            Anything that `partsketch.fit` takes; the target column is not needed.
        missing
            "error" refuses missing values; "drop" leaves their rows out.

        Returns
        -------
        numpy.ndarray
            One prediction per row; shape (rows, targets) when the model has several targets.
        """
        parts = [values for _, values in self.predict_blocks(self.open_for_prediction(data, missing))]
        predictions = np.concatenate(parts) if parts else np.empty((0, len(self.target_names)))
        return predictions[:, 0] if len(self.target_names) == 1 else predictions

    def open_for_prediction(self, data: Any, missing: Literal["error", "drop"] = "error") -> Source:
        """Open data with the columns, and the encoding of text columns, that this model was fitted with."""
        from partsketch.sources import open_source

        encoded = {f"{column}={level}" for column, levels in self.encoding.levels for level in levels}
        plain = [name for name in self.feature_names if name not in encoded]
        raw = [*plain, *(column for column, _ in self.encoding.levels)]
        source = open_source(data, features=raw, missing=missing, encoding=self.encoding)
        if source.feature_names != self.feature_names:
            raise InputError(f"The data give the features {source.feature_names}, the model has {self.feature_names}.")
        return source

    def to_dict(self) -> dict[str, Any]:
        """Return the model as plain data, ready for JSON."""
        from dataclasses import asdict

        return {
            "format": FILE_FORMAT,
            "version": FILE_VERSION,
            "feature_names": list(self.feature_names),
            "target_names": list(self.target_names),
            "coefficients": self.coefficients.tolist(),
            "intercept": self.intercept.tolist(),
            "partition_coefficients": self.partition_coefficients.tolist(),
            "partition_intercepts": self.partition_intercepts.tolist(),
            "encoding": asdict(self.encoding),
            "record": asdict(self.record),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Model:
        """Return the model that `to_dict` described."""
        record = dict(values["record"])
        record["partitions"] = tuple(PartitionRecord(**entry) for entry in record["partitions"])
        record["aliased"] = tuple((column, tuple(others)) for column, others in record["aliased"])
        record["warnings"] = tuple(record["warnings"])
        encoding = values["encoding"]
        features, targets = len(values["feature_names"]), len(values["target_names"])
        fits = len(values["partition_coefficients"])
        return cls(
            feature_names=tuple(values["feature_names"]),
            target_names=tuple(values["target_names"]),
            coefficients=np.array(values["coefficients"], dtype=np.float64).reshape(features, targets),
            intercept=np.array(values["intercept"], dtype=np.float64).reshape(targets),
            partition_coefficients=np.array(values["partition_coefficients"]).reshape(fits, features, targets),
            partition_intercepts=np.array(values["partition_intercepts"]).reshape(fits, targets),
            record=Record(**record),
            encoding=Encoding(
                levels=tuple((column, tuple(levels)) for column, levels in encoding["levels"]),
                drop_first=bool(encoding["drop_first"]),
            ),
        )

    def save(self, path: str | Path) -> None:
        """Write the model as JSON, whole or not at all."""
        values = self.to_dict()
        values["checksum"] = _checksum(values)
        text = json.dumps(values, indent=1, ensure_ascii=False, allow_nan=False)
        write_atomically(Path(path), (text + "\n").encode())


def _checksum(values: dict[str, Any]) -> str:
    rest = {key: value for key, value in values.items() if key != "checksum"}
    canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def load(path: str | Path) -> Model:
    """Read a model that `Model.save` wrote.

    Parameters
    ----------
    path
        The JSON file.

    Returns
    -------
    Model
        The same model, to the last bit.
    """
    try:
        values = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not a partsketch model, or it is damaged: it is not JSON.") from error
    if not isinstance(values, dict) or values.get("format") != FILE_FORMAT:
        raise InputError(f"{path} is not a partsketch model.")
    version = values.get("version")
    if not isinstance(version, int) or version > FILE_VERSION:
        raise InputError(f"{path} has model version {version}, this partsketch reads up to {FILE_VERSION}: update it.")
    if values.get("checksum") != _checksum(values):
        raise InputError(f"{path} is damaged: its contents do not match its checksum; fit the model again.")
    try:
        return Model.from_dict(values)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is damaged: {error}.") from error
