"""The classes of attacks, with how they share the time and how many cases an hour must have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module

from tests.attack.case import Case


@dataclass(frozen=True)
class AttackClass:
    """A module with `cases(seed)`.

    Attributes
    ----------
    name
        Of the module, and of the class in reports.
    share
        Of the time, against the other classes.
    least
        Cases that a run of an hour must have, whatever time they take.
    """

    name: str
    share: float
    least: int = 0

    @property
    def cases(self) -> Callable[[int], Iterator[Case]]:
        """The generator of its cases."""
        found: Callable[[int], Iterator[Case]] = import_module(f"tests.attack.{self.name}").cases
        return found


#: Classes whose cases count as inputs have 5,000 together at least; then forged files and kills.
CLASSES: tuple[AttackClass, ...] = (
    AttackClass("arguments", 3, 2000),
    AttackClass("data_files", 3, 1500),
    AttackClass("outputs", 2, 1000),
    AttackClass("column_names", 2, 1000),
    AttackClass("middle", 2, 1000),
    AttackClass("surroundings", 2, 500),
    AttackClass("kills", 1, 200),
    AttackClass("forged_rounds", 1, 5000),
    AttackClass("forged_promises", 1, 2000),
    AttackClass("forged_collections", 1, 5000),
    AttackClass("small_files", 2, 1000),
    AttackClass("explorer", 1, 1000),
    AttackClass("forged_models", 2, 20_000),
    AttackClass("forged_sketches", 3, 100_000),
)
