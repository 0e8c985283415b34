"""Lists of regressions in a file, TOML or CSV, all asked of the same summaries."""

from __future__ import annotations

import csv
import io
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from partsketch.common.errors import InputError
from partsketch.common.linalg.blas import one_thread_each
from partsketch.common.reading import read_at_most
from partsketch.questions.fit import Question, answer, ask
from partsketch.questions.many import at_once, solved_together
from partsketch.questions.wild import Bootstrap

if TYPE_CHECKING:
    from partsketch.model.model import Model
    from partsketch.questions.summaries import Summaries

#: Between features of a line of CSV: a plus that does not stand in backticks.
_PLUS = re.compile(r"\+(?=(?:[^`]*`[^`]*`)*[^`]*$)")

_MOST_BYTES = 2**26

_INTERCEPTS = {"common": "common", "partition": "partition", "none": False, "": "common"}


@dataclass(frozen=True)
class Specification:
    """One regression of a list.

    Attributes
    ----------
    name
        What tables call it.
    target, features
        Columns; features None are all others.
    intercept
        "common", "partition" or "none".
    alpha, vcov
        As in `Summaries.fit`.
    """

    name: str
    target: str
    features: tuple[str, ...] | None = None
    intercept: str = "common"
    alpha: float = 0.0
    vcov: str = "iid"

    def question(self, summaries: Summaries) -> Question:
        """Return the question, its columns checked."""
        intercept: Any = _INTERCEPTS[self.intercept]
        return ask(summaries, self.target, self.features, intercept, self.alpha, self.vcov)

    def refused(self, error: InputError, summaries: Summaries) -> InputError:
        """Return an error that names the specification."""
        unknown = [name for name in self.features or () if name not in summaries.columns]
        hint = " In CSV features are joined by '+'." if any(re.search("[,; ]", name) for name in unknown) else ""
        return InputError(f"Specification {self.name!r}: {error}{hint}")


def read_specifications(path: Path, vcov: str = "iid") -> list[Specification]:
    """Read a list of regressions; `vcov` is for those that name none.

    A TOML file has a table [[model]] for each, a CSV file a line, with the keys target, features (in CSV joined by +),
    and where wanted name, intercept, alpha and vcov.
    """
    try:
        written = read_at_most(path, _MOST_BYTES, "a list of regressions")
        text = io.TextIOWrapper(io.BytesIO(written), encoding="utf-8-sig").read()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in UTF-8.") from error
    entries = _from_csv(text, path) if path.suffix.lower() == ".csv" else _from_toml(text, path)
    if not entries:
        raise InputError(f"{path} lists no regression: add a table [[model]] for each, or a line of CSV.")
    return [_specification(entry, number, path, vcov) for number, entry in enumerate(entries, 1)]


def _from_toml(text: str, path: Path) -> list[dict[str, Any]]:
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not TOML: {error}.") from error
    models = values.pop("model", [])
    if values or not isinstance(models, list) or not all(isinstance(entry, dict) for entry in models):
        raise InputError(f"{path} must hold tables [[model]] and nothing else.")
    return models


def _from_csv(text: str, path: Path) -> list[dict[str, Any]]:
    entries = []
    for number, line in enumerate(csv.DictReader(io.StringIO(text)), 1):
        if None in line:
            raise InputError(
                f"Regression {number} of {path} has more values than the first line has keys: join features by '+', "
                "and put a value with a comma in quotes."
            )
        entry: dict[str, Any] = {key: value for key, value in line.items() if value not in (None, "")}
        if "features" in entry:
            entry["features"] = [name.strip(" `") for name in _PLUS.split(entry["features"]) if name.strip()]
        entries.append(entry)
    return entries


def _specification(entry: dict[str, Any], number: int, path: Path, vcov: str) -> Specification:
    where = f"Regression {number} of {path}"
    known = {field.name for field in fields(Specification)}
    for key in entry:
        if key not in known:
            raise InputError(f"{where} has the key {key!r}: it may have {', '.join(sorted(known))}.")
    if not isinstance(entry.get("target"), str):
        raise InputError(f"{where} has no target: add target = the name of a column.")
    features = entry.get("features")
    if features is not None and not (isinstance(features, list) and all(isinstance(name, str) for name in features)):
        raise InputError(f"The features of regression {number} of {path} are not a list of names.")
    intercept = entry.get("intercept", "common")
    if not isinstance(intercept, str) or intercept not in _INTERCEPTS:
        raise InputError(f"{where} has intercept {intercept!r}: choose common, partition or none.")
    given = entry.get("alpha", 0.0)
    try:
        # A truth value is no penalty.
        alpha = float(str(given) if isinstance(given, bool) else given)
    except (TypeError, ValueError) as error:
        raise InputError(f"{where} has alpha {given!r}: give a number, at least 0.") from error
    return Specification(
        name=str(entry.get("name", f"({number}) {entry['target']}")),
        target=entry["target"],
        features=None if features is None else tuple(features),
        intercept=intercept,
        alpha=alpha,
        vcov=str(entry.get("vcov", "iid" if alpha else vcov)),
    )


def compare(summaries: Summaries, specifications: Sequence[Specification]) -> list[Model]:
    """Ask all regressions of a list."""
    some = at_once(len(summaries.columns) + 1)
    # The libraries are told once, not by every fit.
    with one_thread_each():
        return [
            model
            for begin in range(0, len(specifications), some)
            for model in _answers(summaries, specifications[begin : begin + some])
        ]


def _answers(summaries: Summaries, specifications: Sequence[Specification]) -> list[Model]:
    """Return the models of some specifications, which are solved side by side."""
    questions: list[Question] = []
    wrong: InputError | None = None
    for specification in specifications:
        try:
            questions.append(specification.question(summaries))
        except InputError as error:
            # Those before it are answered first: they may be wrong for other reasons.
            wrong = specification.refused(error, summaries)
            break
    models = []
    for specification, question, solution in zip(specifications, questions, solved_together(questions), strict=False):
        try:
            models.append(answer(summaries, question, solution, specification.vcov, Bootstrap()))
        except InputError as error:
            raise specification.refused(error, summaries) from error
    if wrong is not None:
        raise wrong
    return models
