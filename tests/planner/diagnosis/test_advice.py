"""Advice of a diagnosis: which rows to drop, when to shuffle, how many partitions; and when to say nothing."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import partsketch as ps
from partsketch import theory


def test_like_partitions_get_no_warnings() -> None:
    rng = np.random.default_rng(2)
    found = ps.diagnose(rng.normal(size=(4000, 5)), "x4", n_partitions=4)
    assert not any(part.stands_apart for part in found.partitions)
    assert found.influential_rows == ()
    (average,) = [loss.excess for loss in found.losses if loss.method == "average"]
    assert average is not None
    expected = f"The partitions are as alike as random ones: the average of their exact fits loses {average:.2%}"
    assert found.advice[0].startswith(expected[:-3])
    assert len(found.advice) == 1


def test_a_constant_is_no_column_of_zeros() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 4))
    X[:, 1], X[:, 2] = 0.0, 1.7e18
    advice = ps.diagnose(X, "x3", n_partitions=4).advice
    assert "Drop column 'x1': it is zero in every row." in advice
    assert "Drop column 'x2': it is determined by the intercept." in advice


def test_sorted_rows_should_be_shuffled() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(4000, 3))
    X = X[np.argsort(X[:, 0])]
    found = ps.diagnose(np.column_stack([X, X.sum(axis=1) + rng.normal(size=4000)]), "x3", n_partitions=8)
    assert found.shuffled_divergence_ratio is not None
    assert found.shuffled_divergence_ratio < 1.05 < 2 < found.divergence_ratio
    ratios = f"from {found.divergence_ratio:.3g} to {found.shuffled_divergence_ratio:.3g}"
    assert any(
        sentence.startswith("Shuffle the rows") and f"{ratios}, in one shuffle that was tried" in sentence
        for sentence in found.advice
    )


def ratio_of(X: Any, cuts: list[int], dropped: Any = ()) -> float:
    """Return D/d of the rows cut in order, without some: from the rows themselves."""
    ones = np.column_stack([np.ones(len(X)), X])
    left = np.setdiff1d(np.arange(len(X)), list(dropped))
    grams = []
    for start, stop in pairwise([0, *cuts, len(X)]):
        part = ones[left[(left >= start) & (left < stop)]]
        grams.append(part.T @ part)
    return float(theory.divergence(grams) / ones.shape[1])


def test_rows_are_not_to_be_dropped_where_that_makes_partitions_less_alike() -> None:
    """The first partition resembles the last by one row alone: without it, it would be as narrow as the second."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 2))
    X[400:, 1] *= 30
    X[17, 1] = 150.0
    y = X.sum(axis=1) + rng.normal(size=600)
    found = ps.diagnose(np.column_stack([X, y]), "x2", n_partitions=3)
    assert [row.row for row in found.influential_rows if row.outweighs] == [17]
    with_it, without = ratio_of(X, [200, 400]), ratio_of(X, [200, 400], [17])
    assert without > 1.3 * with_it
    assert found.ratio_without_heavy_rows == pytest.approx(without, rel=1e-9)
    (sentence,) = [sentence for sentence in found.advice if "17" in sentence]
    assert f"does not help: D/d of the others would go from {with_it:.3g} to {without:.3g}" in sentence
    assert not any("Drop it" in sentence for sentence in found.advice)


@pytest.mark.parametrize("size", [1e3, 1e6, 1e9, 1e12])
def test_what_is_left_without_a_huge_row_keeps_its_digits(size: float) -> None:
    """A row of leverage 1 − 1e-22 leaves nothing to subtract from: the others are factored by themselves."""
    rng = np.random.default_rng(4)
    far = np.array([0.0, 50.0, 1e6])
    X = rng.normal(size=(900, 3)) + far
    X[450, 1] = size
    y = rng.normal(size=900)
    found = ps.diagnose(np.column_stack([X, y]), "x3", n_partitions=3)
    assert found.influential_rows[0].row == 450
    assert found.influential_rows[0].value == pytest.approx(size, rel=1e-12)
    without = ratio_of(X - far, [300, 600], [450])
    # Columns are a million times as far from zero as from one another: of sixteen digits ten are left, less rounding.
    assert found.ratio_without_heavy_rows == pytest.approx(without, rel=1e-8)
    assert any("Drop it if wrong" in sentence and f"to {without:.3g}." in sentence for sentence in found.advice)


