"""Every rule of question and answer files, and of answers that are taken together, is enforced in one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import partsketch as ps
from partsketch.sites.rounds.round_file import LARGEST_FILE, digest_of


def table(seed: int, rows: int = 100) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2))
    return pa.table({"a": x[:, 0], "b": x[:, 1], "y": x.sum(axis=1) + rng.normal(size=rows)})


SITES = {"north": table(1), "south": table(2, 140)}


@pytest.fixture(scope="module")
def rounds() -> ps.Rounds:
    sketches = [ps.sketch(rows, "y", site=site, sketch_size=30, random_state=1) for site, rows in SITES.items()]
    return ps.refine(sketches)


def answers(rounds: ps.Rounds) -> list[ps.Answer]:
    return [ps.answer(rounds.question, rows, site=site) for site, rows in SITES.items()]


Change = Callable[[dict[str, Any]], Any]

COMMON: list[tuple[str, Change, str]] = [
    ("another format", lambda v: v.update(format="partsketch model"), "is not a partsketch"),
    ("another version", lambda v: v.update(version=2), "has version 2, this partsketch reads 1"),
    ("an unknown key", lambda v: v.update(extra=1), "has an unknown key 'extra'"),
    ("a missing key", lambda v: v.pop("round"), "lacks 'round'"),
    ("round 0", lambda v: v.update(round=0), "'round' has a wrong type or value"),
    ("a round that is a fraction", lambda v: v.update(round=1.5), "'round' has a wrong type or value"),
]

QUESTION: list[tuple[str, Change, str]] = [
    *COMMON,
    ("a column twice", lambda v: v.update(columns=["a", "a", "b"]), "'columns' has a wrong type"),
    (
        "a name with controls",
        lambda v: v.update(columns=["(intercept)", "a\x1b[2J", "b"]),
        "'columns' has a wrong type",
    ),
    ("a target among the features", lambda v: v.update(targets=["a"]), "are no regression"),
    ("no target", lambda v: v.update(targets=[]), "are no regression"),
    ("ones in the middle", lambda v: v.update(columns=["a", "(intercept)", "b"]), "are no regression"),
    ("a short centre", lambda v: v.update(centre=[0.0]), "have not one number per column"),
    ("a centre off the ones", lambda v: v["centre"].__setitem__(0, 1.0), "off the ones"),
    ("a unit of 3", lambda v: v["unit"].__setitem__(1, 3.0), "no power of two"),
    ("a unit of 0", lambda v: v["unit"].__setitem__(1, 0.0), "no power of two"),
    ("another shape", lambda v: v.update(coefficients=[[1.0], [2.0]]), "have not one row per column"),
    ("rows of two lengths", lambda v: v.update(coefficients=[[1.0], [2.0, 1.0], [3.0]]), "'coefficients' has a wrong"),
    ("a text for a number", lambda v: v["coefficients"][0].__setitem__(0, "1"), "'coefficients' has a wrong"),
    ("nobody asked", lambda v: v.update(sites=[]), "asks nobody"),
    ("a site twice", lambda v: v.update(sites=[["north", ""], ["north", ""]]), "'sites' has a wrong"),
    ("no digest", lambda v: v.update(preconditioner="abc"), "'preconditioner' has a wrong"),
    ("levels that are no pairs", lambda v: v.update(levels=["a"]), "'levels' has a wrong"),
]

ANSWER: list[tuple[str, Change, str]] = [
    *COMMON,
    ("no rows", lambda v: v.update(row_count=0), "'row_count' has a wrong"),
    ("a negative weight", lambda v: v.update(weight_sum=-1.0), "'weight_sum' has a wrong"),
    ("a negative loss", lambda v: v.update(losses=[-1.0]), "'losses' has a wrong"),
    ("a gradient of texts", lambda v: v.update(gradient=[["1"]]), "'gradient' has a wrong"),
    ("a huge gradient", lambda v: v.update(gradient=[[-1e151]] * len(v["gradient"])), "'gradient' has a wrong"),
    ("a count that is not rounded", lambda v: v.update(rounded_to=7), "no multiple of 'rounded_to'"),
    ("no question", lambda v: v.update(question=""), "'question' has a wrong"),
]


def written(values: dict[str, Any], path: Path) -> Path:
    """Write a file whose checksum is right, whatever it says."""
    path.write_text(json.dumps({**values, "checksum": digest_of(values)}))
    return path


@pytest.mark.parametrize(("rule", "change", "sentence"), QUESTION, ids=[rule for rule, _, _ in QUESTION])
def test_rules_of_a_question(rounds: ps.Rounds, tmp_path: Path, rule: str, change: Change, sentence: str) -> None:
    values = json.loads(json.dumps(rounds.question.to_dict()))
    assert ps.Question.load(written(values, tmp_path / "right.psq")).digest == rounds.question.digest
    change(values)
    with pytest.raises(ps.InputError, match=sentence):
        ps.Question.load(written(values, tmp_path / "wrong.psq"))


@pytest.mark.parametrize(("rule", "change", "sentence"), ANSWER, ids=[rule for rule, _, _ in ANSWER])
def test_rules_of_an_answer(rounds: ps.Rounds, tmp_path: Path, rule: str, change: Change, sentence: str) -> None:
    values = json.loads(json.dumps(answers(rounds)[0].to_dict()))
    assert ps.Answer.load(written(values, tmp_path / "right.psa")).to_dict() == values
    change(values)
    with pytest.raises(ps.InputError, match=sentence):
        ps.Answer.load(written(values, tmp_path / "wrong.psa"))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "not such JSON"),
        (b"[]", "not such JSON"),
        (b'{"format": "partsketch answer", "format": "partsketch answer"}', "not such JSON"),
        (b'{"format": NaN}', "not such JSON"),
        (b"\x80\x04K\x01.", "not such JSON"),
        (b"[" * 100_000, "not such JSON"),
        (b'{"format": 1}', "is not a partsketch answer"),
    ],
)
def test_what_is_no_answer_is_refused(tmp_path: Path, content: bytes, sentence: str) -> None:
    (tmp_path / "answer.psa").write_bytes(content)
    with pytest.raises(ps.InputError, match=sentence):
        ps.Answer.load(tmp_path / "answer.psa")


def test_damage_size_and_folders_are_noticed(rounds: ps.Rounds, tmp_path: Path) -> None:
    path = tmp_path / "answer.psa"
    answers(rounds)[0].save(path)
    path.write_text(path.read_text().replace('"row_count": 100', '"row_count": 101'))
    with pytest.raises(ps.InputError, match="do not match its checksum"):
        ps.Answer.load(path)
    with path.open("wb") as file:
        file.truncate(LARGEST_FILE + 1)
    with pytest.raises(ps.InputError, match="more than"):
        ps.Answer.load(path)
    for other in (tmp_path, tmp_path / "missing.psa"):
        with pytest.raises(ps.InputError, match="Cannot read"):
            ps.Answer.load(other)


STEPS: list[tuple[str, Callable[[ps.Answer, ps.Answer], list[ps.Answer]], str]] = [
    ("another question", lambda n, s: [replace(n, question="0" * 64), s], "is to another question"),
    ("a site that was not asked", lambda n, s: [replace(n, site="west"), s], "was not asked for"),
    ("another label", lambda n, s: [replace(n, label="monday"), s], "was not asked for"),
    ("the same site twice", lambda n, s: [n, n, s], "'north' is in twice"),
    ("a missing site", lambda n, s: [n], "no answer of 'south'"),
    ("other columns", lambda n, s: [replace(n, gradient=n.gradient[:2]), s], "other columns than its question"),
    ("another round", lambda n, s: [replace(n, number=2), s], "another round"),
    ("losses of two targets", lambda n, s: [replace(n, losses=np.ones(2)), s], "2 losses for 1 targets"),
    ("a forged count", lambda n, s: [replace(n, row_count=99), s], "stands for 99 rows, its sketch for 100"),
    ("a forged weight", lambda n, s: [replace(n, weight_sum=90.0), s], "sum of weights of 90, its sketch 100"),
    (
        "a forged gradient",
        lambda n, s: [replace(n, gradient=n.gradient + 1e4), s],
        "gradient that its rows cannot have",
    ),
    ("a forged loss", lambda n, s: [replace(n, losses=np.array([1e-9])), s], "gradient that its rows cannot have"),
]


@pytest.mark.parametrize(("rule", "change", "sentence"), STEPS, ids=[rule for rule, _, _ in STEPS])
def test_rules_of_a_step(rounds: ps.Rounds, rule: str, change: Any, sentence: str) -> None:
    with pytest.raises(ps.InputError, match=sentence):
        rounds.step(change(*answers(rounds)))


Pair = Callable[[ps.Answer, ps.Answer], ps.Answer]
HISTORY: list[tuple[str, Pair, str]] = [
    ("another loss", lambda a, b: replace(b, losses=np.asarray(b.losses) * 1.001), "contradict each other"),
    ("another gradient", lambda a, b: replace(b, gradient=b.gradient * 1.001 + 0.1), "contradict each other"),
    ("a gradient that grows", lambda a, b: replace(b, gradient=2 * a.gradient - b.gradient), "must fall"),
    ("another weight", lambda a, b: replace(b, weight_sum=b.weight_sum * (1 + 1e-10)), "their numbers differ"),
]


@pytest.mark.parametrize(("rule", "change", "sentence"), HISTORY, ids=[rule for rule, _, _ in HISTORY])
def test_rules_of_two_rounds(rounds: ps.Rounds, rule: str, change: Pair, sentence: str) -> None:
    first = answers(rounds)
    second = rounds.step(first)
    north, south = answers(second)
    assert second.step([north, south]).finished == 2
    with pytest.raises(ps.InputError, match=sentence):
        second.step([change(first[0], north), south])


def test_an_answer_needs_the_columns_and_weights_of_the_question(rounds: ps.Rounds) -> None:
    rows = SITES["north"]
    with pytest.raises(ps.InputError, match="'b'"):
        ps.answer(rounds.question, rows.drop_columns(["b"]), site="north")
    with pytest.raises(ps.InputError, match="have no sample weights: leave --weights out"):
        ps.answer(rounds.question, rows.append_column("w", rows["a"]), site="north", weights="w")
    with pytest.raises(ps.InputError, match="round_rows is 10"):
        ps.answer(rounds.question, rows, site="north", round_rows=10)
    with pytest.raises(ps.InputError, match=r"round_rows is 10{19}: give a whole number, 1 to 2\*\*53"):
        ps.answer(rounds.question, rows, site="north", private=True, round_rows=10**400)
    with pytest.raises(ps.InputError, match="'a'"):
        ps.answer(rounds.question, rows.set_column(0, "a", pa.array([np.nan] * 100)), site="north")


def test_rounds_do_not_begin_from_what_they_cannot_use() -> None:
    rows = SITES["north"]
    with pytest.raises(ps.InputError, match="exact files need no rounds"):
        ps.refine(ps.sketch(rows, "y", site="north", sketch="triangular"))
    with pytest.raises(ps.InputError, match="sample of rows"):
        ps.refine(ps.sketch(rows, "y", site="north", sketch="row_sample", sketch_size=50, random_state=1))
    twice = rows.append_column("c", rows["a"])
    with pytest.raises(ps.InputError, match=r"Columns are dependent \(c\)"):
        ps.refine(ps.sketch(twice, "y", site="north", sketch_size=30, random_state=1))


def test_a_folder_whose_parts_do_not_belong_together_is_refused(rounds: ps.Rounds, tmp_path: Path) -> None:
    rounds.step(answers(rounds)).save(tmp_path / "rounds")
    with pytest.raises(ps.InputError, match="no folder of rounds"):
        ps.Rounds.load(tmp_path)
    other = ps.refine(ps.sketch(SITES["north"], "y", site="north", sketch_size=30, random_state=2))
    other.question.save(tmp_path / "rounds" / "question-1.psq")
    with pytest.raises(ps.InputError, match="not those that its question was made from"):
        ps.Rounds.load(tmp_path / "rounds")
