"""Which way an exact fit takes: the factor of all rows, or refinement, whichever is quicker for these rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from partsketch.common.errors import InputError
from partsketch.engines.base import Engine
from partsketch.fitting.options import FitOptions
from partsketch.sketches.centre import middle_if_narrow, rows_to_look_at
from partsketch.sources.base import Source
from partsketch.summaries.partitions import UNKNOWN_END, Partitioning

if TYPE_CHECKING:
    from partsketch.fitting.refinement.exact import Refined

#: Dense rows: fewer columns, or fewer rows per column, leave nothing to gain (docs/exact.md has the table).
LEAST_DENSE_COLUMNS, LEAST_ROWS_PER_COLUMN = 400, 50

#: Sparse rows: operations of the factor, in all and for each stored entry, from which passes over the entries pay;
#: below, a factor takes about a second and has standard errors too.
LEAST_SPARSE_WORK, LEAST_WORK_PER_ENTRY = 1e11, 4000

#: The random numbers of a preconditioner are always the same: an exact fit does not depend on a seed, to the last bit.
_SEED = 0

FACTOR_ROUTE = (
    "a block of rows takes the fast Gram route while no variance inflation factor of a feature exceeds 10,000, "
    "and otherwise is taken around a centre, or without any rounding"
)


def refine_if_quicker(
    source: Source, partitioning: Partitioning, options: FitOptions, engine: Engine
) -> tuple[Refined | None, str]:
    """Return the refined fit, or None when the factor of all rows should be made; and the reason."""
    if options.route == "factor" or options.alpha > 0 or options.checkpoint is not None:
        return None, FACTOR_ROUTE
    rows = _rows(source, partitioning)
    if options.route == "iterate":
        if not source.replayable:
            raise InputError("route='iterate' reads the rows several times, and these can be read once only.")
        sparse = is_sparse(source)
        why = "route='iterate' was asked for"
        if options.fit_intercept and not sparse and _lies_far_from_zero(source):
            return None, f"{why}, but products of columns that lie far from zero lose their digits; so {FACTOR_ROUTE}"
    else:
        if engine.name != "local" or rows is None or source.features_in_memory is None:
            return None, FACTOR_ROUTE
        columns = len(source.feature_names) + int(options.fit_intercept)
        entries = source.stored_entries
        sparse = entries is not None
        if entries is not None:
            if rows * columns**2 < max(LEAST_SPARSE_WORK, LEAST_WORK_PER_ENTRY * (entries + rows)):
                return None, FACTOR_ROUTE
            why = f"of {columns} columns a row fills {entries / rows:.3g} on average, too few to make a factor of them"
        else:
            if columns < LEAST_DENSE_COLUMNS or rows < LEAST_ROWS_PER_COLUMN * columns:
                return None, FACTOR_ROUTE
            if not _row_major(source) or _gram_is_safe(source, options.fit_intercept, columns):
                return None, FACTOR_ROUTE
            if _lies_far_from_zero(source):
                return None, FACTOR_ROUTE
            why = f"the Gram matrix of the first rows of {columns} columns is too ill-conditioned to be relied on"
    from partsketch.fitting.refinement.exact import Refinement

    refinement = Refinement(source, partitioning, options.fit_intercept, engine, _SEED)
    refined = refinement.sparse() if sparse else refinement.dense()
    if refined is None:
        return None, f"refinement was tried ({why}) but columns are as good as dependent; so {FACTOR_ROUTE}"
    return refined, f"refinement: {why}; {refined.reason}"


def _rows(source: Source, partitioning: Partitioning) -> int | None:
    stop = None if partitioning.bounds is None else partitioning.bounds[-1]
    return source.row_count if stop in (None, UNKNOWN_END) else stop


def is_sparse(source: Source) -> bool:
    """Tell whether the rows are stored as sparse ones, for which a fit may do without a factor."""
    return source.stored_entries is not None


def _row_major(source: Source) -> bool:
    features = source.features_in_memory
    return bool(features.dtype == np.float64 and features.flags.c_contiguous)


def _lies_far_from_zero(source: Source) -> bool:
    """Tell whether a column is narrow beside its place: products of passes would lose its digits."""
    rows = rows_to_look_at(len(source.feature_names))
    block = next(iter(source.read(0, rows, rows)))
    values = np.empty((len(source.feature_names) + len(source.target_names), len(block)))
    block.copy_into(values, 0, len(block))
    return middle_if_narrow(values) is not None


def _gram_is_safe(source: Source, fit_intercept: bool, columns: int) -> bool:
    """Tell whether the plain Gram matrix of the first rows is well-conditioned enough."""
    from partsketch.sketches.triangular_accumulator import TriangularAccumulator

    # A few more rows than columns: that inflates variances by a handful, where thousands are looked for.
    rows = columns + columns // 4 + 256
    block = next(iter(source.read(0, rows, rows)))
    width = columns + len(source.target_names)
    tile = np.ones((len(block), width)).T  # by rows, as the kernel wants them
    block.copy_into(tile[int(fit_intercept) :], 0, len(block))
    with np.errstate(all="ignore"):
        return TriangularAccumulator(width, len(source.target_names)).trusts_plain_gram(tile)
