"""`partsketch.fit`, `sketch` and `combine`: from files, data frames and sketches to a model."""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Unpack, overload

from partsketch.common.errors import PartsketchWarning
from partsketch.common.signatures import divided, passes_on
from partsketch.engines.base import using_engine
from partsketch.fitting.data_request import DataRequest
from partsketch.fitting.keywords import FIT_KEYWORDS, FitKeywords
from partsketch.fitting.limits import Limits
from partsketch.fitting.options import FitOptions
from partsketch.model.model import Model
from partsketch.planner.fit_request import fit_as_asked
from partsketch.sites.combine import combine_files
from partsketch.sites.noisy.release import release
from partsketch.sites.options import SketchKeywords, SketchOptions
from partsketch.sites.reading import read_files
from partsketch.sites.sketch import sketch_source
from partsketch.summaries.noisy_summary import NoisySummary
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
    weighting: str = "rows",
    noise: str = "auto",
    alpha: float = 0.0,
    vcov: str | Mapping[str, str] = "iid",
    absorb: str | None = None,
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
        A path, a folder, a glob or a list of them (Parquet, CSV, Feather, .npy; local or remote; names of folders such
        as year=2024 are columns; `CsvFiles` says how CSV is written; "-" is the standard input), a data frame or
        anything with the Arrow C stream interface, a function that gives a new Arrow stream at every call, a dict of
        arrays, a pyarrow Dataset, a polars LazyFrame, a NumPy array, or a SciPy sparse matrix; or a collection of a
        cluster (a Dask array or data frame, a Ray dataset, a Spark data frame), which stays and brings its engine.
    target
        Name of the target column, or several; or a formula such as "fare ~ log(distance) + C(zone) * night", which
        names its features too.
    features
        Names of the feature columns; None takes all others.
    method, n_partitions, partition_by, remainder, sketch, sketch_size, sparsity, fit_intercept, averaging, weighting, \
noise, alpha, vcov, absorb, route, engine, random_state
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
    given = locals()
    keywords = FitKeywords(**{name: given[name] for name in FIT_KEYWORDS})
    request, keywords = DataRequest(data, target, features, weights, encode, missing).absorbing(keywords)
    options = FitOptions.made_of(keywords)
    with using_engine(engine, data) as runner:
        model = fit_as_asked(request.open_for(options, runner), options, runner).model
    _warn(model.record.warnings)
    return request.noted_in(model)


def _warn(sentences: Sequence[str]) -> None:
    """Give warnings to whoever called the function that calls this one."""
    for sentence in sentences:
        python_warnings.warn(sentence, PartsketchWarning, stacklevel=3)


@overload
def sketch(
    data: Any, target: str | Sequence[str] | None = ..., features: Sequence[str] | None = ..., *, n_partitions: int,
    partition_by: str | None = ..., epsilon: None = ..., engine: Any = ..., random_state: Any = ...,
    **keywords: Unpack[SketchKeywords],
) -> tuple[Summary, ...]: ...  # fmt: skip


@overload
def sketch(
    data: Any, target: str | Sequence[str] | None = ..., features: Sequence[str] | None = ..., *,
    n_partitions: int | None = ..., partition_by: str, epsilon: None = ..., engine: Any = ..., random_state: Any = ...,
    **keywords: Unpack[SketchKeywords],
) -> tuple[Summary, ...]: ...  # fmt: skip


@overload
def sketch(
    data: Any, target: str | Sequence[str] | None = ..., features: Sequence[str] | None = ..., *,
    n_partitions: None = ..., partition_by: None = ..., epsilon: None = ..., engine: Any = ..., random_state: Any = ...,
    **keywords: Unpack[SketchKeywords],
) -> Summary: ...  # fmt: skip


@overload
def sketch(
    data: Any, target: str | Sequence[str] | None = ..., features: Sequence[str] | None = ..., *,
    n_partitions: None = ..., partition_by: None = ..., epsilon: float, engine: Any = ..., random_state: Any = ...,
    **keywords: Unpack[SketchKeywords],
) -> NoisySummary: ...  # fmt: skip


