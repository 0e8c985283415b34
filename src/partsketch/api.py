"""`partsketch.fit`: from files, data frames and streams to a model."""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Mapping, Sequence
from functools import partial
from os import PathLike, fspath
from typing import Any, Literal

from partsketch.engines.base import Engine, using_engine
from partsketch.errors import PartsketchWarning
from partsketch.fitting import fit_source
from partsketch.model import Model
from partsketch.options import FitOptions, seed_from
from partsketch.origin import with_origin
from partsketch.planner.limits import Limits, limits_from
from partsketch.sources import open_source
from partsketch.sources.base import Source
from partsketch.sources.opening import are_paths
from partsketch.sources.readable import open_readable


def fit(
    data: Any,
    target: str | Sequence[str],
    features: Sequence[str] | None = None,
    *,
    method: str = "auto",
    n_partitions: int = 8,
    partition_by: str = "order",
    remainder: str = "spread",
    sketch: str = "gaussian",
    sketch_size: int | None = None,
    sparsity: int | None = None,
    fit_intercept: bool = True,
    averaging: str = "equal",
    alpha: float = 0.0,
    engine: Any = "local",
    random_state: Any = None,
    weights: str | None = None,
    encode: bool = False,
    missing: Literal["error", "drop"] = "error",
    on_partition_error: Literal["raise", "drop"] = "raise",
    deadline: float | None = None,
    min_partitions: int | None = None,
    checkpoint: str | PathLike[str] | None = None,
    limits: Limits | Mapping[str, Any] | None = None,
    route: str = "auto",
) -> Model:
    """Fit a linear model to data that need not fit into memory.

    Parameters
    ----------
    data
        A path, a glob or a list of them (Parquet, CSV, Feather, .npy; local or remote), a data frame or anything with
        the Arrow C stream interface, a NumPy array, or a SciPy sparse matrix; or a collection of a cluster (a Dask
        array or data frame, a Ray dataset, a Spark data frame), which stays there and brings its engine.
    target
        Name of the target column, or several.
    features
        Names of the feature columns; None takes all others.
    method, n_partitions, partition_by, remainder, sketch, sketch_size, sparsity, fit_intercept, averaging, alpha, \
route, engine, random_state
        As in `SketchedRegression`; partition_by may also be "file".
    weights
        Name of a column of sample weights.
    encode
        Whether to one-hot encode text columns; otherwise they are refused.
    missing
        "error" refuses missing values, "drop" leaves their rows out and counts them.
    on_partition_error
        "raise", or "drop": partitions that cannot be read are left out and named in the model's record; with
        partition_by="file" also files that cannot be opened. It needs partitions by order or by file.
    deadline
        Seconds for the summaries, counted from when the data are open; partitions that have not arrived by then are
        left out.
    min_partitions
        Fewer partitions than this are refused; default 1.
    checkpoint
        A folder that keeps what is finished: a run that was killed and is started again does only the rest.
    limits
        With method="auto": what may not be exceeded, a `Limits` or a mapping such as `{"max_excess": "1%"}`.

    Returns
    -------
    Model
        The fitted model.

    Examples
    --------
    >>> import partsketch as ps, pyarrow as pa
    >>> table = pa.table({"x": range(100), "y": [2.0 * x + 1 for x in range(100)]})
    >>> model = ps.fit(table, target="y")
    >>> round(float(model.coefficients[0, 0]), 6), round(float(model.intercept[0]), 6)
    (2.0, 1.0)
    """
    options = FitOptions(
        method=method,
        n_partitions=n_partitions,
        partition_by=partition_by,
        remainder=remainder,
        sketch=sketch,
        sketch_size=sketch_size,
        sparsity=sparsity,
        fit_intercept=bool(fit_intercept),
        seed=seed_from(random_state, checkpoint),
        averaging=averaging,
        alpha=alpha,
        on_partition_error=on_partition_error,
        deadline=deadline,
        min_partitions=min_partitions,
        checkpoint=None if checkpoint is None else fspath(checkpoint),
        limits=None if limits is None else limits_from(limits),
        route=route,
    )
    with using_engine(engine, data) as runner:
        source = open_for_fit(data, target, features, options, weights, encode, missing, runner)
        result = fit_source(source, options, runner)
    for sentence in result.model.record.warnings:
        python_warnings.warn(sentence, PartsketchWarning, stacklevel=2)
    return with_origin(result.model, data, target, features, weights, encode, missing)


def open_for_fit(
    data: Any,
    target: str | Sequence[str],
    features: Sequence[str] | None,
    options: FitOptions,
    weights: str | None,
    encode: bool,
    missing: Literal["error", "drop"],
    engine: Engine | None = None,
) -> Source:
    """Open the data with the columns that a fit with these options needs.

    When partitions are files and may be left out, those that cannot be opened are.
    """
    open_chosen = partial(
        open_source,
        target=target,
        features=features,
        weights=weights,
        partition_column=options.partition_column,
        encode=encode,
        missing=missing,
        fit_intercept=options.fit_intercept,
        engine=engine,
    )
    if options.on_partition_error == "drop" and options.partition_by == "file" and are_paths(data):
        return open_readable(data, open_chosen)
    return open_chosen(data)
