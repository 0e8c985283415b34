"""Files of many summaries that were forged: spliced bytes, odd indices, entries swapped, repeated, changed.

A file is refused by one sentence, or it says the same when it is written again, and answers a regression or refuses it
by one sentence.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import struct
import warnings
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import partsketch as ps
from partsketch import InputError
from partsketch.questions.summaries import Summaries
from partsketch.summaries.collection_file import from_bytes, to_bytes
from tests.attack.case import Case, Fault
from tests.attack.forged_sketches import BROKEN, ODD, Unsealed, mutated
from tests.attack.judges import judge_reading
from tests.attack.material import table


@cache
def originals() -> tuple[tuple[bytes, ...], ...]:
    """Entries of valid files: shuffled, by a column, weighted, with columns of a formula."""
    rows: Any = table().drop_columns(["w"])
    asked: list[dict[str, Any]] = [
        {"columns": ["a", "b", "y"], "partition_by": "shuffle", "n_partitions": 4},
        {"columns": ["a", "b", "y"], "partition_by": "s"},
        {"columns": ["a", "y"], "partition_by": "order", "n_partitions": 3},
        {"formula": "y ~ a * C(s)", "partition_by": "order", "n_partitions": 2},
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.PartsketchWarning)
        made = [ps.summarise(rows, **options) for options in asked]
    return tuple(tuple(_apart(to_bytes(summaries.factors))) for summaries in made)


def _apart(data: bytes) -> list[bytes]:
    (length,) = struct.unpack("<I", data[12:16])
    start, entries = 16 + length, []
    for size in json.loads(data[16:start])["bytes"]:
        entries.append(data[start : start + size])
        start += size
    return entries


def _sealed(entries: list[bytes], index: Any = None) -> bytes:
    text = json.dumps({"bytes": [len(entry) for entry in entries]} if index is None else index)
    encoded = text.encode(errors="surrogatepass")
    content = b"PSKETCH\n" + struct.pack("<II", 3, len(encoded)) + encoded + b"".join(entries)
    return content + hashlib.sha256(content).digest()


def _forge(draw: random.Random) -> bytes:
    entries = list(draw.choice(originals()))
    action, place = draw.randrange(7), draw.randrange(len(entries))
    if action == 0:
        entries[place] = mutated(entries[place], draw)
    elif action == 1:
        apart = Unsealed.of(entries[place])
        with contextlib.suppress(KeyError, IndexError, TypeError):
            BROKEN[draw.choice(sorted(BROKEN))](apart.header, draw)
        entries[place] = apart.sealed()
    elif action == 2:
        entries.insert(place, draw.choice(draw.choice(originals())))
    elif action == 3:
        draw.shuffle(entries)
        del entries[place:]
    elif action == 4:
        entries[place] = _sealed(entries)
    elif action == 5:
        sizes: list[Any] = [len(entry) for entry in entries]
        sizes[place] = draw.choice(ODD)
        return _sealed(entries, draw.choice([{"bytes": sizes}, {"bytes": sizes[:place]}, sizes, {"surprise": sizes}]))
    data = _sealed(entries)
    return mutated(data, draw) if action == 6 else data


def cases(seed: int) -> Iterator[Case]:
    """Yield forged files of summaries."""
    draw = random.Random(seed)
    while True:
        inner = draw.randrange(2**32)
        yield Case(f"summaries {inner}", partial(_attack, inner), "sketch files")


def _attack(inner: int, folder: Path) -> Fault | None:
    data = _forge(random.Random(inner))
    return judge_reading(lambda: _use(data))


def _use(data: bytes) -> None:
    found = from_bytes(data, "file.psk")
    assert from_bytes(to_bytes(found)) == found
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        summaries = Summaries(found)
        for vcov in ("iid", "CRV1"):
            with contextlib.suppress(InputError):
                model = summaries.fit(summaries.columns[-1], vcov=vcov)
                assert np.isfinite(model.coefficients).all()
                json.dumps(model.to_dict(), allow_nan=False)
