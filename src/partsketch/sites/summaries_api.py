"""`partsketch.summarise` and `read_summaries`: from rows and files to what answers every regression."""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from partsketch.common.errors import PartsketchWarning
from partsketch.common.signatures import passes_on
from partsketch.fitting.data_request import DataKeywords, DataRequest
from partsketch.questions.summaries import Summaries
from partsketch.sites.disclosure.concerns import LEAST_LEVEL_ROWS
from partsketch.sites.options import SketchOptions
from partsketch.sites.summarise import read_all, request_of, summarise_data


class SummariseKeywords(DataKeywords, total=False):
    """Keywords of `summarise` that say how columns are read, typed; their defaults are those of `DataRequest`."""

    levels: Mapping[str, Sequence[str]] | None


@passes_on(SummariseKeywords, DataRequest)
def summarise(
    data: Any,
    columns: Sequence[str] | None = None,
    *,
    formula: str | None = None,
    partition_by: str | None = None,
    n_partitions: int | None = None,
    engine: Any = "local",
    random_state: Any = 0,
    site: str = "",
    label: str = "",
    allow: Sequence[str] | None = None,
    least_level_rows: int = LEAST_LEVEL_ROWS,
    **keywords: Unpack[SummariseKeywords],
) -> Summaries:
    """Summarise rows exactly, in one pass, so that any linear model among their columns follows without the rows.

    Parameters
    ----------
    data, weights, encode, missing, engine
        As in `partsketch.fit`.
    columns
        Columns to summarise, targets and features alike; None takes all but those of weights and partitions.
    formula
        In place of columns: "y ~ a + b" summarises these, and y is the target where none is named later.
    partition_by
        A column whose values are the partitions, "file", "order" or "shuffle"; None makes one partition. Partitions are
        the clusters of cluster errors and what folds are made of.
    n_partitions
        With "order" and "shuffle": how many.
    levels
        Levels of text columns to encode, first the reference level; sites that agree on them can be joined.
    random_state
        Seed of "shuffle".
    site, label
        Who made it, and of which rows (a day, say).
    allow, least_level_rows
        As in `partsketch.sketch`: with a list, even an empty one, refuse what would show single rows of a partition if
        the summaries became a file that travels, unless it is in the list; the rows are read once more for that. None
        checks nothing: summaries in memory show nothing to anybody.

    Returns
    -------
    Summaries
        Save them with `save`; ask with `fit`, `ridge_path`, `lasso_path` and `instrument`.

    Examples
    --------
    >>> import partsketch as ps, pyarrow as pa
    >>> table = pa.table({"x": range(100), "y": [2.0 * x + 1 for x in range(100)], "city": ["a", "b"] * 50})
    >>> summaries = ps.summarise(table, partition_by="city")
    >>> model = summaries.fit("y", ["x"])
    >>> round(float(model.coefficients[0, 0]), 6)
    2.0
    """
    request = request_of(data, columns, formula, **keywords)
    cut: dict[str, Any] = {"n_partitions": n_partitions, "partition_by": partition_by}
    checks: dict[str, Any] = {"allow": allow, "least_level_rows": least_level_rows}
    options = SketchOptions.made_of(random_state, sketch="triangular", site=site, label=label, **cut, **checks)
    summaries, sentences = summarise_data(request, options, engine)
    for sentence in sentences:
        python_warnings.warn(sentence, PartsketchWarning, stacklevel=2)
    return summaries


def read_summaries(files: Any) -> Summaries:
    """Read summaries that `Summaries.save` or `partsketch summarise` wrote.

    Parameters
    ----------
    files
        A path or a glob, or a list of them: files of several sites become one `Summaries`. Files of `sketch` with
        sketch="triangular" are read too.

    Returns
    -------
    Summaries
        All partitions of all files.
    """
    return read_all(files)
