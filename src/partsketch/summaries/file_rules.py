"""What must be true of several fields of a sketch file together; docs/sketch-format.md states the same rules.

Whoever writes a file may make a mistake, and whoever changes one may want to: a wrong count would narrow intervals, and
a row that is in twice would count twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.plain_data import FieldError, read_as
from partsketch.common.sign_sums import SignSums, may_be_ones
from partsketch.common.sketch_law import EVEN_SAMPLE
from partsketch.sketches.base import Sketch
from partsketch.sources.encoding import Encoding
from partsketch.sources.formula.design import Design
from partsketch.summaries.provenance import Part, find_overlap
from partsketch.summaries.tasks import INTERCEPT

FloatArray = NDArray[np.float64]
Header = dict[str, Any]

#: The sum of squares of the ones in an exact file, against what it should be: a few roundings where every row counts
#: once, one per row where weights were added up.
_ROUNDING, _WEIGHTED_ROUNDING = 1e-9, 1e-6
#: A sum of squares of Gaussian numbers that is less likely than this is not one: of a million million honest files one
#: is refused.
IMPOSSIBLE = 1e-12
#: Sums of weights are told to two digits where counts are rounded.
_ROUNDED_WEIGHTS = 0.05


class HeaderError(ValueError):
    """What is wrong with a file, as the end of a sentence."""


def check_rules(values: Header, sketch: Sketch, parts: tuple[Part, ...]) -> None:
    """Refuse a header whose fields do not go together; their types are right."""
    for rule in _RULES:
        rule(values, sketch)
    overlap = find_overlap(list(enumerate(parts)))
    if overlap is not None:
        raise HeaderError("two of its parts hold the same rows")


def design_of(values: Header) -> Design | None:
    """Return the design of a formula that a header tells of, checked; None where it tells of none."""
    if "design" not in values:
        return None
    try:
        design: Design = read_as(Design, values["design"], "design", {})
        design.check()
    except (FieldError, InputError) as error:
        raise HeaderError(f"'design' in its header cannot be: {error}") from error
    return design


def _columns(values: Header, sketch: Sketch) -> None:
    columns = values["columns"]
    if len(set(columns)) != len(columns):
        raise HeaderError("a column name is repeated")
    if INTERCEPT in columns[1:]:
        raise HeaderError("'(intercept)' is not its first column")
    targets = values["targets"]
    if not set(targets) <= set(columns) or len(set(targets)) != len(targets) or INTERCEPT in targets:
        raise HeaderError("'targets' are not distinct names among its columns")


def _levels(values: Header, sketch: Sketch) -> None:
    encoding = Encoding(tuple((column, tuple(names)) for column, names in values["levels"]), values["drop_first"])
    design = design_of(values)
    if design is not None:
        made = {*design.feature_names, *design.target_names}
        if encoding.levels or made != set(values["columns"]) - {INTERCEPT} or values["drop_first"] != design.intercept:
            raise HeaderError("'design' makes other columns than it has")
        return
    if not encoding.levels and not values["drop_first"]:
        raise HeaderError("'drop_first' is false, yet nothing is encoded")
    columns = set(values["columns"])
    if len(set(encoding.columns)) != len(encoding.columns) or columns & set(encoding.columns):
        raise HeaderError("'levels' names a column twice, or one that is not encoded")
    for column, names in encoding.levels:
        if not names or len(set(names)) != len(names):
            raise HeaderError("'levels' are not distinct, at least one for each column")
        if not columns.issuperset(f"{column}={name}" for name in names[int(encoding.drop_first) :]):
            raise HeaderError("'levels' has a level without a column")


def _centre(values: Header, sketch: Sketch) -> None:
    columns = values["columns"]
    centre = values.get("centre", [0.0] * len(columns))
    if len(centre) != len(columns):
        raise HeaderError("'centre' has not one number per column")
    if any(centre) and (columns[0] != INTERCEPT or centre[0] != 0):
        raise HeaderError("'centre' takes something off without a column of ones, or off the ones")


def _private(values: Header, sketch: Sketch) -> None:
    if not values["private"]:
        return
    if not sketch.is_random:
        raise HeaderError("an exact summary cannot be private")
    if not sketch.can_be_private:
        raise HeaderError(f"a sketch of the kind {sketch.kind!r} cannot be private")
    if "centre" in values:
        raise HeaderError("it is private, yet tells a centre")
    if values["rows_dropped"] is not None:
        raise HeaderError("it is private, yet tells how many rows were dropped")
    for part in values["parts"]:
        if (part["seed"], part["start"]) != (None, None):
            raise HeaderError("it is private, yet tells a seed or row numbers")


def _seeds(values: Header, sketch: Sketch) -> None:
    seeds = [(part["seed"], part["stream"]) for part in values["parts"] if part["seed"] is not None]
    if seeds and not sketch.is_random:
        raise HeaderError("an exact summary has no seed")
    if sketch.is_random and not seeds and not values["private"]:
        raise HeaderError("it is not private, yet tells no seed")
    if len(set(seeds)) != len(seeds):
        raise HeaderError("two of its parts have the same seed and stream")


def _sparsity(values: Header, sketch: Sketch) -> None:
    for part in values["parts"]:
        sparsity = part["sparsity"]
        if (sparsity is None) != (sketch.default_sparsity is None):
            raise HeaderError("'sparsity' goes with the kind 'sparse_sign', and only with it")
        if sparsity is not None and sparsity > part["size"]:
            raise HeaderError("'sparsity' is larger than the size of its part")


def _sizes(values: Header, sketch: Sketch) -> None:
    sizes = [part["size"] for part in values["parts"]]
    if (sketch.is_random or len(sizes) == 1) and sum(sizes) != values["sketch_rows"]:
        raise HeaderError("the sizes of its parts do not add up to 'sketch_rows'")


def _counts(values: Header, sketch: Sketch) -> None:
    rows, multiple = values["row_count"], values["rounded_to"]
    if not values["weighted"] and values["weight_sum"] != rows:
        raise HeaderError("'weight_sum' is not 'row_count', yet rows have no weights")
    if multiple > 1 and all((part["seed"], part["start"]) != (None, None) for part in values["parts"]):
        raise HeaderError("'row_count' is rounded, yet no part is private")
    # Parts that were rounded differently may have been put together.
    if len(values["parts"]) == 1 and rows % multiple:
        raise HeaderError("'row_count' is not a multiple of 'rounded_to'")


def _ranges(values: Header, sketch: Sketch) -> None:
    parts = values["parts"]
    for part in parts:
        if (part["start"] is None) != (part["stop"] is None) or (part["start"] or 0) > (part["stop"] or 0):
            raise HeaderError("a part's 'start' and 'stop' are no range of rows")
        if part["start"] is None and part["contiguous"]:
            raise HeaderError("a part is 'contiguous', yet tells no range of rows")
    if any(part["start"] is None for part in parts):
        return
    length = sum(part["stop"] - part["start"] for part in parts)
    if values["row_count"] > length:
        raise HeaderError("'row_count' is larger than the ranges of its parts")
    # Only rows that were not cut tell of all that were dropped.
    uncut = len(parts) == 1 and parts[0]["contiguous"] and not parts[0]["partition"]
    if uncut and values["rows_dropped"] is not None and values["row_count"] + values["rows_dropped"] != length:
        raise HeaderError("'row_count' and 'rows_dropped' are not all rows of the range of its part")


_RULES: tuple[Callable[[Header, Sketch], None], ...] = (
    _columns,
    _levels,
    _centre,
    _private,
    _seeds,
    _sparsity,
    _sizes,
    _counts,
    _ranges,
)


def check_numbers(values: Header, sketch: Sketch, body: list[FloatArray]) -> None:
    """Refuse numbers that are not finite, that round nothing, or that are not those of so many rows."""
    if not all(np.isfinite(matrix).all() for matrix in body):
        raise HeaderError("its numbers are not all finite")
    if len(body) > 1 and (np.abs(body[1]) > 2.0**-52 * np.abs(body[0])).any():
        raise HeaderError("its second matrix is more than the rounding of the first")
    if values["columns"][0] != INTERCEPT:
        return
    # The ones have no centre, so that the first column of the first matrix is theirs to the last digit but one.
    with np.errstate(over="ignore"):
        found = float(np.sum(body[0][:, 0] ** 2))
    if not _is_sum_of_weights(found, values, sketch):
        raise HeaderError(f"its column of ones is not that of {values['row_count']} rows")


def _is_sum_of_weights(found: float, values: Header, sketch: Sketch) -> bool:
    """Whether the sum of squares of the ones, each times the root of a weight, may be that of a sketch."""
    expected, parts = values["weight_sum"], values["parts"]
    if sketch.is_random and expected == 0:
        return found == 0.0
    if not sketch.is_random or (sketch.law is EVEN_SAMPLE and not values["weighted"]):
        # Every row of a uniform sample stands for as many rows.
        room = _WEIGHTED_ROUNDING if values["weighted"] else _ROUNDING
        return bool(abs(found - expected) <= room * expected)
    if sketch.law is None or not sketch.law.is_exact:
        return _may_be_ones_with_signs(found, values, sketch)
    from scipy.special import chdtr, chdtrc

    # Each part is a sketch of its own rows; of one, m times the sum over the expected one is chi-square with m degrees
    # of freedom. Parts are weighed by their rows, which the file does not tell: the mixture is at most as wide as that
    # of one part, the smallest. An orthogonal sketch varies less: its sum, times an independent chi-square over its p
    # degrees of freedom, is a Gaussian one, and that factor is above and below 1 in at least three draws of ten each.
    size = min(part["size"] for part in parts)
    away = (values["rounded_to"] - 1) * len(parts) if not values["weighted"] else _ROUNDED_WEIGHTS * expected
    least, most = (expected - away, expected + away) if values["rounded_to"] > 1 else (expected, expected)
    too_small = least > 0 and bool(chdtr(size, size * found / least) < IMPOSSIBLE)
    return not (too_small or bool(chdtrc(size, size * found / most) < IMPOSSIBLE))


def _may_be_ones_with_signs(found: float, values: Header, sketch: Sketch) -> bool:
    """Whether the sum of squares may be that of as many ones, for kinds that add rows with random signs.

    Rows with weights may be a few large ones, whose sums follow no law. Several parts are one matrix whose eigenvalues
    are those of its parts: what bounds the largest of any bounds all.
    """
    count, parts = values["row_count"], values["parts"]
    if values["weighted"]:
        return True
    laws = [sketch.sign_sums(part["size"], part["sparsity"], _positions(part), count) for part in parts]
    known = [law for law in laws if law is not None]
    if len(known) < len(parts):
        return True
    together = SignSums(
        max(law.share for law in known), sum(law.arguments for law in known), max(law.spread for law in known)
    )
    return may_be_ones(found, count, together, IMPOSSIBLE)


def _positions(part: Header) -> int | None:
    return None if part["start"] is None or part["stop"] is None else part["stop"] - part["start"]
