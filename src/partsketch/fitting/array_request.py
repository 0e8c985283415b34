"""What the estimator does with its arguments before they become a source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight, validate_data

from partsketch.common.errors import InputError
from partsketch.engines.base import Engine
from partsketch.fitting.options import RESERVED_PARTITIONS
from partsketch.fitting.robust import vcov
from partsketch.sources.base import Source
from partsketch.sources.cluster.chunks import cluster_of
from partsketch.sources.labelled import LabelledSource
from partsketch.sources.memory.arrays import array_source, refuse_masked


def open_checked(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    partition_column: str | None,
    engine: Engine,
    reset: bool = True,
) -> Source:
    """Check the data by scikit-learn's rules, note their columns in the estimator, and return them as a source."""
    if getattr(estimator, "absorb", None) is not None:
        raise InputError(
            f"absorb={estimator.absorb!r} names a column of the data, and X has features alone: use partsketch.fit."
        )
    if len(vcov.clusters_of(vcov.read_vcov(getattr(estimator, "vcov", vcov.IID)))) > 1:
        raise InputError(f"vcov={estimator.vcov!r} has clusters of two columns: use partsketch.fit.")
    if cluster_of(X) is not None:
        source = open_collection(X, y, sample_weight, partition_column, engine)
        estimator.n_features_in_ = len(source.feature_names)
        estimator.__dict__.pop("feature_names_in_", None)
        if hasattr(X, "columns"):
            estimator.feature_names_in_ = np.array(source.feature_names, dtype=object)
        return source
    refuse_masked(y, "y")
    refuse_masked(sample_weight, "sample_weight")
    target = y
    labels, X = split_partition_column(X, partition_column, required=True)
    # Finiteness of X is checked on the way, tile by tile, instead of in a pass of its own over memory.
    X, y = validate_data(
        estimator,
        X,
        y,
        reset=reset,
        accept_sparse=("csr", "csc"),
        dtype="numeric",
        ensure_all_finite=False,
        ensure_min_samples=2 if reset else 1,
        multi_output=True,
        y_numeric=True,
    )
    if sample_weight is not None:
        sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
    names = getattr(estimator, "feature_names_in_", None)
    features = None if names is None else [str(name) for name in names]
    source = array_source(X, y, sample_weight, features, target_names(target, y, features or ()))
    return source if labels is None else LabelledSource.from_values(source, labels)


def open_collection(X: Any, y: Any, sample_weight: Any, partition_column: str | None, engine: Engine) -> Source:
    """Return features and targets that stay on a cluster as a source; nothing of their values is looked at here."""
    if partition_column is not None:
        raise InputError(
            f"partition_by={partition_column!r} names a column: fit a collection of a cluster by the values of a "
            "column with partsketch.fit(frame, target=…), or use 'order' or 'shuffle'."
        )
    names = [str(name) for name in getattr(X, "columns", ())]
    # A Dask array has a name too, but it is Dask's.
    named = y if hasattr(y, "to_dask_array") or not hasattr(y, "chunks") else None
    return engine.open_arrays(X, y, sample_weight, names or None, target_names(named, y, names))


def target_names(target: Any, values: NDArray[Any], features: Sequence[str]) -> list[str]:
    """Return the targets' own names if they have any, else "y" or "y0", "y1", …; none that a feature has."""
    count = 1 if values.ndim == 1 else values.shape[1]
    own = getattr(target, "columns", None) if values.ndim == 2 else [getattr(target, "name", None)]
    names = ["y"] if count == 1 else [f"y{number}" for number in range(count)]
    if own is not None and len(own) == count and all(isinstance(name, str) and name for name in own):
        names = [str(name) for name in own]
    taken = set(features)
    if taken.intersection(names) or len(set(names)) < count:
        names = ["y"] if count == 1 else [f"y{number}" for number in range(count)]
        while taken.intersection(names):
            names = [f"{name}_" for name in names]
    return names


def column_beside_features(options: Mapping[str, Any]) -> str | None:
    """Return the column of X that is no feature, by the options of a fit: that of clusters or of partitions."""
    column: str = next(iter(vcov.clusters_of(options["vcov"])), options["partition_by"])
    return None if column in RESERVED_PARTITIONS else column


def split_partition_column(X: Any, name: str | None, required: bool) -> tuple[NDArray[Any] | None, Any]:
    """Return the values of the partition column, if there is one, and the data frame without it."""
    refuse_masked(X, "X")
    if name is None or (not required and name not in getattr(X, "columns", ())):
        return None, X
    if not hasattr(X, "columns"):
        raise InputError(
            f"partition_by={name!r} names a column, so X must be a data frame; or use 'order' or 'shuffle'."
        )
    if name not in X.columns:
        raise InputError(f"partition_by is {name!r}: choose 'order', 'shuffle', or one of the columns of X.")
    # pandas and polars agree on indexing by a list of names.
    return np.asarray(X[name]), X[[column for column in X.columns if column != name]]


def is_vector(y: Any) -> bool:
    """Tell whether targets are given as a vector; collections on a cluster know it without being computed."""
    return int(y.ndim if hasattr(y, "ndim") else np.asarray(y).ndim) == 1
