"""Regressions among the same columns solved side by side: of thousands, the interpreter is what takes time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from partsketch.common.changed import changed
from partsketch.common.linalg.blas import triangular_factors
from partsketch.common.linalg.solution import Solution
from partsketch.common.linalg.solve_many import WIDEST_OF_MANY, solve_factors
from partsketch.questions.fit import Question, solved, total_sums

FloatArray = NDArray[np.float64]

#: Numbers of the matrices that are factored at once: they stay in the cache.
_NUMBERS_AT_ONCE = 2**15


def at_once(columns: int) -> int:
    """Return how many regressions among so many columns are solved at once."""
    return max(1, _NUMBERS_AT_ONCE // columns**2)


def solved_together(questions: Sequence[Question]) -> list[Solution]:
    """Return what `solved` returns for each of some questions, bit by bit."""
    found: list[Solution | None] = [None] * len(questions)
    alike = defaultdict(list)
    for place, question in enumerate(questions):
        if _is_simple(question):
            regression = question.regression
            shape = (len(regression.features), len(regression.targets), regression.free_columns)
            # There is one panel for each kind of intercept.
            alike[id(question.panel), shape].append(place)
    for (_, (_, targets, free)), places in alike.items():
        factors = _factors([questions[place] for place in places])
        for place, solution in zip(places, solve_factors(factors, targets, free, np.zeros(len(places))), strict=True):
            found[place] = solution and changed(solution, total_sums=total_sums(questions[place]))
    return [solution or solved(question) for question, solution in zip(questions, found, strict=True)]


def _is_simple(question: Question) -> bool:
    """Tell whether a question has no penalty, rows enough, and columns few enough to be solved beside others.

    Whether doubles are enough the solver judges, of the same doubles that it looks at in a question alone.
    """
    regression, total = question.regression, question.total
    width = len(regression.features)
    enough = total.row_count >= width and total.height >= len(total.columns)
    return regression.penalty == 0 and enough and len(total.columns) <= WIDEST_OF_MANY


def _factors(questions: Sequence[Question]) -> FloatArray:
    """Return the triangles of questions of one shape."""
    rows = np.stack([question.total.matrix for question in questions])
    if rows.shape[1] > rows.shape[2]:
        return triangular_factors(rows)
    # One that is a triangle already stays what it is.
    bent = np.tril(rows, -1).any(axis=(1, 2))
    rows[bent] = triangular_factors(rows[bent])
    return rows
