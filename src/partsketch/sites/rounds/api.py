"""`partsketch.refine` and `answer`: rounds that lead from sketches to exact least squares."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal

from partsketch.engines.base import using_engine
from partsketch.sites.rounds.answer import Answer, answer_data
from partsketch.sites.rounds.question import Question
from partsketch.sites.rounds.rounds import Rounds, check_penalty


def refine(
    files: Any,
    target: str | Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    *,
    fit_intercept: bool | None = None,
    alpha: float = 0.0,
) -> Rounds:
    """Begin rounds that lead from sketches to exact least squares, when sites can answer.

    Parameters
    ----------
    files, target, features, fit_intercept
        As in `combine`; the sketches may be of any random kind but samples of rows.
    alpha
        As in `combine`, but only zero: rounds lead to exact least squares, and a ridge fit is meant to be elsewhere.

    Returns
    -------
    Rounds
        Its `question` goes to every site, which says `answer(question, data, site=...)`; `step(answers)` returns the
        rounds after that, with a better `model` and the next question.

    Examples
    --------
    >>> import partsketch as ps, pyarrow as pa
    >>> table = pa.table({"x": [float(x % 7) for x in range(100)], "y": [float(x % 11) for x in range(100)]})
    >>> rounds = ps.refine(ps.sketch(table, "y", site="north", sketch_size=20, random_state=1))
    >>> for _ in range(3):
    ...     rounds = rounds.step([ps.answer(rounds.question, table, site="north")])
    >>> exact = ps.fit(table, "y", method="exact")
    >>> abs(float(rounds.model.coefficients[0, 0] - exact.coefficients[0, 0])) < 1e-10
    True
    """
    check_penalty(alpha)
    return Rounds.begin(files, target, features, fit_intercept)


def answer(
    question: Question | str | PathLike[str],
    data: Any,
    *,
    site: str = "",
    label: str = "",
    weights: str | None = None,
    missing: Literal["error", "drop"] = "error",
    private: bool = False,
    round_rows: int = 1,
    allow: Sequence[str] | None = None,
    engine: Any = "local",
) -> Answer:
    """Answer a question of `refine` from the rows of a site: their gradient, and how many there are.

    Parameters
    ----------
    question
        The question, or the path of its file.
    data, weights, missing, engine
        The rows that were sketched, as in `sketch`.
    site, label
        As in the sketch of these rows.
    private
        Leave out the loss of these rows.
    round_rows
        With private: round the row count to a multiple of this, as in the sketch.
    allow
        With a list, even an empty one, refuse an answer of fewer than ten rows per column, as the command does, unless
        "few-rows" is in it.

    Returns
    -------
    Answer
        One number per column and target; save it with `save`.
    """
    asked = question if isinstance(question, Question) else Question.load(question)
    with using_engine(engine, data) as runner:
        return answer_data(asked, data, weights, missing, runner, site, label, private, round_rows, allow)
