"""What errors of averaged and sketched fits need: partitions that determine their coefficients, and share them."""

from __future__ import annotations

from collections.abc import Sequence

from partsketch.common.errors import InputError
from partsketch.common.linalg.solution import Solution
from partsketch.common.units import p_value_phrase
from partsketch.model.moments import FitMoments
from partsketch.model.sentences import listed
from partsketch.theory.heterogeneity import Heterogeneity, constant_noise_agreement

#: Below this p-value of a test that partitions agree, an average has no errors around shared coefficients, nor does it
#: tell of exact least squares.
LEAST_AGREEMENT = 0.001


def require_determined(solutions: Sequence[Solution], averaged: bool) -> None:
    """Refuse fits of which some do not determine every coefficient, naming the columns."""
    singular = [solution for solution in solutions if solution.rank < len(solution.coefficients)]
    if not singular:
        return
    columns = listed(list(dict.fromkeys(alias.column for solution in singular for alias in solution.aliased)))
    if averaged and len(solutions) > 1:
        raise InputError(
            f"{len(singular)} of {len(solutions)} partitions do not determine the coefficients of {columns}, and fits "
            "of least norm are biased: leave these columns out, merge partitions, or use method='stack' or 'exact'"
        )
    raise InputError(
        f"the sketches do not determine the coefficients of {columns}: leave these columns out, or use method='exact'"
    )


def require_one_truth(method: str, moments: FitMoments, test: Heterogeneity | None) -> None:
    """Refuse errors that are too small by the data: partitions do not share coefficients, or noise is not constant.

    Exact factors do not tell which of the two it is, but either makes the errors wrong.
    """
    chance = None if test is None else test.p_value
    if method == "average":
        chance = constant_noise_agreement(moments.exact)
    if chance is not None and chance < LEAST_AGREEMENT:
        raise InputError(
            "fits of partitions differ more than constant noise and shared coefficients allow "
            f"({p_value_phrase(chance)}), and errors that assume both would be too small: ask for kind='spread', or "
            "fit with method='exact'"
        )


def require_shared_coefficients(test: Heterogeneity | None, partitions: int) -> None:
    """Refuse averages of sketches of partitions that differ: what averaging changes is then more than noise."""
    if test is None and partitions > 1:
        # A certificate that is withheld comes without its test.
        raise InputError(
            "whether partitions share coefficients was not tested, for the fit has no certificate, which says why: use "
            "method='stack', which needs no test"
        )
    if test is not None and test.p_value is None:
        raise InputError(f"whether partitions share coefficients cannot be tested: {test.reason}")
    if test is not None and test.p_value is not None and test.p_value < LEAST_AGREEMENT:
        raise InputError(
            f"partitions do not share coefficients ({p_value_phrase(test.p_value)}), and how far their average is from "
            "exact least squares is then no matter of chance: use method='stack'"
        )
