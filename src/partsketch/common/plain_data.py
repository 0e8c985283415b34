"""Plain data of a file, as JSON gives it, read as the types of dataclasses: nothing is guessed or left over.

A file may come from anybody. Whatever does not fit becomes the end of a sentence that names the field.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Reader = Callable[[Any, str], Any]

#: Whole numbers of a file are counts and seeds: none has more bits.
_LARGEST = 2**64
#: Arrays have at most as many dimensions: fits, columns, targets.
_DEEPEST = 3


class FieldError(ValueError):
    """What is wrong with a field, as the end of a sentence."""


def read_as(kind: Any, value: Any, field: str, readers: Mapping[Any, Reader]) -> Any:
    """Return plain data as this type: a number, a text, None, a tuple, a mapping, a dataclass, or a union of these.

    `readers` holds types that are written in a way of their own.
    """
    if kind in readers:
        return readers[kind](value, field)
    if kind in _SIMPLE:
        return _SIMPLE[kind](value, field)
    if is_dataclass(kind):
        return _dataclass(kind, value, field, readers)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        (inner,) = (argument for argument in arguments if argument is not NoneType)
        return None if value is None else read_as(inner, value, field, readers)
    if origin is tuple:
        return _tuple(arguments, value, field, readers)
    assert origin is dict, f"no way to read {kind}"
    return {key: read_as(arguments[1], inner, f"{field}.{shown(key)}", readers) for key, inner in mapping(value, field)}


def _dataclass(kind: Any, value: Any, field: str, readers: Mapping[Any, Reader]) -> Any:
    values = dict(mapping(value, field))
    kinds = _kinds(kind)
    check_keys(values, tuple(kinds), field)
    return kind(**{name: read_as(kinds[name], values[name], f"{field}.{name}", readers) for name in values})


@cache
def _kinds(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {known.name: hints[known.name] for known in fields(kind)}


def check_keys(values: Mapping[str, Any], known: Sequence[str], field: str) -> None:
    """Refuse keys that are missing or unknown."""
    where = f"'{field}' " if field else "it "
    for name in known:
        if name not in values:
            raise FieldError(f"{where}lacks {name!r}")
    for name in values:
        if name not in known:
            raise FieldError(f"{where}has an unknown key '{shown(name)}'")


def _tuple(arguments: tuple[Any, ...], value: Any, field: str, readers: Mapping[Any, Reader]) -> tuple[Any, ...]:
    entries = sequence(value, field)
    kinds = arguments
    if arguments[-1] is Ellipsis:
        kinds = (arguments[0],) * len(entries)
    elif len(entries) != len(arguments):
        raise FieldError(f"'{field}' has {len(entries)} entries, not {len(arguments)}")
    return tuple(
        read_as(kind, entry, f"{field}[{i}]", readers)
        for i, (kind, entry) in enumerate(zip(kinds, entries, strict=True))
    )


def mapping(value: Any, field: str) -> list[tuple[str, Any]]:
    """Return the keys and values of an object."""
    if not isinstance(value, dict):
        raise _wrong(value, field, "an object")
    for key in value:
        text(key, field)
    return list(value.items())


def sequence(value: Any, field: str) -> Sequence[Any]:
    """Return the entries of a list."""
    if not isinstance(value, list | tuple):
        raise _wrong(value, field, "a list")
    return value


def text(value: Any, field: str) -> str:
    """Return a text that can be written again."""
    if not isinstance(value, str):
        raise _wrong(value, field, "a text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise FieldError(f"'{field}' is not a text of Unicode characters") from error
    return value


def flag(value: Any, field: str) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise _wrong(value, field, "true or false")
    return value


def whole_number(value: Any, field: str) -> int:
    """Return a whole number."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(value, field, "a whole number")
    if abs(value) > _LARGEST:
        raise FieldError(f"'{field}' is too large")
    return value


def number(value: Any, field: str) -> float:
    """Return a finite number."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _wrong(value, field, "a number")
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise FieldError(f"'{field}' is too large")
    if not math.isfinite(value):
        raise FieldError(f"'{field}' is {value}, not a finite number")
    return float(value)


def nothing(value: Any, field: str) -> None:
    """Return None."""
    if value is not None:
        raise _wrong(value, field, "null")


def anything(value: Any, field: str) -> Any:
    """Return plain data of any kind, checked all the same."""
    if isinstance(value, list | tuple):
        return [anything(entry, f"{field}[{i}]") for i, entry in enumerate(value)]
    if isinstance(value, dict):
        return {key: anything(inner, f"{field}.{shown(key)}") for key, inner in mapping(value, field)}
    for kind, reader in ((bool, flag), (int, whole_number), (float, number), (str, text)):
        if isinstance(value, kind):
            return reader(value, field)
    return nothing(value, field)


def single(value: Any, field: str) -> Any:
    """Return a number, a text, true, false or None."""
    if isinstance(value, dict | list | tuple):
        raise _wrong(value, field, "a single value")
    return anything(value, field)


def numbers(value: Any, field: str) -> FloatArray:
    """Return nested lists of finite numbers as an array: every list of a depth has the same length."""
    shape: list[int] = []
    level = [value]
    while not shape or any(isinstance(entry, list | tuple) for entry in level):
        if len(shape) == _DEEPEST:
            raise FieldError(f"'{field}' is nested too deeply")
        for i, entry in enumerate(level):
            if len(sequence(entry, f"{field}{_place(i, shape)}")) != len(level[0]):
                raise FieldError(f"'{field}{_place(i, shape)}' has {len(entry)} entries, the first has {len(level[0])}")
        shape.append(len(level[0]) if level else 0)
        level = [inner for entry in level for inner in entry]
    for i, entry in enumerate(level):
        # Asking for the place of every number takes longer than all the rest.
        if type(entry) is not float or not math.isfinite(entry):
            number(entry, f"{field}{_place(i, shape)}")
    return np.array(level, dtype=np.float64).reshape(shape)


def _place(position: int, shape: Sequence[int]) -> str:
    return "".join(f"[{i}]" for i in np.unravel_index(position, shape)) if shape else ""


def shown(name: str) -> str:
    """Return a key as it can be printed: shortened, controls as escapes."""
    return ascii(name[:50])[1:-1]


_SIMPLE: dict[Any, Reader] = {
    float: number,
    int: whole_number,
    str: text,
    bool: flag,
    NoneType: nothing,
    Any: anything,
    FloatArray: numbers,
}

_WORDS = {dict: "an object", list: "a list", tuple: "a list", str: "text", bool: "true or false", NoneType: "null"}


def _wrong(value: Any, field: str, wanted: str) -> FieldError:
    return FieldError(f"'{field}' is {_WORDS.get(type(value), 'a number')}, not {wanted}")
