"""The paper's claims: each is measured, and a stated rule turns the numbers into a verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from partsketch.paper.results import Row

if TYPE_CHECKING:
    from partsketch.paper.study import Study

HOLDS = "holds"
PARTLY = "holds only when"
FAILS = "does not hold"
UNKNOWN = "not measured"

#: Largest distance from a formula, in standard errors, that chance is allowed: with a few hundred comparisons of
#: nearly normal means one beyond four is expected less than once in fifty studies.
LARGEST_Z = 4.0


@dataclass(frozen=True)
class Verdict:
    """What a rule says of measured numbers: one of the four words, and for "holds only when" the condition."""

    word: str
    condition: str = ""

    def __str__(self) -> str:
        return f"{self.word} {self.condition}" if self.condition else self.word


@dataclass(frozen=True)
class Claim:
    """One claim of the paper, what was measured, the rule, its verdict, and why it came out so.

    Attributes
    ----------
    name
        A short identifier.
    place
        Where the paper says it.
    statement
        What it says.
    measured
        The numbers.
    rule
        How the numbers decide.
    verdict
        Outcome of the rule.
    why
        The reason, in words.
    """

    name: str
    place: str
    statement: str
    measured: str
    rule: str
    verdict: Verdict
    why: str

    def to_row(self) -> Row:
        """Return the claim as a row of a table."""
        return {
            **{name: value for name, value in asdict(self).items() if name != "verdict"},
            "verdict": str(self.verdict),
        }


@dataclass(frozen=True)
class Question:
    """A claim before it is measured: its words, its rule, the measurement, and the reasons for each outcome."""

    name: str
    place: str
    statement: str
    rule: str
    measure: Callable[[Study], tuple[str, Verdict] | None]
    reasons: Mapping[str, str]

    def judged(self, study: Study) -> Claim:
        """Measure and judge; a question whose experiment was not run is answered "not measured"."""
        found = self.measure(study)
        measured, verdict = found if found is not None else ("its experiment was not run", Verdict(UNKNOWN))
        unforeseen = "This outcome was not foreseen: look at the numbers."
        why = self.reasons.get(verdict.word, unforeseen) if found is not None else ""
        return Claim(self.name, self.place, self.statement, measured, self.rule, verdict, why)


def judge(cases: Mapping[str, bool], nothing: str = "") -> Verdict:
    """Return "holds" when every case is true, "does not hold" when none is, else the cases that are true."""
    if all(cases.values()):
        return Verdict(HOLDS)
    true = [name for name, good in cases.items() if good]
    return Verdict(PARTLY, "; ".join(true)) if true else Verdict(FAILS, nothing)


def within_chance(distances: Sequence[float]) -> Verdict:
    """Return "holds" when no distance from a formula is beyond `LARGEST_Z` standard errors."""
    return Verdict(HOLDS) if max(abs(value) for value in distances) <= LARGEST_Z else Verdict(FAILS)


def check_claims(study: Study) -> list[Claim]:
    """Answer every question of the study from its results.

    Returns
    -------
    list of Claim
        In the order of the paper.
    """
    from partsketch.paper.claims_on_conclusions import CONCLUSION_QUESTIONS
    from partsketch.paper.claims_on_data import DATA_QUESTIONS
    from partsketch.paper.claims_on_stacking import STACKING_QUESTIONS
    from partsketch.paper.claims_on_theory import THEORY_QUESTIONS
    from partsketch.paper.claims_on_time import TIME_QUESTIONS

    stacked = (*DATA_QUESTIONS, *STACKING_QUESTIONS)
    questions = (*THEORY_QUESTIONS, *CONCLUSION_QUESTIONS, *stacked, *TIME_QUESTIONS)
    return [question.judged(study) for question in questions]