@passes_on(SketchKeywords, DataRequest, SketchOptions)
def sketch(
    data: Any,
    target: str | Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    *,
    n_partitions: int | None = None,
    partition_by: str | None = None,
    epsilon: float | None = None,
    engine: Any = "local",
    random_state: Any = None,
    **keywords: Unpack[SketchKeywords],
) -> Summary | NoisySummary | tuple[Summary, ...]:
    """Summarise the rows of one site; only the summary travels.

    Parameters
    ----------
    data, features, engine, weights, encode, missing
        As in `partsketch.fit`.
    target
        Columns that are meant as targets, or a formula; None when that is to be decided later. Any column can be the
        target of `combine`.
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
    noise
        "measured": keep the residual variance of the target's exact fit to these rows, one number more, found in the
        same pass: weights of `combine` are then nearly as good as if noise were known. "estimated": leave it to the
        sketches. "auto" measures where that costs no more than the sketch: for Gaussian and orthogonal ones, unless
        private.
    epsilon, delta
        Promise differential privacy: sums of products with noise of OpenDP, one row added or removed. None promises
        nothing.
    bounds
        With epsilon: between which values each column lies, as is publicly known: a TOML file, or a mapping such as
        `{"age": (18, 90), "dose": {"lower": 0, "upper": 20, "spread": 2}}`. Indicators of levels need none.
    ledger, budget
        With epsilon: the file in which the release is entered (partsketch-ledger.jsonl unless named), and the ε that
        all releases of this site and label may not exceed together.
    allow, least_level_rows
        With a list, even an empty one, refuse what would show single rows if it became a file, as the command does:
        "few-rows", "few-exact-rows", "rare-levels" (fewer rows than least_level_rows), "leverage", "large-sketch",
        "plain-rows" (a sketch that holds rows as they are), unless it is in the list. None checks nothing: summaries
        that stay in memory show nothing to anybody.
    random_state
        Seed; a site without a name uses the same random numbers as `partsketch.fit`.
    levels
        Levels of text columns to encode, first the reference level; sites that agree on them can be combined. With a
        formula also knots and other numbers, by the expression they belong to, as
        `summary.about.encoding.design.found` of another site has them.

    Returns
    -------
    Summary, NoisySummary or tuple of Summary
        One summary, with epsilon a noisy one; with n_partitions or partition_by a tuple, one for each partition. Save
        them with `save`.

    Examples
    --------
    >>> import partsketch as ps, pyarrow as pa
    >>> table = pa.table({"x": range(100), "y": [2.0 * x + 1 for x in range(100)]})
    >>> north = ps.sketch(table, target="y", sketch="triangular", site="north")
    >>> model = ps.combine([north])
    >>> round(float(model.coefficients[0, 0]), 6)
    2.0
    """
    columns, asked = divided(keywords, SketchKeywords, DataRequest, "sketch")
    cut: dict[str, Any] = {"n_partitions": n_partitions, "partition_by": partition_by}
    options = SketchOptions.made_of(random_state, epsilon=epsilon, **cut, **asked)
    request = DataRequest(data, target, features, **columns)
    with using_engine(engine, data) as runner:
        if options.epsilon is not None:
            released = release(request, options, runner)
            _warn(released.warnings)
            return released.summary
        source = request.open(options.partition_column, options.fit_intercept, runner)
        if options.private:
            request.check_private(source)
        made = sketch_source(source, options, runner)
    _warn(made.warnings)
    return tuple(made.summaries) if options.cuts else made.summaries[0]


def combine(
    files: Any,
    target: str | Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    *,
    method: str | None = None,
    fit_intercept: bool | None = None,
    averaging: str = "equal",
    weighting: str = "rows",
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
    averaging, weighting, alpha
        As in `SketchedRegression`.

    Returns
    -------
    Model
        As from `partsketch.fit`; its record names the files.
    """
    fit = combine_files(read_files(files), target, features, method, fit_intercept, averaging, alpha, weighting)
    _warn(fit.model.record.warnings)
    return fit.model
