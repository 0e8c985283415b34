"""What is known of the error that a kind of sketch makes: declared by the sketch, used by the theory.

One number describes a sketch: the rows P of the orthogonal rotation that it samples from. A Gaussian sketch is the
limit of infinite P and its formulas are exact. A randomised Hadamard transform pads the p rows to the next power of
two and behaves like m rows of a random rotation of that size; sampling rows without replacement is the same with P = p
when no row has an outlying leverage, or when rows are sampled by leverage. Sparse sign and CountSketch follow the
Gaussian formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


def _infinite(row_count: int) -> float:
    return math.inf


def _padded(row_count: int) -> float:
    return float(2 ** max(0, (row_count - 1).bit_length()))


@dataclass(frozen=True)
class SketchLaw:
    """The law of a kind of sketch, as far as it is known.

    Attributes
    ----------
    rotation
        Rows P of the rotation that a sketch of p rows samples; infinite for kinds that follow the Gaussian formula.
    is_exact
        Whether the formulas hold exactly, as they do for Gaussian sketches; otherwise they are approximations.
    keeps_rows
        Whether the sketch is made of single rows: errors are then found from the sampled rows themselves.
    needs_even_leverage
        Whether nothing can be said before the rows are sampled when a few of them carry the leverage.
    counts_places
        Whether p is not the number of rows, but of the places among which they lie: those of rows that were dropped, or
        that are in other partitions, included.
    reason
        Why the formulas are no more than approximations, or what is known of how close they are.
    """

    rotation: Callable[[int], float] = _infinite
    is_exact: bool = False
    keeps_rows: bool = False
    needs_even_leverage: bool = False
    counts_places: bool = False
    reason: str = "the exact formulas are for Gaussian sketches"


#: What nobody knows who sees a sample alone.
OF_SAMPLED_ROWS = (
    "as the sampled rows show it: a row outside that weighs far more than any of them would add to the loss"
)

GAUSSIAN = SketchLaw(is_exact=True)
LIKE_GAUSSIAN = SketchLaw()
ORTHOGONAL = SketchLaw(float, is_exact=True)
HADAMARD = SketchLaw(_padded, counts_places=True)
EVEN_SAMPLE = SketchLaw(float, keeps_rows=True, needs_even_leverage=True, reason=OF_SAMPLED_ROWS)
LEVERAGE_SAMPLE = SketchLaw(float, keeps_rows=True, reason=OF_SAMPLED_ROWS)

#: Names under which the formulas of `partsketch.theory` know the laws.
LAWS = {
    "gaussian": GAUSSIAN,
    "orthogonal": ORTHOGONAL,
    "srht": HADAMARD,
    "sparse_sign": LIKE_GAUSSIAN,
    "count_sketch": LIKE_GAUSSIAN,
    "row_sample": EVEN_SAMPLE,
    "leverage_sample": LEVERAGE_SAMPLE,
}
