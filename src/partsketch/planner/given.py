"""What the rows themselves say of a candidate's loss: found once for a number of partitions, asked many times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from partsketch.common.sketch_law import GAUSSIAN
from partsketch.fitting.keywords import FitKeywords
from partsketch.sketches.base import law_of_kind
from partsketch.theory.approximations import noise_factor, rotation_rows
from partsketch.theory.excess_loss import unsketched_average_excess_loss
from partsketch.theory.moments import PartitionMoments, pooled_moments, trace_products
from partsketch.theory.stack_weights import weights_by_counts
from partsketch.theory.stacking_given_data import stacked_excess_loss_given_data


class GivenRows:
    """The partitions of one target, and what formulas need of them.

    Parameters
    ----------
    moments
        Of each partition.
    weighting
        How sketches will be weighted where they are stacked.
    """

    def __init__(
        self, moments: Sequence[PartitionMoments], weighting: str = FitKeywords.weighting, scattered: bool = False
    ) -> None:
        self._weighting, self._scattered = weighting, scattered
        pooled = pooled_moments(moments)
        self._moments = moments
        self._loss, self._rank, self._rows = pooled.loss, pooled.rank, pooled.row_count
        self._averaging = unsketched_average_excess_loss(moments)
        losses = np.array([part.loss for part in moments])
        self._terms = trace_products(moments).sum(axis=0) * losses / len(moments) ** 2
        self._stacked: dict[int, float] = {}

    def relative_excess(self, method: str, sketch: str, sketch_size: int | None, partitions: int) -> float:
        """Return the expected excess loss given the data, as a part of the minimal loss."""
        if self._loss <= 0:
            return 0.0
        if method == "average":
            return self._averaging / self._loss
        assert sketch_size is not None
        if method == "partition":
            factors = [
                noise_factor(sketch_size, part.rank, part_rotation(sketch, part.row_count, self._rows, self._scattered))
                for part in self._moments
            ]
            return float(self._terms @ np.array(factors) + self._averaging) / self._loss
        if method == "whole" or partitions == 1:
            factor = noise_factor(sketch_size, self._rank, rotation_rows(law_of_kind(sketch), self._rows))
            return self._rank * factor / averaged(method, partitions)
        if sketch_size not in self._stacked:
            self._stacked[sketch_size] = self._stacked_loss(sketch_size) / self._loss
        share = rotation_share(sketch, sketch_size, self._rank, self._rows, partitions, self._scattered)
        return self._stacked[sketch_size] * share

    def _stacked_loss(self, sketch_size: int) -> float:
        """Return what the stack loses with equal weights or those by information; with "auto" the less of both."""
        equal = stacked_excess_loss_given_data(self._moments, sketch_size)
        counts = np.array([float(part.row_count) for part in self._moments])
        freedom = counts - [part.rank for part in self._moments]
        losses = np.array([part.loss for part in self._moments])
        if self._weighting == "rows" or np.any(freedom <= 0) or np.any(losses <= 0):
            return equal
        by_counts = weights_by_counts([sketch_size] * len(counts), counts, GAUSSIAN)
        weighted = stacked_excess_loss_given_data(self._moments, sketch_size, by_counts * freedom / losses)
        return weighted if self._weighting == "information" else min(equal, weighted)


def averaged(method: str, partitions: int) -> int:
    """Return how many fits to the same rows are averaged."""
    return partitions if method == "whole" else 1


def part_rotation(sketch: str, part: int, rows: int, scattered: bool) -> float:
    """Return the rows of the rotation of a partition's sketch: of all rows, if its own lie scattered among them."""
    law = law_of_kind(sketch)
    return rotation_rows(law, rows if scattered and law.counts_places else max(1, part))


def rotation_share(
    sketch: str, sketch_size: int, rank: int, rows: int, partitions: int, scattered: bool = False
) -> float:
    """Return what a kind of sketch loses as a part of what a Gaussian one does, when sketches are stacked."""
    rotation = part_rotation(sketch, rows // partitions, rows, scattered) * partitions
    total = sketch_size * partitions
    return noise_factor(total, rank, rotation) / noise_factor(total, rank)
