"""`partsketch.sketch` and `partsketch.combine`: sites that share only sketches."""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, overload

from partsketch.combining import combine_files, read_summaries
from partsketch.engines.base import using_engine
from partsketch.errors import InputError, PartsketchWarning
from partsketch.model import Model
from partsketch.options import seed_from
from partsketch.sketching import SketchOptions, sketch_source
from partsketch.sources import open_source
from partsketch.sources.base import Source
from partsketch.sources.encoding import Encoding
from partsketch.summary import Summary


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


def open_for_sketch(
    data: Any,
    target: str | Sequence[str] | None,
    features: Sequence[str] | None,
    options: SketchOptions,
    weights: str | None,
    encode: bool,
    levels: Mapping[str, Sequence[str]] | None,
    missing: Literal["error", "drop"],
) -> Source:
    """Open the data with the columns that a sketch with these options needs."""
    return open_source(
        data,
        target=target,
        features=features,
        weights=weights,
        partition_column=options.partition_column,
        encode=encode,
        missing=missing,
        fit_intercept=options.fit_intercept,
        encoding=None if levels is None else _encoding(levels, options.fit_intercept),
    )


def _encoding(levels: Mapping[str, Sequence[str]], fit_intercept: bool) -> Encoding:
    if not isinstance(levels, Mapping):
        raise InputError('levels is a mapping from columns to their levels, such as {"colour": ["blue", "red"]}.')
    for column, names in levels.items():
        texts = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
        if not texts or len(names) < 1 or len(set(names)) != len(names):
            raise InputError(f"The levels of column {column!r} must be a list of distinct texts.")
    return Encoding(tuple((column, tuple(names)) for column, names in levels.items()), drop_first=fit_intercept)


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
