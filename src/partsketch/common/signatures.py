"""Keywords that a function passes on: shown in its signature, and told apart."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


def passes_on(keywords: type, *requests: type) -> Callable[[_Function], _Function]:
    """Show the keywords of a typed dictionary in the signature of a function that takes them as `**`.

    Type checkers read the dictionary; `help` and `inspect.signature` read what is set here. Types and defaults are
    those of the dataclasses that the keywords become.
    """
    known = {field.name: field for request in requests for field in fields(request)}

    def shown(function: _Function) -> _Function:
        signature = inspect.signature(function)
        own = [parameter for parameter in signature.parameters.values() if parameter.kind != parameter.VAR_KEYWORD]
        passed = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=known[name].default, annotation=known[name].type
            )
            for name in inspect.get_annotations(keywords)
        ]
        function.__signature__ = signature.replace(parameters=own + passed)  # type: ignore[attr-defined]
        return function

    return shown


def divided(
    keywords: Mapping[str, Any], declared: type, request: type, function: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the keywords that a dataclass has, and the others.

    A name that the typed dictionary does not declare is refused as Python itself refuses it: it might be a field of a
    dataclass that is not meant for users.
    """
    known = inspect.get_annotations(declared)
    for name in keywords:
        if name not in known:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
    names = {field.name for field in fields(request)}
    return (
        {name: value for name, value in keywords.items() if name in names},
        {name: value for name, value in keywords.items() if name not in names},
    )
