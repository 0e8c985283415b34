"""Model files that were tampered with: wrong types, shapes and numbers, right checksums, cut and spliced bytes.

A file is refused by one sentence, or it is a model that can do all a model can, and says the same when it is written
again. What no model can say must be refused, and files that nobody changed must be read.
"""

from __future__ import annotations

import contextlib
import copy
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

import partsketch as ps
from partsketch import InputError, Model
from partsketch.model.file import checksum, read
from tests.attack.case import Case, Fault
from tests.attack.judges import judge_reading

Must = Literal["refuse", "accept", "any"]

#: Nothing of a model file may be one of these: it has neither such numbers nor such texts.
POISON: list[Any] = [float("nan"), float("inf"), -float("inf"), 10**400, "\ud800", {"x": float("nan")}, [[[[]]]]]
#: What may stand anywhere, and is right in some places.
ODD: list[Any] = [
    None, True, False, 0, 1, -1, 2, 0.5, -0.5, -0.0, 1e308, 5e-324, 2**31, 2**53, 2**64, 2**64 + 1, "", "x", "inf",
    "nan", "(intercept)", "\x00", "\x1b[2J", "\u202e", "9" * 3000, [], {}, [None], [1.0], ["x", "x"], [["x", ["a"]]],
    {"x": 1}, "exact", "average", "quantiles", "point", [1.0] * 1000,
]  # fmt: skip


@dataclass(frozen=True)
class ForgedModel:
    """A file, what was done to it, and whether it must be refused or read."""

    content: bytes
    change: str
    must: Must


