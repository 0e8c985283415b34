"""Things known by name, also those that other packages add by an entry point.

Entry points are looked up when a name is not one of our own, or when all names are listed: reading them takes longer
than starting the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from partsketch.common.errors import InputError

Known = TypeVar("Known")


class Registry(Generic[Known]):
    """Classes by name.

    Parameters
    ----------
    what
        What a class is, for people: "sketch".
    own
        Where our own classes are, by name: "module:class". They are imported when asked for.
    named_by
        The attribute of a class that says its name.
    """

    def __init__(self, what: str, own: Mapping[str, str], named_by: str = "name") -> None:
        group = f"partsketch.{what}es" if what.endswith("ch") else f"partsketch.{what}s"
        self.what, self.group, self._own, self._named_by = what, group, own, named_by
        self._found: dict[str, type[Known]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """All names, our own first."""
        return (*self._own, *self._added)

    def get(self, name: str, base: type[Known]) -> type[Known] | None:
        """Return the class of this name, which must be a subclass of `base`; None when there is none."""
        if name not in self._found:
            if name in self._own:
                module, _, attribute = self._own[name].partition(":")
                self._found[name] = getattr(import_module(module), attribute)
            elif name in self._added:
                self._found[name] = self._loaded(self._added[name], base)
            else:
                return None
        return self._found[name]

    @cached_property
    def _added(self) -> dict[str, EntryPoint]:
        added: dict[str, EntryPoint] = {}
        for entry in entry_points(group=self.group):
            other = "partsketch" if entry.name in self._own else _package(added.get(entry.name))
            if other:
                raise InputError(
                    f"The packages {other} and {_package(entry)} both register the {self.what} {entry.name!r}: "
                    "remove one."
                )
            added[entry.name] = entry
        return added

    def _loaded(self, entry: EntryPoint, base: type[Known]) -> type[Known]:
        whose = f"The {self.what} {entry.name!r} of the package {_package(entry)}"
        try:
            loaded: Any = entry.load()
        # Whatever another package does wrong, its name belongs in the message.
        except Exception as error:
            raise InputError(
                f"{whose} cannot be loaded ({type(error).__name__}: {error}): mend or remove it."
            ) from error
        if not (isinstance(loaded, type) and issubclass(loaded, base)):
            raise InputError(f"{whose} is not a subclass of {base.__module__}.{base.__name__}: mend or remove it.")
        if getattr(loaded, self._named_by, None) != entry.name:
            raise InputError(f"{whose} has another {self._named_by} than its entry point: mend or remove it.")
        return loaded


def _package(entry: EntryPoint | None) -> str:
    if entry is None:
        return ""
    return entry.dist.name if entry.dist is not None else entry.value
