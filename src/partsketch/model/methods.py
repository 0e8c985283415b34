"""The estimators: which summaries each one needs, and how they are combined."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Method:
    """One of the estimators: which summaries it needs and how they are combined.

    Attributes
    ----------
    sketched
        Whether the summaries are random sketches; otherwise they are exact factors.
    by_partition
        Whether each partition has a summary of its own; otherwise summaries are of all rows.
    combines_by
        "average" or "stack".
    description
        A phrase for people.
    """

    sketched: bool
    by_partition: bool
    combines_by: str
    description: str


#: What files with a promise are combined by; no fit to rows is.
NOISY = "noisy"

METHODS = {
    "exact": Method(False, False, "stack", "exact least squares on all rows"),
    "average": Method(False, True, "average", "average of the exact fits of the partitions"),
    "partition": Method(True, True, "average", "average of fits on one sketch of each partition"),
    "stack": Method(True, True, "stack", "one fit on the stacked sketches of the partitions"),
    "whole": Method(True, False, "average", "average of fits on independent sketches of all rows"),
    NOISY: Method(False, True, "stack", "one fit on sums of products with noise that keeps a promise"),
}

#: The estimators that a fit to rows may be.
FIT_METHODS = tuple(name for name in METHODS if name != NOISY)
