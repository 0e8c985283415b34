"""What a fit may do without."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tolerance:
    """What may be missing at the end.

    Attributes
    ----------
    drop
        Whether partitions that cannot be read are left out; otherwise the error of the earliest is raised.
    deadline
        Seconds after which partitions that have not arrived are left out; None waits for all.
    min_partitions
        Fewer partitions than this are refused.
    """

    drop: bool = False
    deadline: float | None = None
    min_partitions: int = 1

    @property
    def by_partition(self) -> bool:
        """Whether single partitions may be missing."""
        return self.drop or self.deadline is not None
