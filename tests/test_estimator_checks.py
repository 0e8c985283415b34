"""scikit-learn's own checks of an estimator: all of them for the default, and for every method by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from partsketch import SketchedRegression


# Some checks have more features than rows, and are told so.
@pytest.mark.filterwarnings("ignore:Column.* aliased with:partsketch.PartsketchWarning")
@parametrize_with_checks([SketchedRegression()])
def test_the_default_passes_every_check(estimator: Any, check: Callable[[Any], None]) -> None:
    assert estimator.get_params() == SketchedRegression().get_params()
    check(estimator)


# The checks use small data, and every partition of a sketch needs d + 2 rows: with two partitions most have enough,
# with eight many do not, and get the error that says the largest possible number.
NAMED = [
    SketchedRegression("exact"),
    SketchedRegression("average", n_partitions=2),
    SketchedRegression("partition", n_partitions=2),
    SketchedRegression("stack", n_partitions=2),
    SketchedRegression("whole", n_partitions=2),
]

_WEIGHTS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
# Ten rows cannot be cut into two partitions of d + 2.
_TEN_ROWS = ("check_estimators_nan_inf", "check_regressors_no_decision_function")

#: Checks that run with one partition. Those of weights compare them with repeated rows, which move the border between
#: two partitions; with partitions by a column, whose borders stay, test_estimator compares the same.
ONE_PARTITION = {"average": _WEIGHTS, "partition": _TEN_ROWS, "stack": _TEN_ROWS}

_WIDE = "fits 15 rows with 30 features: a partition of a sketch must keep d + 2 rows"
_SQUARE = "fits 11 rows with 11 columns to estimate: a partition of a sketch must keep d + 2 rows"
_UNITS = (
    "fits 15 rows with 30 features: of all solutions that of least norm is taken, in units of spreads, which "
    "every sketch finds anew"
)


def expected_failures(estimator: SketchedRegression) -> dict[str, str]:
    if estimator.method == "whole":
        return dict.fromkeys(_WEIGHTS, _UNITS)
    if estimator.method not in ("partition", "stack"):
        return {}
    return {**dict.fromkeys(_WEIGHTS, _WIDE), "check_regressor_multioutput": _SQUARE}


@pytest.mark.filterwarnings("ignore::partsketch.PartsketchWarning")
@parametrize_with_checks(NAMED, expected_failed_checks=expected_failures)
def test_a_named_method_passes_the_checks(estimator: Any, check: Callable[[Any], None]) -> None:
    function: Any = getattr(check, "func", check)
    if function.__name__ in ONE_PARTITION.get(estimator.method, ()):
        estimator.set_params(n_partitions=1)
    check(estimator)
