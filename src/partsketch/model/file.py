"""The model file: JSON with a checksum, read back to the last bit."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from partsketch.common.errors import InputError
from partsketch.common.files import write_atomically
from partsketch.model.certificate import Certificate
from partsketch.model.inference import Inference
from partsketch.model.instruments import InstrumentTests
from partsketch.model.model import Model
from partsketch.model.outlook import Outlook, Settled
from partsketch.model.record import PartitionRecord, Record
from partsketch.sources.base import PartitionLeftOut
from partsketch.sources.encoding import Encoding

FILE_FORMAT = "partsketch model"
#: Raised when the keys of a saved model change; `tests/model_keys.json` remembers them.
FILE_VERSION = 3


def to_dict(model: Model) -> dict[str, Any]:
    """Return the model as plain data, ready for JSON."""
    return {
        "format": FILE_FORMAT,
        "version": FILE_VERSION,
        "feature_names": list(model.feature_names),
        "target_names": list(model.target_names),
        "coefficients": model.coefficients.tolist(),
        "intercept": model.intercept.tolist(),
        "centre": model.centre.tolist(),
        "level": model.level.tolist(),
        "partition_coefficients": model.partition_coefficients.tolist(),
        "partition_intercepts": model.partition_intercepts.tolist(),
        "certificates": [certificate.to_dict() for certificate in model.certificates],
        "inferences": [inference.to_dict() for inference in model.inferences],
        "encoding": asdict(model.encoding),
        "instruments": None if model.instruments is None else model.instruments.to_dict(),
        "outlook": model.outlook.to_dict(),
        "record": _record_values(model.record),
    }


def _record_values(record: Record) -> dict[str, Any]:
    """Return the record as plain data, under the names of the file."""
    values = asdict(record)
    values["origin"] = values.pop("asked")
    return values


def from_dict(values: dict[str, Any]) -> Model:
    """Return the model that `to_dict` described."""
    record = dict(values["record"])
    record["asked"] = record.pop("origin", None)
    record["partitions"] = tuple(PartitionRecord(**entry) for entry in record["partitions"])
    record["aliased"] = tuple((column, tuple(others)) for column, others in record["aliased"])
    record["warnings"] = tuple(record["warnings"])
    record["partitions_left_out"] = tuple(PartitionLeftOut(**entry) for entry in record["partitions_left_out"])
    encoding = values["encoding"]
    features, targets = len(values["feature_names"]), len(values["target_names"])
    fits = len(values["partition_coefficients"])
    return Model(
        feature_names=tuple(values["feature_names"]),
        target_names=tuple(values["target_names"]),
        coefficients=np.array(values["coefficients"], dtype=np.float64).reshape(features, targets),
        intercept=np.array(values["intercept"], dtype=np.float64).reshape(targets),
        partition_coefficients=np.array(values["partition_coefficients"]).reshape(fits, features, targets),
        partition_intercepts=np.array(values["partition_intercepts"]).reshape(fits, targets),
        certificates=tuple(Certificate.from_dict(entry) for entry in values["certificates"]),
        inferences=tuple(Inference.from_dict(entry) for entry in values["inferences"]),
        record=Record(**record),
        centre=np.array(values["centre"], dtype=np.float64).reshape(features),
        level=np.array(values["level"], dtype=np.float64).reshape(targets),
        encoding=Encoding(
            levels=tuple((column, tuple(levels)) for column, levels in encoding["levels"]),
            drop_first=bool(encoding["drop_first"]),
        ),
        instruments=values["instruments"] and InstrumentTests.from_dict(values["instruments"]),
        look_ahead=Settled(Outlook.from_dict(values["outlook"])),
    )


def save(model: Model, path: str | Path) -> None:
    """Write the model as JSON, whole or not at all."""
    values = to_dict(model)
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
    if version != FILE_VERSION:
        remedy = "fit the model again" if isinstance(version, int) and version < FILE_VERSION else "update partsketch"
        raise InputError(f"{path} has model version {version}, this partsketch reads {FILE_VERSION}: {remedy}.")
    if values.get("checksum") != _checksum(values):
        raise InputError(f"{path} is damaged: its contents do not match its checksum; fit the model again.")
    try:
        return from_dict(values)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is damaged: {error}.") from error