def test_only_rows_that_are_named_are_left_out_of_what_is_promised(house: Any) -> None:
    found = ps.diagnose(house, "MedHouseVal", n_partitions=4)
    heavy = [row.row for row in found.influential_rows if row.relative_leverage >= 1]
    assert 0 < len(heavy) < len(found.influential_rows)
    X = house.drop(columns="MedHouseVal").to_numpy()
    # Centring and scaling do not change D, and leave the Gram matrices of the reference well-conditioned.
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    cuts = [5160, 10320, 15480]
    assert found.divergence_ratio == pytest.approx(ratio_of(X, cuts), rel=1e-6)
    assert found.ratio_without_heavy_rows == pytest.approx(ratio_of(X, cuts, heavy), rel=1e-6)
    every = [row.row for row in found.influential_rows]
    assert found.ratio_without_rows == pytest.approx(ratio_of(X, cuts, every), rel=1e-6)
    (sentence,) = [sentence for sentence in found.advice if "Drop them" in sentence]
    assert all(str(row) in sentence for row in heavy[:8])
    assert f"from {found.divergence_ratio:.3g} to {found.ratio_without_heavy_rows:.3g}" in sentence


def test_rows_without_which_a_coefficient_is_lost_are_only_pointed_out() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(600, 2))
    X[:, 1] = 0.0
    X[[5, 6, 250, 251, 450, 451], 1] = [100.0, 1.0, 2.0, -1.0, 1.5, -2.0]
    found = ps.diagnose(np.column_stack([X, rng.normal(size=600)]), "x2", n_partitions=3)
    heavy = {row.row for row in found.influential_rows if row.outweighs}
    assert 5 in heavy
    every = [row.row for row in found.influential_rows]
    assert {250, 251} <= set(every)
    assert found.ratio_without_rows is None, "the second column would be zero in a partition"
    X[[6, 250, 251, 450, 451], 1] = 0.0
    X[[250, 450], 1] = 1.0
    found = ps.diagnose(np.column_stack([X, rng.normal(size=600)]), "x2", n_partitions=3)
    assert found.ratio_without_heavy_rows is None
    assert any("What D/d would be without" in sentence for sentence in found.advice)
    assert not any("Drop it" in sentence or "Drop them" in sentence for sentence in found.advice)


def test_fewer_partitions_are_advised_with_what_they_would_lose() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 4))
    y = X.sum(axis=1) + rng.normal(size=300)
    found = ps.diagnose(np.column_stack([X, y]), "x4", n_partitions=20)
    (sentence,) = [sentence for sentence in found.advice if sentence.startswith("Use fewer partitions")]
    # Fifteen rows each, five columns: merged to five partitions each has sixty.
    ones = np.column_stack([np.ones(300), X])
    losses = {}
    for count in (20, 5):
        parts = [(ones[rows], y[rows]) for rows in np.split(np.arange(300), count)]
        loss = theory.pooled_moments(parts).loss
        losses[count] = theory.unsketched_average_excess_loss(parts) / loss
    assert losses[5] < losses[20]
    told = re.search(r"merged to (\d+) the average .* lose ([\d.]+)% instead of ([\d.]+)%", sentence)
    assert told is not None
    assert int(told[1]) == 5
    assert float(told[2]) == pytest.approx(100 * losses[5], rel=0.06)  # printed with two digits
    assert float(told[3]) == pytest.approx(100 * losses[20], rel=0.06)


def test_shuffling_that_does_not_help_is_not_advised(house: Any) -> None:
    found = ps.diagnose(house, "MedHouseVal", n_partitions=2)
    assert found.shuffled_divergence_ratio is not None
    assert not any(sentence.startswith("Shuffle") for sentence in found.advice)
    found = ps.diagnose(house, "MedHouseVal", n_partitions=8, fit_intercept=False)
    # 12.6 falls to 7.0: less than half of what is too much, yet not nothing.
    assert any(sentence.startswith("Shuffling would help, not enough: D/d would fall") for sentence in found.advice)


def test_too_many_partitions_and_dependent_columns_are_named() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 4))
    X[:, 2] = X[:, 0] - X[:, 1]
    found = ps.diagnose(np.column_stack([X, rng.normal(size=300)]), "x4", n_partitions=20)
    assert any("Drop column 'x2'" in sentence for sentence in found.advice)
    assert any(sentence.startswith("Use fewer partitions") for sentence in found.advice)


def test_unlike_coefficients_are_noticed() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(2000, 3))
    y = X[:, 0] * np.repeat([1.0, 2.0], 1000) + rng.normal(size=2000)
    found = ps.diagnose(np.column_stack([X, y]), "x3", n_partitions=4)
    assert found.heterogeneity is not None
    # 12 random partitions' worth of degrees of freedom are behind it: the noise is not taken for constant.
    assert found.heterogeneity.p_value is not None
    assert found.heterogeneity.p_value < 1e-4
    assert any("Coefficients differ" in sentence for sentence in found.advice)
