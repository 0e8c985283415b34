"""Column names and values of text that want to be more than names: shown written out, kept as they are in JSON."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from tests.attack.case import Case, Fault
from tests.attack.judges import CONTROL, Ended, judge_ended, run_command
from tests.attack.material import ALLOW, write

PIECES = (
    "\x1b[2J", "\x1b]0;title\x07", "\x1b[31m", "\x9b31m", "\x00", "\x07", "\x08", "\r", "\n", "\t", "\x7f",
    "\x85", "\u2028", "\u2029",
    "\u202e", "\u2066", "\u200f", "\u200b", "\ufeff", "[red]", "[/red]", "[/]", "[bold", ":boom:", "{0}", "%s",
    "'", '"', "\\", "`", "<b>",
    "&amp;", "</script>", "é", "e\u0301", "日本", "𝕏", "x" * 300, " ", "  ", ",", ";", "=", "C(a)", "a:b",
    "__proto__", "nan", "(intercept)",
    "order", "file", "row", "prediction", "\U000e0041", "\u180e", "\ufffd", "-", "--all", "0", "1e5", "",
)  # fmt: skip
COMMANDS = (
    ["fit", "{data}", "-t", "{y}"],
    ["fit", "{data}", "-t", "{y}", "--method", "average", "-k", "2", "--summary"],
    ["fit", "{data}", "-t", "{y}", "--method", "partition", "--partition-by", "{s}", "-f", "{x}", "--summary"],
    ["fit", "{data}", "-t", "{y}", "--encode", "--model", "{folder}/m.json", "--report", "{folder}/r.html"],
    ["fit", "{data}", "-t", "{y}", "-f", "{x}", "-f", "no such column"],
    ["fit", "{data}", "-t", "{s}"],
    ["sketch", "{data}", "-t", "{y}", "-o", "{folder}/o.psk", "--encode", *ALLOW],
    [
        "sketch",
        "{data}",
        "-t",
        "{y}",
        "--partition-by",
        "{s}",
        "-o",
        "{folder}/{{partition}}.psk",
        "-f",
        "{x}",
        *ALLOW,
    ],
    ["plan", "{data}", "-t", "{y}", "--encode"],
    ["diagnose", "{data}", "-t", "{y}", "-k", "2", "-f", "{x}"],
    ["diagnose", "{data}", "-t", "{y}", "--partition-by", "{s}", "-f", "{x}"],
)


def cases(seed: int) -> Iterator[Case]:
    """Yield tables whose names and texts are put together from hostile pieces, and commands that show them."""
    draw = random.Random(seed)

    def name() -> str:
        return "".join(draw.choice(PIECES) for _ in range(draw.choice((1, 1, 2, 3)))) + draw.choice(("", "", "a"))

    while True:
        names = [name() for _ in range(3)]
        levels = [name() for _ in range(2)]
        format, command = draw.choice(("parquet", "feather", "csv")), draw.randrange(len(COMMANDS))
        as_json = draw.random() < 0.4
        holes = draw.random() < 0.1
        words = f"{COMMANDS[command][0]} {command} {format} {names!r} {levels!r} json={as_json}"
        yield Case(words, partial(_attack, command, format, names, levels, as_json, holes))


def _attack(
    number: int, format: str, names: list[str], levels: list[str], as_json: bool, holes: bool, folder: Path
) -> Fault | None:
    draw = np.random.default_rng(0)
    x, s, y = names
    columns = [
        pa.array(draw.normal(size=60)),
        pa.array([levels[row // 7 % 2] for row in range(60)]),
        pa.array(draw.normal(size=60)),
    ]
    if holes:
        columns[0] = pa.array([None] + [1.0] * 59)
    path = folder / f"rows.{format}"
    write(pa.table(columns, names=names), path)
    places = {"data": str(path), "folder": str(folder), "x": x, "s": s, "y": y}
    arguments = [word.format(**places) for word in COMMANDS[number]]
    # Arguments of a program cannot hold null characters.
    if any("\0" in word for word in arguments):
        arguments = [word.replace("\0", "") for word in arguments]
    ended = run_command([*arguments, *(["--json"] if as_json else [])])
    fault = judge_ended(ended)
    if fault is None and ended.code == 0 and "--model" in arguments:
        fault = _judge_model(folder / "m.json")
    return fault or _judge_names(ended, arguments, names, as_json, format)


def _judge_names(ended: Ended, arguments: list[str], names: list[str], as_json: bool, format: str) -> Fault | None:
    """A model in JSON has the names of the file; CSV may read a name otherwise than it was written."""
    if ended.code != 0 or not as_json or arguments[0] != "fit" or format == "csv" or "--encode" in arguments:
        return None
    told = json.loads(ended.out)["model"]["target_names"]
    return None if told == [names[2]] else Fault("wrong accept", f"{told} for {names[2]!r}")


def _judge_model(path: Path) -> Fault | None:
    import partsketch as ps

    shown = str(ps.load(path).summary())
    return Fault("raw control", repr(shown)) if CONTROL.search(shown) else None
