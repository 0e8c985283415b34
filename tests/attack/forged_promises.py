"""Files with a promise that were forged, and bounds that nobody should take: odd values, broken rules, wrong noise.

A file is refused by one sentence that names it, or it is read, says the same when it is written again, and is combined
or refused by one sentence. Bounds are refused by one sentence, or give a file; a ledger is never torn.
"""

from __future__ import annotations

import copy
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
from partsketch.sites.noisy.ledger import read_ledger
from tests.attack.case import Case, Fault
from tests.attack.forged_models import ODD, POISON, places
from tests.attack.forged_sketches import Unsealed, sealed
from tests.attack.judges import judge_reading
from tests.sites.noisy.files import BOUNDS, noisy, table

_NUMBERS = (np.nan, np.inf, -np.inf, 5e-324, 1e308, -1e308, 1e16, -0.0, 0.0)


@cache
def original() -> bytes:
    """Return a valid file, made in a folder of its own."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return noisy(Path(folder), table(200)).to_bytes()


def cases(seed: int) -> Iterator[Case]:
    """Yield forged files, bounds and ledgers."""
    draw = random.Random(seed)
    while True:
        inner = draw.randrange(2**32)
        kind = draw.choice(("file", "file", "file", "bounds", "ledger"))
        yield Case(f"{kind} {inner}", partial({"file": _file, "bounds": _bounds, "ledger": _ledger}[kind], inner))


def _file(inner: int, folder: Path) -> Fault | None:
    draw = random.Random(inner)
    path = folder / "forged.psk"
    path.write_bytes(_forge(draw))
    return judge_reading(lambda: _same_again(path)) or judge_reading(lambda: _combine(path))


def _forge(draw: random.Random) -> bytes:
    parts = Unsealed.of(original())
    header, body, action = copy.deepcopy(parts.header), bytearray(parts.body), draw.randrange(6)
    if action < 3:
        for _ in range(draw.randint(1, 2)):
            holder, key = draw.choice(places(header))
            holder[key] = copy.deepcopy(draw.choice([*ODD, *POISON]))
    elif action == 3:
        position = 8 * draw.randrange(len(body) // 8)
        body[position : position + 8] = struct.pack("<d", draw.choice(_NUMBERS))
    elif action == 4:
        # Symmetric numbers that no rows would give: they obey the rules, and must not break the combination.
        count = len(header["columns"])
        values = np.array([draw.choice(_NUMBERS[3:]) for _ in range(count**2)]).reshape(count, count)
        body = bytearray(np.asarray(np.triu(values) + np.triu(values, 1).T, dtype="<f8").tobytes())
    try:
        data = bytearray(sealed(header, bytes(body), 4))
    except (ValueError, TypeError):
        data = bytearray(original())
    if action == 5:
        for _ in range(draw.randint(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
    return bytes(data)


def _same_again(path: Path) -> None:
    summary = ps.NoisySummary.load(path)
    assert ps.NoisySummary.from_bytes(summary.to_bytes()) == summary


def _combine(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.PartsketchWarning)
        model = ps.combine(path)
    assert np.isfinite(model.coefficients).all()
    json.dumps(model.to_dict(), allow_nan=False)


def _bounds(inner: int, folder: Path) -> Fault | None:
    draw = random.Random(inner)
    bounds: Any = copy.deepcopy({**BOUNDS, "b": {"lower": -4, "upper": 4}})
    for _ in range(draw.randint(1, 2)):
        holder, key = draw.choice(places(bounds))
        holder[key] = copy.deepcopy(draw.choice([*ODD, *POISON, 1e-300, 1e300, -1e150, 1e149]))
    given: Any = bounds
    if draw.random() < 0.4:
        given = folder / "bounds.toml"
        text = "\n".join(f"{name} = {entry}".replace("'", '"') for name, entry in bounds.items())
        given.write_bytes(text.encode(errors="replace")[: draw.choice([10**6, 20])])
    return judge_reading(lambda: _released(given, folder))


def _released(bounds: Any, folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.PartsketchWarning)
        summary = noisy(folder, table(50), bounds=bounds)
    assert np.isfinite(summary.products).all()
    assert len(read_ledger(folder / "ledger.jsonl")) == 1


def _ledger(inner: int, folder: Path) -> Fault | None:
    draw = random.Random(inner)
    path = folder / "ledger.jsonl"
    entry = {"site": "north", "label": "", "epsilon": 1.0, "delta": 1e-6, "columns": ["a"], "release": "0", "time": ""}
    lines: list[Any] = [copy.deepcopy(entry) for _ in range(3)]
    line = draw.choice(lines)
    line[draw.choice(list(line))] = copy.deepcopy(draw.choice([*ODD, *POISON]))
    content = "".join(json.dumps(known) + "\n" for known in lines).encode(errors="surrogatepass")
    path.write_bytes(content[: draw.choice([len(content), len(content), draw.randrange(len(content))])])
    before = path.read_bytes()
    fault = judge_reading(lambda: noisy(folder, table(50)))
    if fault is None and path.read_bytes() != before and not path.read_bytes().endswith(b"\n"):
        return Fault("left behind", "the ledger is torn")
    return fault
