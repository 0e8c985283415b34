"""Lists of regressions, files of levels and formulas that make no sense: one sentence each, or an answer.

They are written by hand, in TOML, CSV and JSON, so anything may stand in them.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.attack.case import Case, Fault
from tests.attack.forged_models import ODD, POISON, places
from tests.attack.judges import judge_command
from tests.attack.material import ALLOW, lay_out, outputs_of, table, write

#: What formulas are made from.
PIECES = (
    "a", "b", "w", "s", "y", "1", "0", "-1", ".", "C(s)", "C(a)", "log(a)", "log(w)", "bs(a, 4)", "poly(b, 3)",
    "center(a)", "scale(w)", "I(a**2)", "I(1/0)", "np.exp(a)", "`a`", "`no such`", "``", "nothing", "C(s, contr.sum)",
    "C(s, levels=['u'])", "hour(a)", "I(a > b)", "a.dt.hour", "poly(a, 99)", "bs(a, df=10**9)", "'text'", "1e999", "é",
    "__import__('os')", "(a + b) ** 3", "(a + b + w) ** 99999999", "a ** a", "\x1b[2J", "{a}", "lag(a)", "s:a", "a:a",
)  # fmt: skip
SIGNS = (" + ", " + ", " * ", ":", " - ", "/", " ~ ", " | ", "**", "", " %in% ", "(", ")", "\n")


def cases(seed: int) -> Iterator[Case]:
    """Yield lists of regressions, levels and formulas."""
    draw = random.Random(seed)
    kinds = {"formula": _formula, "list": _list, "levels": _levels}
    while True:
        kind, inner = draw.choice(["formula", "formula", "list", "list", "levels"]), draw.randrange(2**32)
        yield Case(f"{kind} {inner}", partial(kinds[kind], inner))


def _formula(inner: int, folder: Path) -> Fault | None:
    draw = random.Random(inner)
    path = folder / "rows.parquet"
    write(table(), path)
    text = draw.choice(("y ~ ", "y ~ ", "log(w) ~ ", "~", "")) + draw.choice(PIECES)
    for _ in range(draw.choice((0, 1, 2, 4))):
        text += draw.choice(SIGNS) + draw.choice(PIECES)
    out = str(folder / "out")
    words = draw.choice(
        (
            ["fit", str(path), "--model", f"{out}.json"],
            ["fit", str(path), "--vcov", draw.choice(("HC3", "CRV1:s", "CRV3:s", "CRV1:a"))],
            ["fit", str(path), "--absorb", draw.choice(("s", "a", "y"))],
            ["summarise", str(path), "-o", f"{out}.psk"],
            ["sketch", str(path), "-o", f"{out}.psk", "--seed", "1", *ALLOW],
            ["diagnose", str(path), "-k", "2"],
        )
    )
    drop = draw.choice(([], ["--missing", "drop"])) if words[0] != "diagnose" else []
    return judge_command([*words, "--formula", text, *drop], folder, outputs=outputs_of(folder))


def _list(inner: int, folder: Path) -> Fault | None:
    draw = random.Random(inner)
    models: Any = [
        {"name": "one", "target": "y", "features": ["a", "b"]},
        {"name": "two", "target": "y", "features": ["a"]},
    ]
    for _ in range(draw.choice((0, 1, 2))):
        holder, key = draw.choice(places(models))
        holder[key] = copy.deepcopy(draw.choice([*ODD, *POISON, "a", "y", "w", "a+b"]))
    lay_out(folder)
    if draw.random() < 0.5:
        path = folder / "list.toml"
        text = "".join("[[model]]\n" + _toml(model) for model in models)
    else:
        path = folder / "list.csv"
        text = "name,target,features\n" + "".join(_line(model) for model in models)
    content = bytearray(text.encode(errors="replace"))
    if draw.random() < 0.3 and content:
        content[draw.randrange(len(content))] = draw.randrange(256)
    path.write_bytes(bytes(content))
    asked = ["ask", str(folder / "kept.psk"), "--compare", str(path)]
    more = draw.choice(([], ["--vcov", "CRV1"], ["--focus", "a"], ["--report", str(folder / "out.html")], ["--json"]))
    return judge_command([*asked, *more], folder, outputs=outputs_of(folder))


def _toml(model: Any) -> str:
    pairs = model.items() if isinstance(model, dict) else [("name", model)]
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in pairs)


def _line(model: Any) -> str:
    values = list(model.values()) if isinstance(model, dict) else [model]
    return ",".join("+".join(map(str, value)) if isinstance(value, list) else str(value) for value in values) + "\n"


def _levels(inner: int, folder: Path) -> Fault | None:
    draw = random.Random(inner)
    rows, path = folder / "rows.parquet", folder / "levels.json"
    write(table(), rows)
    levels: Any = {"s": ["u", "v", "w"]}
    holder, key = draw.choice(places(levels))
    holder[key] = copy.deepcopy(draw.choice([*ODD, *POISON, ["u", "v", "w", "x"], ["u"], {"knots": [1, 2]}]))
    content = bytearray(json.dumps(levels).encode())
    if draw.random() < 0.3:
        content[draw.randrange(len(content))] = draw.randrange(256)
    path.write_bytes(bytes(content))
    asked = ["sketch", str(rows), "-t", "y", "--encode", "--levels", str(path), "-o", str(folder / "out.psk")]
    return judge_command([*asked, "--seed", "1", *ALLOW], folder, outputs=outputs_of(folder))
