"""Rounds: sketches to start from, questions and answers so far, the model they give, and the next question."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.files import make_folder
from partsketch.common.linalg.blas import one_thread_each
from partsketch.fitting.fit import Fit
from partsketch.model.model import Model
from partsketch.sites.agreement import Named
from partsketch.sites.combine import combine_files
from partsketch.sites.reading import read_summaries
from partsketch.sites.rounds.answer import Answer
from partsketch.sites.rounds.checks import check_answers, check_history, places_of
from partsketch.sites.rounds.judgement import Preconditioner, refined_model
from partsketch.sites.rounds.question import Question
from partsketch.sites.rounds.steps import Advance, advance
from partsketch.sketches.base import get_sketch, law_of_kind
from partsketch.theory.rounds import RoundForecast, RoundLaw, forecast_rounds, round_law

FloatArray = NDArray[np.float64]

#: Rounds are forecast up to the first that is likely to leave less than this of the minimal loss, at most so many.
NEARLY_EXACT, _MOST_FORECAST = 1e-6, 12


@dataclass(frozen=True, eq=False)
class Rounds:
    """Rounds of questions and answers that lead from sketches to exact least squares.

    Attributes
    ----------
    named
        The sketches, each with a name for messages.
    questions
        Those that were asked; the last one is open.
    answers
        Of every round that is finished, in the order of the sites.
    """

    named: tuple[Named, ...]
    questions: tuple[Question, ...]
    answers: tuple[tuple[Answer, ...], ...] = ()

    @classmethod
    def begin(
        cls,
        files: Any,
        target: str | Sequence[str] | None = None,
        features: Sequence[str] | None = None,
        fit_intercept: bool | None = None,
    ) -> Rounds:
        """Start from sketch files; `question` is then to be answered by every site."""
        named = tuple(read_summaries(files))
        fit = _stacked(named, target, features, fit_intercept)
        start = Preconditioner.of(fit)
        encoding = fit.summaries[0].about.encoding
        if encoding.design is not None:
            raise InputError(
                "Sketches of a formula are combined without rounds: questions name columns of the data; make the "
                "columns first where rounds are wanted."
            )
        used = tuple(pair for pair in encoding.levels if set(encoding.indicator_names(pair[0])) & set(start.columns))
        question = Question(
            number=1,
            columns=start.columns,
            targets=start.targets,
            encoding=type(encoding)(used, encoding.drop_first),
            weighted=fit.summaries[0].about.weighted,
            centre=start.coordinates.centre,
            unit=start.coordinates.unit,
            coefficients=start.solution,
            sites=tuple(dict.fromkeys(place for _, summary in named for place in places_of(summary))),
            preconditioner=_digest(named),
        )
        return cls(named, (question,))

    @property
    def question(self) -> Question:
        """The question that is open."""
        return self.questions[-1]

    @property
    def finished(self) -> int:
        """How many rounds have been answered."""
        return len(self.answers)

    @cached_property
    def _fit(self) -> Fit:
        first = self.questions[0]
        return _stacked(self.named, first.targets, first.features, bool(first.free))

    @cached_property
    def preconditioner(self) -> Preconditioner:
        """What the sketches say of the metric in which steps are made."""
        return Preconditioner.of(self._fit)

    def step(self, answers: Answer | str | PathLike[str] | Sequence[Answer | str | PathLike[str]]) -> Rounds:
        """Take the answers of all sites to the open question; the next question is then open.

        Parameters
        ----------
        answers
            Answers, or paths of answer files, one for each site; one alone for one site.

        Returns
        -------
        Rounds
            With a better model, its certificate, and the next question.
        """
        entries = [answers] if isinstance(answers, Answer | str | PathLike) else answers
        read = [entry if isinstance(entry, Answer) else Answer.load(entry) for entry in entries]
        given = check_answers(self.named, self.question, read, self.preconditioner.standard)
        if self.answers:
            check_history(self.answers[-1], given, self.questions[-2:])
        done = Rounds(self.named, self.questions, (*self.answers, given))
        first = self.questions[0]
        question = Question(
            number=self.question.number + 1,
            **{name: getattr(first, name) for name in ("columns", "targets", "encoding", "weighted")},
            **{name: getattr(first, name) for name in ("centre", "unit", "sites", "preconditioner")},
            coefficients=done._next_coefficients(),
        )
        return Rounds(self.named, (*self.questions, question), done.answers)

    @cached_property
    def forecast(self) -> tuple[RoundForecast, ...]:
        """What 0, 1, 2, … rounds are expected to leave of the minimal loss, by the law of these sketches.

        Up to the first number of rounds whose median is below one millionth, or the twelfth. It is the same before any
        round and after; the certificate of the model says what was reached.
        """
        rows = min(max(target.rows, target.fit.pooled.rank + 1.0) for target in self.preconditioner.by_target)
        found = forecast_rounds(len(self.preconditioner.columns), rows, _MOST_FORECAST)
        enough = next((entry.rounds for entry in found if entry.median < NEARLY_EXACT), found[-1].rounds)
        return found[: enough + 1]

    @property
    def needs_all_of_them(self) -> bool:
        """Whether fewer rounds than were forecast leave more than a millionth whatever the method is, in the median.

        Known for Gaussian sketches; others distort less.
        """
        gaussian = all(summary.kind == "gaussian" for _, summary in self.named)
        *_, before, last = (*self.forecast[:1], *self.forecast)
        return gaussian and last.median < NEARLY_EXACT < before.least

    @cached_property
    def _law(self) -> tuple[RoundLaw, ...]:
        """The law of what is left, for each target."""
        sizes = [max(target.rows, target.fit.pooled.rank + 1.0) for target in self.preconditioner.by_target]
        laws = {size: round_law(len(self.preconditioner.columns), size, self.finished) for size in dict.fromkeys(sizes)}
        return tuple(laws[size] for size in sizes)

    @cached_property
    def _advances(self) -> tuple[Advance, ...]:
        gradients = [np.sum([answer.gradient for answer in given], axis=0) for given in self.answers]
        points = [question.coefficients for question in self.questions[: self.finished]]
        with one_thread_each():
            return tuple(
                advance([point[:, number] for point in points], [g[:, number] for g in gradients], known.fit.pooled)
                for number, known in enumerate(self.preconditioner.by_target)
            )

    def _next_coefficients(self) -> FloatArray:
        return np.column_stack(
            [found.point + law.step * found.direction for found, law in zip(self._advances, self._law, strict=True)]
        )

    @cached_property
    def model(self) -> Model:
        """The model after the rounds so far, with its certificate."""
        if not self.answers:
            return self._fit.model
        told = [answer.losses for answer in self.answers[-1] if answer.losses is not None]
        losses = np.sum(told, axis=0) if len(told) == len(self.answers[-1]) else None
        coefficients = self.questions[self.finished].coefficients
        start = self.preconditioner
        return refined_model(self._fit, start, coefficients, self._advances, self._law, losses, self.finished)

    def save(self, folder: str | PathLike[str]) -> None:
        """Keep everything in a folder: sketches, questions and answers."""
        place = Path(folder)
        try:
            make_folder(place / "sketches")
            for number in range(1, self.finished + 1):
                (place / f"round-{number}").mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"Cannot write to {place}: {error.strerror or error}.") from error
        for number, (_, summary) in enumerate(self.named, 1):
            if not (place / "sketches" / f"{number:04d}.psk").exists():
                summary.save(place / "sketches" / f"{number:04d}.psk")
        for number, given in enumerate(self.answers, 1):
            for position, answer in enumerate(given, 1):
                answer.save(place / f"round-{number}" / f"{position:04d}.psa")
        # The question comes last: a round whose next question is there is finished.
        for question in self.questions:
            question.save(place / question_name(question.number))

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> Rounds:
        """Read a folder that `save` wrote, and check that everything in it belongs together."""
        place = Path(folder)
        if not (place / question_name(1)).is_file():
            raise InputError(f"{place} is no folder of rounds: make one with `partsketch refine begin`.")
        named = tuple(read_summaries(str(place / "sketches" / "*.psk")))
        questions = [Question.load(place / question_name(1))]
        rounds = cls(named, (questions[0],))
        if questions[0].preconditioner != _digest(named):
            raise InputError(f"The sketches in {place} are not those that its question was made from.")
        while (place / question_name(len(questions) + 1)).is_file():
            number = len(questions)
            given = [Answer.load(path) for path in sorted((place / f"round-{number}").glob("*.psa"))]
            answers = check_answers(named, questions[-1], given, rounds.preconditioner.standard)
            questions.append(Question.load(place / question_name(number + 1)))
            if any(not np.array_equal(getattr(questions[-1], name), getattr(questions[0], name)) for name in _KEPT):
                raise InputError(f"The questions in {place} are not of the same rounds.")
            rounds = cls(named, tuple(questions), (*rounds.answers, answers))
        return rounds


def check_penalty(alpha: float) -> None:
    """Refuse a ridge penalty."""
    if alpha != 0:
        raise InputError(
            f"alpha={alpha:g} asks for a ridge fit, and rounds lead to exact least squares: leave alpha out, or "
            "combine the sketches with it (partsketch combine --alpha)."
        )


#: What all questions of the same rounds have in common.
_KEPT = ("columns", "targets", "weighted", "centre", "unit", "sites", "preconditioner")


def question_name(number: int) -> str:
    """Return the name of a question's file."""
    return f"question-{number}.psq"


def _digest(named: Sequence[Named]) -> str:
    found = hashlib.sha256()
    for _, summary in named:
        found.update(summary.to_bytes())
    return found.hexdigest()


def _stacked(
    named: Sequence[Named], target: str | Sequence[str] | None, features: Sequence[str] | None, ones: bool | None
) -> Fit:
    """Return the stacked fit that rounds start from, or say why they cannot."""
    for name, summary in named:
        if not get_sketch(summary.kind).is_random:
            raise InputError(f"{name} is exact: exact files need no rounds, combine them (partsketch combine).")
        if law_of_kind(summary.kind).keeps_rows:
            raise InputError(f"{name} is a sample of rows, which may miss a direction: make a sketch of another kind.")
    # Gram matrices add up to that of all rows only without weights.
    fit = combine_files(named, target, features, "stack", ones, weighting="rows")
    if fit.model.record.rank < len(fit.model.column_names):
        raise InputError(
            f"Columns are dependent ({', '.join(column for column, _ in fit.model.record.aliased)}): leave them out of "
            "the features before rounds begin (--features)."
        )
    return fit
