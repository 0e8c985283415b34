"""What a candidate is expected to lose: exactly from the rows, else from what is known of such data."""

from __future__ import annotations

from dataclasses import dataclass

from partsketch.common.errors import InputError
from partsketch.common.units import percentage
from partsketch.model.methods import METHODS
from partsketch.planner.given import averaged, part_rotation, rotation_share
from partsketch.planner.survey import Survey
from partsketch.sketches.base import law_of_kind
from partsketch.theory.approximations import noise_factor, rotation_rows, stacked_excess_loss
from partsketch.theory.design import gaussian_design_divergence


@dataclass(frozen=True)
class ExpectedExcess:
    """Expected excess loss as a part of the minimal loss.

    Attributes
    ----------
    value
        None when unknown.
    kind
        "exact", "estimated" (exact for partitions like those of the fit, not for them), "approximate" or "unknown".
    reason
        Why it is of this kind.
    """

    value: float | None
    kind: str
    reason: str


def expected_excess(
    survey: Survey, method: str, sketch: str, sketch_size: int | None, partitions: int
) -> ExpectedExcess:
    """Return the expected relative excess loss of one candidate; the worst of several targets."""
    if method == "exact" or (method == "average" and partitions == 1):
        return ExpectedExcess(0.0, "exact", "exact least squares")
    try:
        if METHODS[method].sketched and law_of_kind(sketch).needs_even_leverage and survey.uneven_leverage:
            return _unknown("a few rows carry the leverage, and a sample may miss them")
        if survey.complete:
            return _from_rows(survey, method, sketch, sketch_size, partitions)
        return _from_sizes(survey, method, sketch, sketch_size, partitions)
    except InputError as error:
        return _unknown(str(error).rstrip("."))


def _from_rows(survey: Survey, method: str, sketch: str, sketch_size: int | None, partitions: int) -> ExpectedExcess:
    """Return the excess loss that all rows give, on average over the shuffles that were tried."""
    by_target = [
        [known.relative_excess(method, sketch, sketch_size, partitions) for known in shuffles]
        for shuffles in survey.given(partitions)
    ]
    values = max(by_target, key=lambda losses: sum(losses))
    value = sum(values) / len(values)
    kind, reason = _kind(method, sketch, partitions, "from all rows")
    if survey.shuffles and METHODS[method].by_partition and partitions > 1:
        spread = f"{percentage(min(values))} to {percentage(max(values))}"
        # An approximation stays one, however many shuffles it is averaged over.
        kind = "estimated" if kind == "exact" else kind
        reason += f"; mean over {len(values)} shuffles, which gave {spread}: the fit will have another"
    return ExpectedExcess(value, kind, reason)


def _unknown(reason: str) -> ExpectedExcess:
    return ExpectedExcess(None, "unknown", reason)


def _kind(method: str, sketch: str, partitions: int, basis: str) -> tuple[str, str]:
    if METHODS[method].sketched and not law_of_kind(sketch).is_exact:
        return "approximate", f"{basis}; {law_of_kind(sketch).reason}"
    if method == "stack" and partitions > 1:
        return "approximate", f"{basis}; no exact formula for stacked sketches"
    return "exact", basis


def _from_sizes(survey: Survey, method: str, sketch: str, sketch_size: int | None, partitions: int) -> ExpectedExcess:
    """Return the excess loss from sizes alone: exact where the data do not matter, else for rows in random order."""
    n, d = survey.rows, survey.columns
    if method == "whole" or (method == "stack" and partitions == 1):
        assert sketch_size is not None
        law = law_of_kind(sketch)
        if n is None and not law.is_exact:
            return _unknown("the number of rows is not known")
        factor = noise_factor(sketch_size, d, rotation_rows(law, n or 1))
        value = d * factor / averaged(method, partitions)
        kind, reason = _kind(method, sketch, 1, "for independent columns, whatever the data")
        if kind == "exact" and survey.rank is not None and survey.rank < d:
            kind, reason = "approximate", "high if columns are dependent, as they are in the rows looked at"
        return ExpectedExcess(value, kind, reason)
    if n is None:
        return _unknown("the number of rows is not known")
    if method == "stack":
        assert sketch_size is not None
        value = stacked_excess_loss(1.0, d, [sketch_size] * partitions)
        value *= rotation_share(sketch, sketch_size, d, n, partitions, survey.scattered)
        return ExpectedExcess(value, "approximate", "for alike partitions")
    if survey.uneven_leverage:
        return _unknown("a few rows carry the leverage, which makes partitions unlike: see partsketch diagnose")
    divergence = gaussian_design_divergence(n, d, partitions)
    averaging = divergence - d
    if method == "average":
        return ExpectedExcess(averaging / (n - d), "approximate", "for Gaussian rows in random order")
    assert sketch_size is not None
    factor = noise_factor(sketch_size, d, part_rotation(sketch, n // partitions, n, survey.scattered))
    value = ((n - partitions * d) / partitions * factor * divergence + averaging) / (n - d)
    return ExpectedExcess(value, "approximate", "for Gaussian rows in random order")
