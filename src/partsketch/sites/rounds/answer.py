"""A site's answer: the gradient of its rows at the coefficients of a question, and how many rows there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.linalg.blas import one_thread_each
from partsketch.engines.base import Engine
from partsketch.fitting.data_request import SUMMARISED
from partsketch.fitting.refinement.passes import RowPasses
from partsketch.sites.disclosure.concerns import Facts, check_names, concerns_of, refuse
from partsketch.sites.rounds import round_file
from partsketch.sites.rounds.question import Question, SiteName
from partsketch.sites.rounds.round_file import is_count, is_digest, is_gradient, is_name, is_number, is_numbers
from partsketch.sources import open_source
from partsketch.sources.base import Source
from partsketch.sources.column_source import ColumnSource
from partsketch.sources.standardised import StandardisedSource
from partsketch.summaries.partitions import single_partition

FloatArray = NDArray[np.float64]

#: Numbers of rows are whole as doubles too.
_MOST_ROUNDED = 2**53


@dataclass(frozen=True, eq=False)
class Answer:
    """What one site says to a question.

    Attributes
    ----------
    question
        The digest of the question.
    number
        Its round.
    site, label
        Who answers, and for which of its rows.
    row_count, rounded_to, weight_sum
        How many rows (rounded to a multiple), and their weight.
    gradient
        `Xᵀ(y − Xθ)` of the rows, in the coordinates of the question, shape (features, targets).
    losses
        Sum of squared residuals of each target; None when it is not told.
    """

    question: str
    number: int
    site: str
    label: str
    row_count: int
    rounded_to: int
    weight_sum: float
    gradient: FloatArray
    losses: FloatArray | None

    @property
    def place(self) -> SiteName:
        """Site and label."""
        return self.site, self.label

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain data."""
        return {
            "format": "partsketch answer",
            "version": round_file.VERSION,
            "question": self.question,
            "round": self.number,
            "site": self.site,
            "label": self.label,
            "row_count": self.row_count,
            "rounded_to": self.rounded_to,
            "weight_sum": self.weight_sum,
            "gradient": self.gradient.tolist(),
            "losses": None if self.losses is None else self.losses.tolist(),
        }

    def save(self, path: str | PathLike[str]) -> None:
        """Write the answer, whole or not at all."""
        round_file.save(self.to_dict(), Path(path))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Answer:
        """Read an answer that `save` wrote."""
        values = round_file.load(Path(path), "answer", _RULES)
        if values["row_count"] % values["rounded_to"]:
            raise InputError(f"{path} is not a valid answer: 'row_count' is no multiple of 'rounded_to'.")
        return cls(
            question=values["question"],
            number=values["round"],
            site=values["site"],
            label=values["label"],
            row_count=values["row_count"],
            rounded_to=values["rounded_to"],
            weight_sum=float(values["weight_sum"]),
            gradient=np.array(values["gradient"], dtype=np.float64),
            losses=None if values["losses"] is None else np.array(values["losses"], dtype=np.float64),
        )


_RULES: dict[str, round_file.Rule] = {
    "question": is_digest,
    "round": is_count(1),
    "site": is_name,
    "label": is_name,
    "row_count": is_count(1),
    "rounded_to": is_count(1),
    "weight_sum": lambda value: is_number(value) and value > 0,
    "gradient": is_gradient,
    "losses": lambda value: value is None or (is_numbers(value) and all(number >= 0 for number in value)),
}


def answer_data(
    question: Question,
    data: Any,
    weights: str | None,
    missing: Literal["error", "drop"],
    engine: Engine,
    site: str,
    label: str,
    private: bool,
    round_rows: int,
    allow: Sequence[str] | None = None,
) -> Answer:
    """Answer a question from data with the columns of the question, whatever else is in them."""
    encoding = question.encoding
    source = open_source(
        data,
        target=list(question.targets),
        features=list(encoding.source_columns(question.features)),
        weights=weights,
        missing=missing,
        fit_intercept=bool(question.free),
        encoding=encoding if encoding.levels else None,
        engine=engine,
    )
    if isinstance(source, ColumnSource):
        source = replace(source, remedy=SUMMARISED)
    return answer_from(question, source, engine, site, label, private, round_rows, allow)


def answer_from(
    question: Question,
    source: Source,
    engine: Engine,
    site: str,
    label: str,
    private: bool,
    round_rows: int,
    allow: Sequence[str] | None = None,
) -> Answer:
    """Answer a question from the rows of a source with the columns of the question."""
    allowed = None if allow is None else check_names(allow)
    if (site, label) not in question.sites:
        asked = ", ".join(repr(" ".join(filter(None, pair))) for pair in question.sites[:10])
        raise InputError(
            f"The question is not to site {site!r}{f', label {label!r}' if label else ''}: it is to {asked}; say who "
            "answers with --site and --label."
        )
    _check_source(question, source)
    if not 1 <= round_rows <= _MOST_ROUNDED or (round_rows > 1 and not private):
        raise InputError(
            f"round_rows is {str(round_rows)[:20]}: give a whole number, 1 to 2**53, with private=True (--private)."
        )
    moved = StandardisedSource(source, question.centre[question.free :], question.unit[question.free :])
    partitioning = single_partition(source.row_count)
    with one_thread_each():
        rows = RowPasses(moved, partitioning, bool(question.free), engine, sparse=False)
        products = rows.multiply(question.coefficients, with_targets=True)
    count, weight = products.whole.row_count, products.whole.weight_sum
    if count < 1 or not weight > 0:
        raise InputError(f"There are no rows to answer from in {source.description}.")
    if allowed is not None:
        # Rare levels and single rows of high leverage were looked for when the same rows were sketched.
        facts = Facts("The answer", count, len(question.coefficients), len(question.coefficients), sketch_rows=0)
        refuse(concerns_of(facts, question.encoding, least_level_rows=1), allowed)
    rounded = count if round_rows == 1 else max(1, (count + round_rows // 2) // round_rows) * round_rows
    if round_rows > 1:
        weight = float(f"{weight:.1e}") if question.weighted else float(rounded)
    losses = None if private else np.asarray(products.residual_sums)
    gradient = np.asarray(products.gradients)
    return Answer(question.digest, question.number, site, label, rounded, round_rows, float(weight), gradient, losses)


def _check_source(question: Question, source: Source) -> None:
    if source.on_cluster:
        raise InputError(
            f"A question is answered from files or rows in memory, not from a {source.description}: write it to "
            "Parquet files, and answer from those."
        )
    if source.feature_names != question.features or source.target_names != question.targets:
        raise InputError(
            f"The data give the columns {source.feature_names + source.target_names}, the question has "
            f"{question.features + question.targets}: use the columns that were sketched."
        )
    if source.has_weights != question.weighted:
        raise InputError(
            "The sketches have sample weights: name their column (--weights)."
            if question.weighted
            else "The sketches have no sample weights: leave --weights out."
        )