@cache
def originals() -> tuple[dict[str, Any], ...]:
    """Models of every method, with text columns, several targets, no intercept, columns far from zero."""
    rng = np.random.default_rng(0)
    rows = 240
    a, b = rng.normal(size=(2, rows))
    far = 1e9 + rng.normal(size=rows)
    kind = ["x", "y", "z"] * (rows // 3)
    y = a - 2 * b + far + rng.normal(size=rows)
    table = pa.table({"a": a, "b": b, "far": far, "kind": kind, "y": y, "z": y**2})
    asked: list[tuple[Any, dict[str, Any]]] = [
        ("y", {"method": "exact"}),
        (["y", "z"], {"method": "average", "n_partitions": 3}),
        ("y", {"method": "partition", "n_partitions": 2, "averaging": "inverse_variance"}),
        ("y", {"method": "stack", "n_partitions": 2, "fit_intercept": False}),
        ("y", {"method": "whole", "n_partitions": 2, "sketch_size": 60}),
        ("y", {"method": "exact", "alpha": 1.0}),
    ]
    models = [ps.fit(table, target, encode=True, random_state=1, **options) for target, options in asked]
    return tuple(json.loads(json.dumps(model.to_dict())) for model in models)


def sealed(values: Any) -> bytes:
    """Return a file of these values with the right checksum."""
    if isinstance(values, dict):
        values = {**values, "checksum": checksum(values)}
    return json.dumps(values).encode()


def places(values: Any) -> list[tuple[Any, Any]]:
    """Return every place of nested lists and objects, as its holder and key."""
    found: list[tuple[Any, Any]] = []
    waiting = [values]
    while waiting:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            found.append((holder, key))
            if isinstance(holder[key], dict | list) and holder[key]:
                waiting.append(holder[key])
    return found


def _poison(values: dict[str, Any], draw: random.Random) -> tuple[str, bool]:
    holder, key = draw.choice(places(values))
    holder[key] = poison = copy.deepcopy(draw.choice(POISON))
    return f"{key!r} is {poison!r:.40}", True


def _odd(values: dict[str, Any], draw: random.Random) -> tuple[str, bool]:
    holder, key = draw.choice(places(values))
    holder[key] = odd = copy.deepcopy(draw.choice(ODD))
    return f"{key!r} is {odd!r:.40}", False


def _wrong_type(values: dict[str, Any], draw: random.Random) -> tuple[str, bool]:
    """A number becomes a text, a list or true, a text a number: never right, unless null stood there."""
    known = [(holder, key) for holder, key in places(values) if _is_typed(holder[key])]
    holder, key = draw.choice(known)
    choices: list[Any] = [[], {}, "text", True] if isinstance(holder[key], int | float) else [[], {}, 1.5, True]
    holder[key] = wrong = draw.choice(choices)
    return f"{key!r} is {wrong!r}", key not in _free_options()


def _free_options() -> set[str]:
    """Options are written as they were asked for: of most, several types are right."""
    return {name for values in originals() for name in values["record"]["options"]} - {
        "method",
        "sketch",
        "n_partitions",
    }


def _is_typed(value: Any) -> bool:
    return isinstance(value, int | float | str) and not isinstance(value, bool)


def _drop(values: dict[str, Any], draw: random.Random) -> tuple[str, bool]:
    """Leave an entry or a key out."""
    holder, key = draw.choice(places(values))
    del holder[key]
    return f"{key!r} is left out", False


def _drop_top(values: dict[str, Any], draw: random.Random) -> tuple[str, bool]:
    key = draw.choice(sorted(values))
    del values[key]
    return f"{key!r} is left out", True


def _add(values: dict[str, Any], draw: random.Random) -> tuple[str, bool]:
    """Add a key, or another entry like the first."""
    holder = draw.choice(
        [values, *(holder[key] for holder, key in places(values) if isinstance(holder[key], dict | list))]
    )
    if isinstance(holder, dict):
        holder[draw.choice(["surprise", "\x1b", "__class__", ""])] = copy.deepcopy(draw.choice(ODD))
    else:
        holder.append(copy.deepcopy(holder[0]) if holder else copy.deepcopy(draw.choice(ODD)))
    return "something is added", False


def _shape(values: dict[str, Any], draw: random.Random) -> tuple[str, bool]:
    """Turn an array around, or cut or double it."""
    name = draw.choice(
        ["coefficients", "intercept", "centre", "level", "partition_coefficients", "partition_intercepts"]
    )
    entries = values[name]
    change = draw.choice(["doubled", "cut", "wrapped", "flat"])
    if change == "doubled":
        values[name] = entries + entries
    elif change == "cut":
        values[name] = entries[:-1]
    elif change == "wrapped":
        values[name] = [entries]
    else:
        values[name] = 0.0
    return f"{name!r} is {change}", True


def _number(values: dict[str, Any], draw: random.Random) -> tuple[str, bool]:
    """Another coefficient than the partitions' fits allow, or another level than the intercept."""
    name = draw.choice(["coefficients", "intercept", "level"])
    holder = values[name][0] if name == "coefficients" else values[name]
    place = draw.randrange(len(holder))
    holder[place] = (2 * abs(holder[place]) + 1e3) * draw.choice([1e3, -1e3, 1e6])
    return f"{name!r} is another number", True


_CHANGES: list[Callable[[dict[str, Any], random.Random], tuple[str, bool]]] = [
    _poison, _odd, _odd, _odd, _wrong_type, _wrong_type, _drop, _drop_top, _add, _shape, _number,
]  # fmt: skip


def _bytes(content: bytes, draw: random.Random) -> bytes:
    data = bytearray(content)
    change = draw.randrange(4)
    place = draw.randrange(len(data))
    if change == 0:
        for _ in range(draw.randint(1, 8)):
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    elif change == 1:
        del data[place:]
    elif change == 2:
        data[place : place + draw.randint(0, 64)] = draw.randbytes(draw.randint(0, 64))
    else:
        data[place:place] = data[place : place + draw.randint(1, 2000)]
    return bytes(data)


def forged(seed: int) -> Iterator[ForgedModel]:
    """Yield forged model files for ever."""
    draw = random.Random(seed)
    texts = [json.dumps(values) for values in originals()]
    while True:
        values = json.loads(draw.choice(texts))
        kind = draw.random()
        if kind < 0.02:
            yield ForgedModel(sealed(values), "nothing is changed", "accept")
        elif kind < 0.12:
            yield ForgedModel(_bytes(sealed(values), draw), "bytes are changed", "any")
        else:
            yield _changed(values, draw)


def _changed(values: dict[str, Any], draw: random.Random) -> ForgedModel:
    told: list[str] = []
    must: Must = "any"
    for _ in range(draw.choice([1, 1, 1, 2])):
        try:
            change, fault = draw.choice(_CHANGES)(values, draw)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            continue  # the first change took away what the second one is about
        told.append(change)
        # A second change may take away what the first one spoilt.
        must = "refuse" if fault and len(told) == 1 else "any"
    return ForgedModel(sealed(values), "; ".join(told), must)


def cases(seed: int) -> Iterator[Case]:
    """Yield attacks with forged model files for ever."""
    for model in forged(seed):
        yield Case(f"model file: {model.change!a}", partial(attack, model), "model files")


def attack(forgery: ForgedModel, folder: Path) -> Fault | None:
    """Read one file as it is read from disk, and judge what becomes of it."""
    return judge_reading(lambda: use(read(forgery.content, "file.json")), forgery.must)


def use(model: Model) -> None:
    """Do with a model what people do with it; whatever the file says, nothing may fail but by a sentence."""
    assert np.isfinite(model.column_coefficients).all()
    with np.errstate(over="ignore", invalid="ignore"):
        prediction = model.predicted(np.zeros((len(model.feature_names), 2)))
    assert prediction.shape == (2, len(model.target_names))
    again = read(sealed(json.loads(json.dumps(model.to_dict()))), "again.json")
    assert again.to_dict() == model.to_dict()
    for kind in ("model", "spread"):
        with contextlib.suppress(InputError), np.errstate(over="ignore", invalid="ignore"):
            assert str(model.summary(kind=kind))
            model.conf_int(kind=kind)
    for certificate in model.certificates:
        with contextlib.suppress(InputError):
            certificate.interval()
