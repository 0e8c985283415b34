"""The model file: JSON with a checksum, read back to the last bit."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from partsketch.common.errors import InputError
from partsketch.common.files import write_atomically
from partsketch.common.free_memory import available_memory
from partsketch.common.plain_data import FieldError, shown
from partsketch.common.reading import read_at_most
from partsketch.model.model import Model
from partsketch.model.record import Record
from partsketch.model.schema import model_of

FILE_FORMAT = "partsketch model"
#: Raised when the keys of a saved model change; `tests/model_keys.json` remembers them.
FILE_VERSION = 10
#: Most bytes of a model file: ten million numbers.
LARGEST_FILE = 2**28

#: Bytes of memory that a byte of the file takes at most while it is read: ten where it is numbers, more where somebody
#: wrote lists of nothing.
MEMORY_PER_BYTE = 32
#: Keys around the model itself.
_ENVELOPE = ("format", "version", "checksum")


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


def save(model: Model, path: str | Path) -> None:
    """Write the model as JSON, whole or not at all."""
    values = to_dict(model)
    values["checksum"] = checksum(values)
    content = (json.dumps(values, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
    if len(content) > LARGEST_FILE:
        raise InputError(
            f"Cannot write {path}: the model has {len(content):,} bytes, and no more than {LARGEST_FILE:,} are read "
            "again; use fewer partitions or features."
        )
    write_atomically(Path(path), content, model.record.input_files())


def checksum(values: dict[str, Any]) -> str:
    """Return the checksum of everything else that a model file says."""
    rest = {key: value for key, value in values.items() if key != "checksum"}
    canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode(errors="surrogatepass")).hexdigest()


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
    return read(read_at_most(Path(path), _most_bytes(), "a model"), str(path))


def _most_bytes() -> int:
    """Return the most that a model file may have: what fits into memory when read, and never more than a bound."""
    return min(LARGEST_FILE, available_memory() // MEMORY_PER_BYTE)


def read(content: bytes, name: str) -> Model:
    """Read the contents of a model file; `name` is used in messages."""
    try:
        values = json.loads(content, object_pairs_hook=_unique)
    except FieldError as error:
        raise InputError(f"{name} is damaged: {error}.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} is not a partsketch model, or it is damaged: it is not JSON.") from error
    if not isinstance(values, dict) or values.get("format") != FILE_FORMAT:
        raise InputError(f"{name} is not a partsketch model.")
    version = values.get("version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise InputError(f"{name} is damaged: 'version' is not a whole number.")
    if version != FILE_VERSION:
        remedy = "fit the model again" if version < FILE_VERSION else "update partsketch"
        told = str(version) if abs(version) < 10**9 else "unknown"
        raise InputError(f"{name} has model version {told}, this partsketch reads {FILE_VERSION}: {remedy}.")
    try:
        if values.get("checksum") != checksum(values):
            raise InputError(f"{name} is damaged: its contents do not match its checksum; fit the model again.")
        return model_of({key: value for key, value in values.items() if key not in _ENVELOPE})
    except FieldError as error:
        raise InputError(f"{name} is damaged: {error}.") from error
    except RecursionError as error:
        raise InputError(f"{name} is damaged: lists in it are nested too deeply.") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of pairs; with a key twice, programs would disagree on what it says."""
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise FieldError(f"the key '{shown(key)}' is repeated")
        values[key] = value
    return values
