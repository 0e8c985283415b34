"""`partsketch.fit`, `sketch` and `combine`: from files, data frames, streams and sketches to a model."""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Any, Literal, overload

from partsketch.common.errors import InputError, PartsketchWarning
from partsketch.engines.base import using_engine
from partsketch.fitting.data_request import open_for_fit, with_origin
from partsketch.fitting.limits import Limits, limits_from
from partsketch.fitting.options import FitOptions, seed_from
from partsketch.model.model import Model
from partsketch.planner.fit_request import fit_as_asked
from partsketch.sites.combine import combine_files, read_summaries
from partsketch.sites.sketch import SketchOptions, open_for_sketch, sketch_source
from partsketch.summaries.summary import Summary


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
        result = fit_as_asked(source, options, runner)
    for sentence in result.model.record.warnings:
        python_warnings.warn(sentence, PartsketchWarning, stacklevel=2)
    return with_origin(result.model, data, target, features, weights, encode, missing)


@overload
def sketch(
    data: Any, target: str | Sequence[str] | None = ..., features: Sequence[str] | None = ..., *, n_partitions: int,
    partition_by: str | None = ..., sketch: str = ..., sketch_size: int | None = ..., fit_intercept: bool = ...,
    site: str = ..., label: str = ..., private: bool = ..., round_rows: int = ..., engine: Any = ...,
    random_state: Any = ..., weights: str | None = ..., encode: bool = ...,
    levels: Mapping[str, Sequence[str]] | None = ..., missing: Literal["error", "drop"] = ...,
) -> tuple[Summary, ...]: ...  # fmt: skip


@overload
def sketch(
    data: Any, target: str | Sequence[str] | None = ..., features: Sequence[str] | None = ..., *,
    n_partitions: int | None = ..., partition_by: str, sketch: str = ..., sketch_size: int | None = ...,
    fit_intercept: bool = ..., site: str = ..., label: str = ..., private: bool = ..., round_rows: int = ...,
    engine: Any = ..., random_state: Any = ..., weights: str | None = ..., encode: bool = ...,
    levels: Mapping[str, Sequence[str]] | None = ..., missing: Literal["error", "drop"] = ...,
) -> tuple[Summary, ...]: ...  # fmt: skip


@overload
def sketch(
    data: Any, target: str | Sequence[str] | None = ..., features: Sequence[str] | None = ..., *,
    n_partitions: None = ..., partition_by: None = ..., sketch: str = ..., sketch_size: int | None = ...,
    fit_intercept: bool = ..., site: str = ..., label: str = ..., private: bool = ..., round_rows: int = ...,
    engine: Any = ..., random_state: Any = ..., weights: str | None = ..., encode: bool = ...,
    levels: Mapping[str, Sequence[str]] | None = ..., missing: Literal["error", "drop"] = ...,
) -> Summary: ...  # fmt: skip


def sketch(
    data: Any,
    target: str | Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    *,
    n_partitions: int | None = None,
    partition_by: str | None = None,
    sketch: str = "gaussian",
    sketch_size: int | None = None,
    fit_intercept: bool = True,
    site: str = "",
    label: str = "",
    private: bool = False,
    round_rows: int = 1,
    engine: Any = "local",
    random_state: Any = None,
    weights: str | None = None,
    encode: bool = False,
    levels: Mapping[str, Sequence[str]] | None = None,
    missing: Literal["error", "drop"] = "error",
) -> Summary | tuple[Summary, ...]:
    """Summarise the rows of one site; only the summary travels.

    Parameters
    ----------
    data, features, engine, weights, encode, missing
        As in `partsketch.fit`.
    target
        Columns that are meant as targets; None when that is to be decided later. Any column can be the target of
        `combine`.
    n_partitions, partition_by
        How the rows are cut, as in `partsketch.fit`: one summary for each partition. Both None: one of all rows.
    sketch
        Kind of sketch; "triangular" is the exact summary.
    sketch_size
        Rows of the sketch; None takes four per column, the same at all sites. All sites need the same.
    fit_intercept
        Whether there is a column of ones.
    site, label
        Name of the site, and of these rows (a day, say). Both enter the random numbers, so sites may share a seed.
    private
        Take random numbers from the operating system; neither seed nor row numbers are stored.
    round_rows
        Round the row count of a private summary to a multiple of this.
    random_state
        Seed; a site without a name uses the same random numbers as `partsketch.fit`.
    levels
        Levels of text columns to encode, first the reference level; sites that agree on them can be combined.

    Returns
    -------
    Summary or tuple of Summary
        One summary; with n_partitions or partition_by a tuple, one for each partition. Save them with `save`.

    Examples
    --------
    >>> import partsketch as ps, pyarrow as pa
    >>> table = pa.table({"x": range(100), "y": [2.0 * x + 1 for x in range(100)]})
    >>> north = ps.sketch(table, target="y", sketch="triangular", site="north")
    >>> model = ps.combine([north])
    >>> round(float(model.coefficients[0, 0]), 6)
    2.0
    """
    if private and random_state is not None:
        raise InputError("A private sketch takes no seed: its random numbers must not be drawn again.")
    options = SketchOptions(
        kind=sketch,
        size=sketch_size,
        seed=None if private else seed_from(random_state),
        n_partitions=n_partitions,
        partition_by=partition_by,
        fit_intercept=bool(fit_intercept),
        site=site,
        label=label,
        private=private,
        round_rows=round_rows,
    )
    source = open_for_sketch(data, target, features, options, weights, encode, levels, missing)
    with using_engine(engine) as runner:
        made = sketch_source(source, options, runner)
    for sentence in made.warnings:
        python_warnings.warn(sentence, PartsketchWarning, stacklevel=2)
    return made.summaries[0] if n_partitions is None and partition_by is None else made.summaries


def combine(
    files: Any,
    target: str | Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    *,
    method: str | None = None,
    fit_intercept: bool | None = None,
    averaging: str = "equal",
    alpha: float = 0.0,
) -> Model:
    """Make a model, its certificate and intervals from sketches alone.

    Parameters
    ----------
    files
        Paths or globs of sketch files, or summaries, or a list of them, in any order.
    target, features
        Any columns of the sketches. By default the targets that were named when the sketches were made, and all other
        columns as features. The name of an encoded column stands for all its indicators.
    method
        "stack" (the default for sketches) or "partition"; for exact summaries "exact" (the default) or "average".
    fit_intercept
        None: if the sketches have a column of ones.
    averaging, alpha
        As in `SketchedRegression`.

    Returns
    -------
    Model
        As from `partsketch.fit`; its record names the files.
    """
    fit = combine_files(read_summaries(files), target, features, method, fit_intercept, averaging, alpha)
    for sentence in fit.model.record.warnings:
        python_warnings.warn(sentence, PartsketchWarning, stacklevel=2)
    return fit.model
