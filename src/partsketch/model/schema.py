"""What a model file may hold: the types of its fields, and what must be true of them together.

Types are those of the dataclasses. What is said of a fit twice, such as its coefficients and those of its partitions,
must agree; whoever changes a number in a file and makes its checksum anew is then noticed where that is possible.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.plain_data import (
    FieldError,
    anything,
    check_keys,
    mapping,
    number,
    read_as,
    sequence,
    shown,
    single,
    text,
)
from partsketch.model.certificate import Certificate
from partsketch.model.inference import Inference
from partsketch.model.instruments import InstrumentTests
from partsketch.model.methods import METHODS
from partsketch.model.model import Model
from partsketch.model.outlook import Outlook, Settled
from partsketch.model.record import Record
from partsketch.model.schema_checks import (
    at_least_zero,
    check_agreement,
    check_certificate,
    check_inference,
    check_names,
    check_outlook,
    check_record,
    check_shapes,
    one_of,
)
from partsketch.sources.encoding import Encoding
from partsketch.theory.confidence import KINDS, ConfidenceDistribution

FloatArray = NDArray[np.float64]


_FIELDS: dict[str, Any] = {
    "feature_names": tuple[str, ...],
    "target_names": tuple[str, ...],
    "coefficients": FloatArray,
    "intercept": FloatArray,
    "centre": FloatArray,
    "level": FloatArray,
    "partition_coefficients": FloatArray,
    "partition_intercepts": FloatArray,
    "certificates": tuple[Certificate, ...],
    "inferences": tuple[Inference, ...],
    "encoding": Encoding,
    "instruments": InstrumentTests | None,
    "outlook": Outlook,
    "record": Record,
}


def model_of(values: dict[str, Any]) -> Model:
    """Return the model of plain data, or raise a `FieldError` that names the field."""
    check_keys(values, tuple(_FIELDS), "")
    read = {name: read_as(kind, values[name], name, _READERS) for name, kind in _FIELDS.items()}
    check_names(read["feature_names"], read["target_names"], read["encoding"])
    check_record(read["record"], read["feature_names"])
    check_shapes(read)
    check_agreement(read)
    columns = int(read["record"].options["fit_intercept"]) + len(read["feature_names"])
    for i, certificate in enumerate(read["certificates"]):
        check_certificate(certificate, f"certificates[{i}]")
    for i, inference in enumerate(read["inferences"]):
        check_inference(inference, f"inferences[{i}]", columns)
    check_outlook(read["outlook"], len(read["target_names"]))
    outlook = read.pop("outlook")
    return Model(**read, look_ahead=Settled(outlook))


def _distribution(value: Any, field: str) -> ConfidenceDistribution:
    """Read a distribution: an infinite parameter is written as a text, and only degrees of freedom may be infinite."""
    values = dict(mapping(value, field))
    check_keys(values, ("kind", "parameters"), field)
    kind = one_of(KINDS, text(values["kind"], f"{field}.kind"), f"{field}.kind")
    found = []
    for i, entry in enumerate(sequence(values["parameters"], f"{field}.parameters")):
        infinite = entry == "inf" and kind == "noncentral_f" and i == 2
        found.append(math.inf if infinite else number(entry, f"{field}.parameters[{i}]"))
    if len(found) != len(KINDS[kind]):
        raise FieldError(f"'{field}.parameters' has {len(found)} numbers, not {len(KINDS[kind])}")
    if kind == "quantiles" and any(low > high for low, high in pairwise(found)):
        raise FieldError(f"'{field}.parameters' are quantiles that decrease")
    if kind not in ("point", "quantiles"):
        for i, parameter in enumerate(found):
            at_least_zero(parameter, f"{field}.parameters[{i}]")
    return ConfidenceDistribution(kind, tuple(found))


#: Options that are not a number, a text, true, false or null, and those that readers of a model rely on.
_OPTIONS: dict[str, Any] = {
    "method": str,
    "fit_intercept": bool,
    "sketch": str,
    "n_partitions": int,
    "alpha": float | None,
    "limits": dict[str, Any] | None,
    "files": tuple[dict[str, Any], ...],
    "endogenous": tuple[str, ...],
    "instruments": tuple[str, ...],
}
_ALWAYS = ("method", "fit_intercept")


def _options(value: Any, field: str) -> dict[str, Any]:
    values = dict(mapping(value, field))
    for name in _ALWAYS:
        if name not in values:
            raise FieldError(f"'{field}' lacks {name!r}")
    for name, inner in values.items():
        where = f"{field}.{shown(name)}"
        if name in _OPTIONS:
            read_as(_OPTIONS[name], inner, where, {})
        else:
            single(inner, where)
    one_of(METHODS, values["method"], f"{field}.method")
    if values.get("n_partitions", 1) < 1:
        raise FieldError(f"'{field}.n_partitions' is too small")
    return {name: anything(inner, field) for name, inner in values.items()}


_ORIGIN: dict[str, Any] = {
    "paths": tuple[str, ...] | None,
    "targets": tuple[str, ...],
    "features": tuple[str, ...] | None,
    "formula": str | None,
    "weights": str | None,
    "encode": bool,
    "missing": str,
}


def _origin(value: Any, field: str) -> dict[str, Any] | None:
    if value is None:
        return None
    values = dict(mapping(value, field))
    for name, kind in _ORIGIN.items():
        if name not in values:
            raise FieldError(f"'{field}' lacks {name!r}")
        read_as(kind, values[name], f"{field}.{name}", {})
    return {name: anything(inner, f"{field}.{name}") for name, inner in values.items()}


def _record(value: Any, field: str) -> Record:
    """Read a record, whose options and origin (what was asked of the data) have rules of their own."""
    values = dict(mapping(value, field))
    check_keys(values, ["origin" if known.name == "asked" else known.name for known in fields(Record)], field)
    options = _options(values["options"], f"{field}.options")
    asked = _origin(values.pop("origin"), f"{field}.origin")
    record: Record = read_as(Record, {**values, "asked": None}, field, {})
    return replace(record, options=options, asked=asked)


def _inference(value: Any, field: str) -> Inference:
    """Read what is known of coefficients; without noise the degrees of freedom are infinite, written as a text."""
    values = dict(mapping(value, field))
    infinite = [name for name in ("degrees_of_freedom", "spread_degrees_of_freedom") if values.get(name) == "inf"]
    inference: Inference = read_as(Inference, {**values, **dict.fromkeys(infinite, 1.0)}, field, {})
    found: dict[str, Any] = dict.fromkeys(infinite, math.inf)
    return replace(inference, **found)


_READERS = {Inference: _inference, ConfidenceDistribution: _distribution, Record: _record}
