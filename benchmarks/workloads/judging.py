"""Accuracy of a fit."""

from __future__ import annotations

from benchmarks.problem import FloatArray, Problem


def judge_fit(problem: Problem, answer: FloatArray) -> dict[str, float]:
    """Compare coefficients (intercept first) with the reference of a problem."""
    reference = problem.reference()
    if answer.shape != reference.coefficients.shape:
        return {}
    return {
        "forward_error": reference.forward_error(answer),
        "excess_loss": reference.excess_loss(answer),
        "reference_error": reference.last_step,
    }
