"""What must be true of the fields of a model file together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.plain_data import (
    FieldError,
)
from partsketch.model.around_exact import AroundExact
from partsketch.model.certificate import Certificate
from partsketch.model.inference import EXACT_FIT, THIS_FIT, Inference
from partsketch.model.kept_intervals import KeptIntervals
from partsketch.model.methods import METHODS
from partsketch.model.outlook import Outlook
from partsketch.model.record import Record
from partsketch.sources.encoding import Encoding
from partsketch.summaries.tasks import INTERCEPT

FloatArray = NDArray[np.float64]

_CERTIFICATES = ("exact", "estimated", "approximate", "unavailable")


_BASES = ("exact", "estimated", "extrapolated", "assumed")


#: Numbers that say the same in two ways differ by rounding: some hundred operations of 2⁻⁵² each, with a wide margin.
_ROUNDING = 1e-9


def one_of(known: Any, value: str, field: str) -> str:
    """Return a value that is one of those known, or refuse it."""
    if value not in known:
        raise FieldError(f"'{field}' is not one of {', '.join(known)}")
    return value


def at_least_zero(value: float | None, field: str) -> None:
    """Refuse a number below zero."""
    if value is not None and value < 0:
        raise FieldError(f"'{field}' is too small")


def _distinct(names: Sequence[str], field: str) -> None:
    if len(set(names)) != len(names):
        raise FieldError(f"'{field}' has a name twice")


def check_names(features: Sequence[str], targets: Sequence[str], encoding: Encoding) -> None:
    """Refuse names that occur twice, and levels without indicators."""
    _distinct(features, "feature_names")
    _distinct(targets, "target_names")
    if not targets:
        raise FieldError("'target_names' is empty")
    if set(targets) & set(features):
        raise FieldError("'feature_names' has a name that 'target_names' has too")
    if encoding.design is not None:
        try:
            encoding.design.check()
        except InputError as error:
            raise FieldError(f"'encoding.design' cannot be: {error}") from error
        if encoding.design.feature_names != tuple(features):
            raise FieldError("'encoding.design' makes other features than 'feature_names'")
    _distinct(encoding.columns, "encoding.levels")
    for i, (column, levels) in enumerate(encoding.levels):
        _distinct(levels, f"encoding.levels[{i}]")
        if not levels:
            raise FieldError(f"'encoding.levels[{i}]' is empty")
        if not set(encoding.indicator_names(column)) <= set(features):
            raise FieldError(f"'encoding.levels[{i}]' has levels that 'feature_names' has not")


def check_record(record: Record, features: Sequence[str]) -> None:
    """Refuse a record whose numbers contradict one another or the columns."""
    method = METHODS[record.options["method"]]
    columns = ((INTERCEPT,) if record.options["fit_intercept"] else ()) + tuple(features)
    if not columns or len(set(columns)) != len(columns):
        raise FieldError("'feature_names' is empty, or names the intercept")
    for name in ("row_count", "weight_sum", "rows_dropped", "rows_left_out", "rank", "condition", "tolerance", "seed"):
        at_least_zero(getattr(record, name), f"record.{name}")
    if record.rank > len(columns):
        raise FieldError("'record.rank' is larger than the number of columns")
    if (record.sketch_size is not None) != method.sketched or record.sketch_size == 0:
        raise FieldError("'record.sketch_size' does not go with the method")
    at_least_zero(record.sketch_size, "record.sketch_size")
    if not record.partitions:
        raise FieldError("'record.partitions' is empty")
    for i, part in enumerate(record.partitions):
        for name in ("row_count", "rank", "condition"):
            at_least_zero(getattr(part, name), f"record.partitions[{i}].{name}")
    counts = [part.row_count for part in record.partitions]
    whole = method.sketched and not method.by_partition
    if record.row_count != (max(counts) if whole else sum(counts)) or (whole and len(set(counts)) > 1):
        raise FieldError("'record.row_count' is not that of 'record.partitions'")
    for i, left_out in enumerate(record.partitions_left_out):
        at_least_zero(left_out.row_count, f"record.partitions_left_out[{i}].row_count")
    for i, (column, others) in enumerate(record.aliased):
        if not {column, *others} <= set(columns):
            raise FieldError(f"'record.aliased[{i}]' names a column that there is not")


def check_shapes(read: dict[str, Any]) -> None:
    """Give arrays without entries their shape, and refuse those of another."""
    features, targets = len(read["feature_names"]), len(read["target_names"])
    fits = len(read["partition_coefficients"])
    if fits not in (1, len(read["record"].partitions)):
        raise FieldError("'partition_coefficients' has another number of fits than 'record.partitions'")
    shapes = {
        "coefficients": (features, targets),
        "intercept": (targets,),
        "centre": (features,),
        "level": (targets,),
        "partition_coefficients": (fits, features, targets),
        "partition_intercepts": (fits, targets),
    }
    for name, shape in shapes.items():
        found = read[name]
        if found.shape != shape[: found.ndim] or (found.ndim < len(shape) and 0 not in shape[: found.ndim]):
            raise FieldError(f"'{name}' has the shape {_times(found.shape)}, not {_times(shape)}")
        read[name] = found.reshape(shape)
    for name in ("certificates", "inferences"):
        if len(read[name]) != targets:
            raise FieldError(f"'{name}' has {len(read[name])} entries, not one for each of {targets} targets")


def _times(shape: Sequence[int]) -> str:
    return " × ".join(str(length) for length in shape)


def check_agreement(read: dict[str, Any]) -> None:
    """Refuse coefficients that are not between those of the partitions, and predictions that differ from them."""
    coefficients, intercept, level = read["coefficients"], read["intercept"], read["level"]
    with np.errstate(over="ignore", invalid="ignore"):
        moved = read["centre"] @ coefficients
        products = np.abs(read["centre"]) @ np.abs(coefficients)
        if not np.isfinite(products).all():
            raise FieldError("'centre' and 'coefficients' have products beyond doubles")
        if not (np.abs(level - intercept - moved) <= _ROUNDING * (products + np.abs(intercept) + np.abs(level))).all():
            raise FieldError("'level' is not the prediction at 'centre'")
        options = read["record"].options
        inside = options.get("intercept") == "partition" or options.get("absorb") is not None
        if not options["fit_intercept"]:
            for name in ("intercept", "centre", "level", *(() if inside else ("partition_intercepts",))):
                if read[name].any():
                    raise FieldError(f"'{name}' is not zero in a model without an intercept")
        _check_between(coefficients, read["partition_coefficients"], 0.0, "coefficients")
        if inside:
            return
        reach = np.abs(read["centre"]) @ np.abs(read["partition_coefficients"]).max(axis=0)
        _check_between(intercept, read["partition_intercepts"], reach, "intercept")


def _check_between(values: FloatArray, fits: FloatArray, scale: Any, name: str) -> None:
    room = _ROUNDING * (np.abs(fits).max(axis=0) + scale)
    if not ((fits.min(axis=0) - room <= values) & (values <= fits.max(axis=0) + room)).all():
        raise FieldError(f"'{name}' is not between those of the partitions, 'partition_{name.rstrip('s')}s'")


def check_certificate(certificate: Certificate, field: str) -> None:
    """Refuse a certificate whose numbers do not go with its kind."""
    one_of(_CERTIFICATES, certificate.kind, f"{field}.kind")
    for name in ("standard_error", "minimal_loss", "noise_variance"):
        at_least_zero(getattr(certificate, name), f"{field}.{name}")
    if (certificate.kind == "unavailable") != (certificate.excess_loss is None):
        raise FieldError(f"'{field}.excess_loss' does not go with '{field}.kind'")
    if certificate.kind == "exact":
        # Estimates may be below zero, a loss that was computed may not.
        at_least_zero(certificate.excess_loss, f"{field}.excess_loss")
        at_least_zero(certificate.relative_excess_loss, f"{field}.relative_excess_loss")
    test = certificate.heterogeneity
    if test is None:
        return
    numbers = (test.statistic, test.degrees_of_freedom, test.residual_degrees_of_freedom, test.p_value)
    if any(value is None for value in numbers) != all(value is None for value in numbers):
        raise FieldError(f"'{field}.heterogeneity' has some numbers of a test and not all")
    if any(value is not None and value < 0 for value in numbers) or (test.p_value or 0.0) > 1:
        raise FieldError(f"'{field}.heterogeneity' has numbers that no test has")


def check_inference(inference: Inference, field: str, columns: int) -> None:
    """Refuse standard errors of another shape, or without degrees of freedom."""
    for name, freedom in (
        ("standard_errors", "degrees_of_freedom"),
        ("spread_standard_errors", "spread_degrees_of_freedom"),
    ):
        errors, degrees = getattr(inference, name), getattr(inference, freedom)
        if errors is None:
            continue
        if errors.shape != (columns,):
            raise FieldError(f"'{field}.{name}' has the shape {_times(errors.shape)}, not {columns}")
        if (errors < 0).any():
            raise FieldError(f"'{field}.{name}' has a number below zero")
        if degrees is None or degrees <= 0:
            raise FieldError(f"'{field}.{freedom}' is not a number above zero")
    at_least_zero(inference.noise_variance, f"{field}.noise_variance")
    if inference.r_squared is not None and inference.r_squared > 1 + _ROUNDING:
        raise FieldError(f"'{field}.r_squared' is above 1")
    for name in ("noise_variance_of", "r_squared_of"):
        one_of((THIS_FIT, EXACT_FIT), getattr(inference, name), f"{field}.{name}")
    _check_covariance(inference.covariance, inference.standard_errors, f"{field}.covariance")
    _check_around_exact(inference.around_exact, f"{field}.around_exact", columns)
    one_of(("iid", "HC0", "HC1", "HC2", "HC3", "CRV1", "CRV3", "wild"), inference.vcov, f"{field}.vcov")
    if inference.level_covariance is not None and inference.level_covariance.shape != (columns,):
        raise FieldError(f"'{field}.level_covariance' has another shape than the standard errors")
    if inference.level_covariance is not None and inference.level_covariance[0] < 0:
        raise FieldError(f"'{field}.level_covariance' begins with a variance below zero")
    root = inference.covariance_root
    if root is not None and (inference.covariance is None or root.ndim != 2 or root.shape[1] != columns):
        raise FieldError(f"'{field}.covariance_root' has another shape than the covariance, or there is none")
    if (inference.wild is not None) != (inference.vcov == "wild"):
        raise FieldError(f"'{field}.wild' does not go with '{field}.vcov'")
    for name, kept in (("wild", inference.wild), ("inverted", inference.inverted)):
        if kept is not None:
            _check_kept(kept, f"{field}.{name}", columns)


def _check_kept(kept: KeptIntervals, field: str, columns: int) -> None:
    """Refuse p-values that are none, and intervals of another shape."""
    if kept.p_values.shape != (columns,) or (kept.p_values < 0).any() or (kept.p_values > 1).any():
        raise FieldError(f"'{field}.p_values' are not one for each column, from 0 to 1")
    shape = (len(kept.levels), columns, 2)
    if kept.intervals.shape != shape or kept.unbounded.shape != shape:
        raise FieldError(f"'{field}.intervals' has the shape {_times(kept.intervals.shape)}, not {_times(shape)}")


def _check_around_exact(known: AroundExact, field: str, columns: int) -> None:
    """Refuse intervals for exact least squares whose parts do not go together."""
    for name in ("centre", "standard_errors"):
        found = getattr(known, name)
        if found is not None and found.shape != (columns,):
            raise FieldError(f"'{field}.{name}' has the shape {_times(found.shape)}, not {columns}")
    if known.standard_errors is not None and (known.standard_errors < 0).any():
        raise FieldError(f"'{field}.standard_errors' has a number below zero")
    if (known.standard_errors is None) != bool(known.reason):
        raise FieldError(f"'{field}.reason' does not go with '{field}.standard_errors'")
    wide = known.standard_errors is not None and bool(known.standard_errors.any())
    if wide != (known.degrees_of_freedom is not None) or (known.degrees_of_freedom or 1.0) <= 0:
        raise FieldError(f"'{field}.degrees_of_freedom' does not go with '{field}.standard_errors'")
    _check_covariance(known.covariance, known.standard_errors, f"{field}.covariance")


def _check_covariance(covariance: FloatArray | None, errors: FloatArray | None, field: str) -> None:
    """Refuse a covariance that is not that of the standard errors."""
    if covariance is None:
        return
    if errors is None or covariance.shape != (len(errors), len(errors)):
        raise FieldError(f"'{field}' has another shape than the standard errors, or there are none")
    with np.errstate(over="ignore"):
        squares = errors**2
    if not np.isfinite(squares).all():
        raise FieldError(f"'{field}' goes with standard errors that have no squares")
    room = _ROUNDING * np.outer(errors, errors)
    if (np.abs(covariance - covariance.T) > 2 * room).any() or (
        np.abs(np.diagonal(covariance) - squares) > 1e-6 * squares
    ).any():
        raise FieldError(f"'{field}' is not that of the standard errors")


def check_outlook(outlook: Outlook, targets: int) -> None:
    """Refuse an outlook of other targets, or with points that no curve has."""
    if len(outlook.targets) not in (0, targets):
        raise FieldError(f"'outlook.targets' has {len(outlook.targets)} entries, not one for each of {targets} targets")
    if outlook.divergences is not None and any(len(row) != len(outlook.divergences) for row in outlook.divergences):
        raise FieldError("'outlook.divergences' is not square")
    for i, target in enumerate(outlook.targets):
        for name in ("over_partitions", "over_sizes"):
            for j, point in enumerate(getattr(target, name)):
                where = f"outlook.targets[{i}].{name}[{j}]"
                one_of(_BASES, point.basis, f"{where}.basis")
                for count in ("partitions", "sketch_size"):
                    at_least_zero(getattr(point, count) - 1, f"{where}.{count}")
