"""The JSON header of a sketch file: strict in what it takes, since a file may come from anybody."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from partsketch.sketches.base import Sketch, get_sketch
from partsketch.sources.encoding import Encoding
from partsketch.summaries.file_rules import HeaderError, check_rules, design_of
from partsketch.summaries.noise_rules import check_noise_header
from partsketch.summaries.provenance import About, Noise, Part
from partsketch.summaries.summary import Summary

#: Limits of the format, checked before memory is set aside.
MOST_COLUMNS = 2**16
MOST_SKETCH_ROWS = 2**24
MOST_PARTS = 2**12
LONGEST_NAME = 1000
LARGEST_COUNT = 2**53  # what a double holds exactly, so that every language can read it

_BATCH = re.compile(r"(?:[0-9a-f]{32})?")
_SEED = re.compile(r"0|[1-9][0-9]{0,19}")
# Controls would reach the terminals of those who read a file; some turn the order of the text around.
_FORBIDDEN_CATEGORIES = {"Cc", "Cs", "Zl", "Zp"}
_FORBIDDEN_CHARACTERS = {chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}


def name_fault(text: str) -> str | None:
    """Return what is wrong with a name, or None."""
    if len(text) > LONGEST_NAME:
        return f"is longer than {LONGEST_NAME} characters"
    # Nearly all names are, and looking at every character takes long.
    if text.isprintable():
        return None
    if any(unicodedata.category(c) in _FORBIDDEN_CATEGORIES or c in _FORBIDDEN_CHARACTERS for c in text):
        return "has control characters"
    return None


def header_of(summary: Summary) -> dict[str, Any]:
    """Return the header as plain data."""
    about = summary.about
    centred = summary.low is not None or summary.centre.any()
    return {
        **({"centre": [float(value) for value in summary.centre]} if centred else {}),
        "columns": list(summary.columns),
        **({} if about.encoding.design is None else {"design": asdict(about.encoding.design)}),
        "drop_first": about.encoding.drop_first,
        "kind": summary.kind,
        **({"noise": [asdict(noise) for noise in about.noise]} if about.noise else {}),
        "levels": [[column, list(levels)] for column, levels in about.encoding.levels],
        "parts": [
            {
                "batch": part.cut,
                "contiguous": part.contiguous,
                "label": part.label,
                "partition": part.partition,
                "seed": None if part.seed is None else str(part.seed),
                "site": part.site,
                "size": part.size,
                "sparsity": part.sparsity,
                "start": part.start,
                "stop": part.stop,
                "stream": part.stream,
            }
            for part in summary.parts
        ],
        "private": about.private,
        "rounded_to": about.rounded_to,
        "row_count": summary.row_count,
        "rows_dropped": about.rows_dropped,
        "sketch_rows": summary.matrix.shape[0],
        "targets": list(about.targets),
        "weight_sum": float(summary.weight_sum),
        "weighted": about.weighted,
    }


def parse(text: bytes) -> dict[str, Any]:
    """Read JSON that is an object, without repeated keys and without numbers that are not finite."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) != len(pairs):
            raise HeaderError("a key of its header is repeated")
        return dict(pairs)

    def refuse(constant: str) -> None:
        raise HeaderError(f"its header has the number {constant}")

    try:
        values = json.loads(text.decode(), object_pairs_hook=unique, parse_constant=refuse)
    except HeaderError:
        raise
    except (ValueError, RecursionError) as error:
        raise HeaderError("its header is not JSON in UTF-8") from error
    if not isinstance(values, dict):
        raise HeaderError("its header is not a JSON object")
    return values


def check(values: dict[str, Any]) -> Sketch:
    """Refuse a header that breaks a rule of the format; return the kind of sketch."""
    optional = {name: rule for name, rule in _OPTIONAL.items() if name in values}
    _take(values, {**_HEADER, **optional}, "header")
    for name, most in (("columns", MOST_COLUMNS), ("parts", MOST_PARTS)):
        if not 1 <= len(values[name]) <= most:
            raise HeaderError(f"it has {len(values[name])} {name}: 1 to {most} are allowed")
    try:
        sketch = get_sketch(values["kind"])
    except ValueError as error:
        raise HeaderError(f"this version does not know the sketch {values['kind']!r}") from error
    for part in values["parts"]:
        _take(part, _PART, "part")
    for noise in values.get("noise", ()):
        _take(noise, _NOISE, "noise")
    check_rules(values, sketch, contents(values)[0])
    check_noise_header(values, sketch)
    return sketch


