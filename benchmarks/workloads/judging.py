"""Accuracy of a fit, and whether a sketch is one."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.linalg import solve_triangular

from benchmarks.problem import FloatArray, Problem, Reference


class Judged(Protocol):
    """A problem whose exact answer is known."""

    def reference(self) -> Reference:
        """Return the exact answer."""
        ...


def judge_fit(problem: Judged, answer: FloatArray) -> dict[str, float]:
    """Compare coefficients (intercept first) with the reference of a problem."""
    reference = problem.reference()
    if answer.shape != reference.coefficients.shape:
        return {}
    return {
        "forward_error": reference.forward_error(answer),
        "excess_loss": reference.excess_loss(answer),
        "reference_error": reference.last_step,
    }


def judge_sketch(problem: Problem, answer: FloatArray) -> dict[str, float]:
    """With X = Q R a valid sketch keeps the sum of squares of Q on average: a check, not a contest."""
    if not answer.size:
        return {}
    X = problem.arrays().X
    lower = np.linalg.cholesky(X.T @ X)
    return {"kept_squares": float(np.sum(solve_triangular(lower, answer.T, lower=True) ** 2)) / problem.width}
