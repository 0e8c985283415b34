"""Accuracy of a fit."""

from __future__ import annotations

from typing import Protocol

from benchmarks.problem import FloatArray, Reference


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
