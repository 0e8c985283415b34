"""Question and answer files: one JSON object with a checksum, every key checked; docs/round-files.md describes them.

A file may come from anybody. Nothing in it is executed, its size is limited before it is read, and whatever is wrong
becomes one sentence.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from partsketch.common.errors import InputError
from partsketch.common.files import write_atomically
from partsketch.common.reading import read_at_most
from partsketch.summaries.file_header import LARGEST_COUNT, MOST_COLUMNS, name_fault, parse
from partsketch.summaries.file_rules import HeaderError

#: A question of 65,536 columns and a target takes about a tenth of this.
LARGEST_FILE = 2**26
#: In units of the columns; squares of it, and sums of some, are still numbers.
LARGEST_GRADIENT = 1e150
VERSION = 1

Rule = Callable[[Any], bool]
_HEX = re.compile(r"[0-9a-f]{64}")


def is_name(value: Any) -> bool:
    """Whether this is a text that may be shown to people."""
    return isinstance(value, str) and name_fault(value) is None


def is_names(value: Any) -> bool:
    """Whether these are distinct names, not too many."""
    return (
        isinstance(value, list)
        and len(value) <= MOST_COLUMNS
        and all(is_name(name) for name in value)
        and len(set(value)) == len(value)
    )


def is_number(value: Any) -> bool:
    """Whether this is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def is_numbers(value: Any) -> bool:
    """Whether these are finite numbers."""
    return isinstance(value, list) and all(is_number(number) for number in value)


def is_table(value: Any) -> bool:
    """Whether these are rows of numbers, all of one length."""
    return isinstance(value, list) and all(is_numbers(row) for row in value) and len({len(row) for row in value}) <= 1


def is_gradient(value: Any) -> bool:
    """Whether this is a table of numbers whose squares are finite: others are no sums over rows of usual sizes."""
    return is_table(value) and all(abs(number) <= LARGEST_GRADIENT for row in value for number in row)


def is_digest(value: Any) -> bool:
    """Whether this is a SHA-256 in hexadecimal digits."""
    return isinstance(value, str) and _HEX.fullmatch(value) is not None


def is_flag(value: Any) -> bool:
    """Whether this is true or false."""
    return isinstance(value, bool)


def is_count(least: int) -> Rule:
    """Return the rule for whole numbers of at least this size."""
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value <= LARGEST_COUNT


def digest_of(values: Mapping[str, Any]) -> str:
    """Return the checksum of a file's values, which also names it."""
    rest = {key: value for key, value in values.items() if key != "checksum"}
    canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def save(values: Mapping[str, Any], path: Path) -> None:
    """Write the values with their checksum, whole or not at all; a file that holds just that is left as it is."""
    text = json.dumps({**values, "checksum": digest_of(values)}, indent=1, ensure_ascii=False, allow_nan=False)
    content = text.encode() + b"\n"
    if not (path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content):
        write_atomically(path, content)


def load(path: Path, what: str, rules: Mapping[str, Rule]) -> dict[str, Any]:
    """Read a file that says it is `what` ("question", "answer") and follows the rules."""
    content = read_at_most(path, LARGEST_FILE, f"a partsketch {what}")
    try:
        values = parse(content)
    except HeaderError as error:
        raise InputError(f"{path} is not a partsketch {what}, or it is damaged: it is not such JSON.") from error
    if values.get("format") != f"partsketch {what}":
        raise InputError(f"{path} is not a partsketch {what}.")
    if values.get("version") != VERSION:
        raise InputError(f"{path} has version {values.get('version')!r}, this partsketch reads {VERSION}.")
    every = {"format": is_name, "version": is_count(1), "checksum": is_digest, **rules}
    differing = sorted(set(values) ^ set(every))
    if differing:
        fault = "lacks" if differing[0] in every else "has an unknown key"
        shown = differing[0][:50] if name_fault(differing[0]) is None else "a key"
        raise InputError(f"{path} is not a valid {what}: it {fault} {shown!r}.")
    for key, rule in every.items():
        if not rule(values[key]):
            raise InputError(f"{path} is not a valid {what}: {key!r} has a wrong type or value.")
    if values["checksum"] != digest_of(values):
        raise InputError(f"{path} is damaged: its contents do not match its checksum.")
    return values
