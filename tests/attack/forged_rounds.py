"""Questions and answers that were damaged or forged: odd values, broken rules, files of other rounds.

A file is refused by one sentence that names it, or it is read and says the same when it is written again. Answers that
do not belong to the question are refused by the step that they are given to.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import partsketch as ps
from partsketch.sites.rounds.answer import Answer
from partsketch.sites.rounds.question import Question
from partsketch.sites.rounds.round_file import digest_of
from partsketch.sites.rounds.rounds import Rounds
from tests.attack.case import Case, Fault
from tests.attack.forged_models import ODD, POISON, places
from tests.attack.judges import judge_reading


@cache
def originals() -> tuple[Rounds, tuple[dict[str, Any], ...], tuple[dict[str, Any], ...]]:
    """Return rounds that have begun, and questions and answers: of them, of a later round, private ones, weighted."""
    draw = np.random.default_rng(1)
    a, b, noise = draw.normal(size=(3, 60))
    table = pa.table({"a": a, "far": 1e9 + b, "y": a + noise, "z": b - a, "w": np.exp(noise)})
    sites = ("north", "south")
    sketches = [ps.sketch(table, "y", ["a", "far"], site=site, sketch_size=20, random_state=1) for site in sites]
    rounds = ps.refine(sketches)
    given = [ps.answer(rounds.question, table, site=site) for site in sites]
    weighted = ps.refine(
        ps.sketch(table, ["y", "z"], ["a"], site="north", sketch_size=20, weights="w", random_state=1), ["y", "z"]
    )
    others = [
        ps.answer(rounds.question, table, site="north", private=True, round_rows=20),
        ps.answer(weighted.question, table, site="north", weights="w"),
    ]
    questions = [rounds.question, rounds.step(given).question, weighted.question]
    return rounds, tuple(one.to_dict() for one in questions), tuple(one.to_dict() for one in [*given, *others])


def cases(seed: int) -> Iterator[Case]:
    """Yield forged files, and answers that a step is given."""
    draw = random.Random(seed)
    while True:
        inner, kind = draw.randrange(2**32), draw.choice(("question", "answer"))
        yield Case(f"{kind} {inner}", partial(_attack, kind, inner))


def _forge(kind: str, draw: random.Random) -> bytes:
    _, questions, answers = originals()
    values = copy.deepcopy(draw.choice(questions if kind == "question" else answers))
    action = draw.randrange(8)
    if action < 4:
        for _ in range(draw.randint(1, 2)):
            holder, key = draw.choice(places(values))
            holder[key] = copy.deepcopy(draw.choice([*ODD, *POISON]))
    elif action == 4:
        holder, key = draw.choice(places(values))
        del holder[key]
    elif action == 5:
        values[draw.choice(["surprise", "\x1b", "site", "checksum"])] = draw.choice(ODD)
    elif action == 6:
        numbers = [(holder, key) for holder, key in places(values) if isinstance(holder[key], float)]
        holder, key = draw.choice(numbers)
        holder[key] *= draw.choice([-1.0, 1e-300, 1e300, 1 + 1e-9, 0.0])
    try:
        values["checksum"] = digest_of(values) if draw.random() < 0.9 else "0" * 64
    except (ValueError, TypeError):
        values["checksum"] = "0" * 64
    content = bytearray(json.dumps(values).encode())
    if action == 7:
        for _ in range(draw.randint(1, 4)):
            content[draw.randrange(len(content))] = draw.randrange(256)
    return bytes(content)


def _attack(kind: str, inner: int, folder: Path) -> Fault | None:
    draw = random.Random(inner)
    path = folder / f"forged.{'psq' if kind == 'question' else 'psa'}"
    path.write_bytes(_forge(kind, draw))
    if kind == "question":
        return judge_reading(lambda: _same_again(Question.load(path), Question, folder))
    return judge_reading(lambda: _same_again(Answer.load(path), Answer, folder)) or judge_reading(lambda: _step(path))


def _same_again(read: Any, kind: type[Question] | type[Answer], folder: Path) -> None:
    read.save(folder / "again")
    assert kind.load(folder / "again").to_dict() == read.to_dict()


def _step(path: Path) -> None:
    """Take the forged answer with the right one of the other site; the coefficients that come of it are numbers."""
    rounds, _, answers = originals()
    other = folder_answer(path.parent / "south.psa", answers[1])
    model = rounds.step([path, other]).model
    assert np.isfinite(model.coefficients).all()


def folder_answer(path: Path, values: dict[str, Any]) -> Path:
    """Write a valid answer to a file."""
    path.write_text(json.dumps({**values, "checksum": digest_of(values)}))
    return path