def contents(values: dict[str, Any]) -> tuple[tuple[Part, ...], About]:
    """Return parts and maker's statements of a header that has been checked."""
    parts = tuple(
        Part(
            site=part["site"],
            seed=None if part["seed"] is None else int(part["seed"]),
            **{key: part[key] for key in ("stream", "start", "stop", "size", "contiguous")},
            cut=part["batch"],
            **{key: part[key] for key in ("label", "partition", "sparsity")},
        )
        for part in values["parts"]
    )
    levels = tuple((column, tuple(names)) for column, names in values["levels"])
    about = About(
        targets=tuple(values["targets"]),
        encoding=Encoding(levels, values["drop_first"], design_of(values)),
        noise=tuple(
            Noise(one["target"], float(one["residual_sum"]), one["freedom"]) for one in values.get("noise", ())
        ),
        **{key: values[key] for key in ("weighted", "private", "rounded_to", "rows_dropped")},
    )
    return parts, about


def _take(values: Any, rules: dict[str, Callable[[Any], bool]], where: str) -> None:
    if not isinstance(values, dict):
        raise HeaderError(f"a {where} is not a JSON object")
    differing = sorted(set(values) ^ set(rules))
    if differing:
        known = differing[0] in rules
        raise HeaderError(f"its {where} {'lacks' if known else 'has an unknown'} {_shown(differing[0])}")
    for key, rule in rules.items():
        if not rule(values[key]):
            raise HeaderError(f"{key!r} in its {where} has a wrong type or value")


def _shown(text: str) -> str:
    return repr(text[:50]) if name_fault(text) is None else "key"


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and name_fault(value) is None


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(_is_name(name) for name in value)


def _is_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(number, int | float) and not isinstance(number, bool) and abs(number) <= sys.float_info.max
        for number in value
    )


def _is_levels(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and _is_name(pair[0]) and _is_names(pair[1]) for pair in value
    )


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_weight(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= sys.float_info.max


def _is_seed(value: Any) -> bool:
    return value is None or (isinstance(value, str) and _SEED.fullmatch(value) is not None and int(value) < 2**64)


def _count(least: int, most: int, optional: bool = False) -> Callable[[Any], bool]:
    def rule(value: Any) -> bool:
        if value is None:
            return optional
        return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most

    return rule


_HEADER: dict[str, Callable[[Any], bool]] = {
    "kind": _is_name,
    "sketch_rows": _count(1, MOST_SKETCH_ROWS),
    "columns": _is_names,
    "targets": _is_names,
    "levels": _is_levels,
    "drop_first": _is_flag,
    "row_count": _count(1, LARGEST_COUNT),
    "rounded_to": _count(1, LARGEST_COUNT),
    "rows_dropped": _count(0, LARGEST_COUNT, optional=True),
    "weight_sum": _is_weight,
    "weighted": _is_flag,
    "private": _is_flag,
    "parts": lambda value: isinstance(value, list),
}

#: Keys that only some headers have.
_OPTIONAL: dict[str, Callable[[Any], bool]] = {
    "centre": _is_numbers,
    "design": lambda value: isinstance(value, dict),
    "noise": lambda value: isinstance(value, list) and bool(value),
}

_NOISE: dict[str, Callable[[Any], bool]] = {
    "target": _is_name,
    "residual_sum": lambda value: _is_weight(value) and value > 0,
    "freedom": _count(1, LARGEST_COUNT),
}

_PART: dict[str, Callable[[Any], bool]] = {
    "site": _is_name,
    "label": _is_name,
    "batch": lambda value: isinstance(value, str) and _BATCH.fullmatch(value) is not None,
    "stream": _count(0, 2**32 - 1),
    "partition": _is_name,
    "start": _count(0, LARGEST_COUNT, optional=True),
    "stop": _count(0, LARGEST_COUNT, optional=True),
    "size": _count(1, MOST_SKETCH_ROWS),
    "seed": _is_seed,
    "contiguous": _is_flag,
    "sparsity": _count(1, MOST_SKETCH_ROWS, optional=True),
}
