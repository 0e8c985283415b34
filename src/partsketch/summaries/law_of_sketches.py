"""What is known of the error of sketches, given which places their rows had."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from partsketch.common.sketch_law import SketchLaw
from partsketch.sketches.base import law_of_kind
from partsketch.summaries.summary import Summary


def law_of_sketches(summaries: Sequence[Summary]) -> SketchLaw:
    """Return the law of the kind of these sketches, with the rotation that each of them sampled from.

    A Hadamard transform is as long as the places that rows might have had: those of rows that were dropped, or that are
    in other partitions, are zeros in it. Places that are not told may be any number, and infinity is the most.
    """
    law = law_of_kind(summaries[0].kind)
    if not law.counts_places:
        return law
    rotations: dict[int, float] = {}
    for summary in summaries:
        found = sum(_places(law, part.start, part.stop) for part in summary.parts)
        rotations[summary.row_count] = max(rotations.get(summary.row_count, 0.0), found)
    return replace(law, rotation=lambda count: rotations.get(count, law.rotation(count)))


def _places(law: SketchLaw, start: int | None, stop: int | None) -> float:
    return math.inf if start is None or stop is None else law.rotation(max(1, stop - start))
