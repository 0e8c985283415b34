"""Samples of rows: leaving out one row at a time, written out; what is withheld; heavy tails."""

from __future__ import annotations

import numpy as np
import pytest

from partsketch import InputError, theory
from tests.theory.designs import FloatArray

D = 4


def sample_of(rows: FloatArray, inclusions: FloatArray | float) -> theory.RowSample:
    chances = np.broadcast_to(np.asarray(inclusions, dtype=np.float64), len(rows))
    return theory.RowSample(rows / np.sqrt(chances)[:, None], chances, np.zeros(len(rows)), rows.shape[1] - 1)


def rows_of(count: int, seed: int, noise: str = "constant") -> FloatArray:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((count, D))
    errors = rng.standard_normal(count) * (X[:, 0] ** 2 if noise == "variable" else 1.0)
    return np.column_stack([X, X.sum(axis=1) + errors])


def test_each_row_is_left_out_in_turn() -> None:
    rows, chances = rows_of(60, 1), np.linspace(0.5, 1.0, 60)
    sample = sample_of(rows, chances)
    X, y = sample.rows[:, :D], sample.rows[:, D]
    gram, fit = X.T @ X, np.linalg.lstsq(X, y)[0]
    root = np.linalg.cholesky(gram).T
    changes = np.array([
        root @ (np.linalg.lstsq(np.delete(X, r, 0), np.delete(y, r))[0] - fit) * np.sqrt(1 - chances[r])
        for r in range(60)
    ])  # fmt: skip
    centred = changes - changes.mean(axis=0)
    expected = np.sum(centred**2) * 60 / 59 * (60 - D - 2) / (60 - D - 1)
    assert theory.certify_row_samples([sample], 600).excess_loss == pytest.approx(expected, rel=1e-9)


def test_a_sample_of_all_rows_loses_nothing() -> None:
    rows = rows_of(60, 2)
    certificate = theory.certify_row_samples([sample_of(rows, 1.0)], 60)
    assert (certificate.kind, certificate.excess_loss, certificate.relative_excess_loss) == ("exact", 0.0, 0.0)
    assert certificate.minimal_loss == pytest.approx(np.linalg.lstsq(rows[:, :D], rows[:, D])[1][0])


@pytest.mark.parametrize("noise", ["constant", "variable"])
def test_uniform_samples_are_right_in_the_mean(noise: str) -> None:
    # 1,000 samples: the ratio is known to 2%. The formula from sizes alone is low by a third when noise is variable.
    rng = np.random.default_rng(3)
    rows = rows_of(300, 4, noise)
    exact = theory.pooled_moments([(rows[:, :D], rows[:, D])])
    claims, formula, excess, inside = [], [], [], []
    for _ in range(1000):
        chosen = rows[rng.choice(300, 60, replace=False)]
        certificate = theory.certify_row_samples([sample_of(chosen, 0.2)], 300)
        sketch = theory.read_sketch(chosen * np.sqrt(5))
        lost = exact.root @ (sketch.solution - exact.solution)
        excess.append(lost @ lost)
        claims.append(certificate.excess_loss)
        formula.append(theory.certify_whole([sketch], 300, "row_sample").excess_loss)
        assert certificate.confidence is not None
        low, high = certificate.confidence.interval(0.95)
        inside.append(low <= excess[-1] <= high)
    assert np.mean(claims) == pytest.approx(np.mean(excess), rel=0.1)
    assert (np.mean(formula) < 0.8 * np.mean(excess)) == (noise == "variable")
    # Intervals widen with the spread of the rows' shares: they may cover more than they say, never much less.
    assert 0.93 < np.mean(inside) < 0.995


def test_rows_that_are_always_in_a_sample_add_nothing() -> None:
    rows = rows_of(80, 5)
    rows[0] *= 1000
    chances = np.full(80, 0.3)
    chances[0] = 1.0
    with_certain = theory.certify_row_samples([sample_of(rows, chances)], 300)
    with pytest.raises(InputError, match=r"one sampled row has a leverage of 1\.00"):
        theory.certify_row_samples([sample_of(rows, 0.3)], 300)
    assert with_certain.relative_excess_loss < 0.2


def reason_to_withhold(rows: FloatArray) -> str:
    try:
        theory.certify_row_samples([sample_of(rows, 0.1)], 600)
    except InputError as error:
        return str(error)
    return ""


def is_withheld(rows: FloatArray) -> bool:
    return "use sketch='gaussian' or 'srht', or method='exact'" in reason_to_withhold(rows)


def test_heavy_tails_and_small_samples_are_withheld() -> None:
    rng = np.random.default_rng(6)
    even = [rows_of(60, seed) for seed in range(40)]
    heavy = [np.column_stack([rng.standard_t(1.5, (60, D)), rows[:, D]]) for rows in even]
    # Of 40 samples with so heavy tails nearly all show a row of large leverage; of Gaussian ones one in a hundred does.
    assert sum(is_withheld(rows) for rows in heavy) >= 36
    assert sum(is_withheld(rows) for rows in even) <= 2
    with pytest.raises(InputError, match=r"39 sampled rows do not show .* use at least 40"):
        theory.certify_row_samples([sample_of(rows_of(39, 1), 0.1)], 600)


def sums_of_squares(rows: FloatArray) -> float:
    basis = np.linalg.qr(rows[:, :D])[0]
    return float(np.sum(np.sum(basis**2, axis=1) ** 2))


@pytest.mark.parametrize("constant", [True, False])
def test_uneven_leverages_are_withheld_even_if_none_is_large(constant: bool) -> None:
    """The bound is the mean of 2,000 Gaussian samples and three of their standard deviations, 10% of these allowed."""
    rng = np.random.default_rng(9)
    even = rng.standard_normal((2000, 60, D + 1))
    even[:, :, 0] = 1.0 if constant else even[:, :, 0]
    sums = np.array([sums_of_squares(rows) for rows in even])
    # Ten rows that weigh little are moved out step by step until the sample is refused.
    rows = even[int(np.argmin(abs(sums - np.median(sums))))].copy()
    light = np.argsort(np.sum(np.linalg.qr(rows[:, :D])[0] ** 2, axis=1))[:10]
    reason = ""
    while not reason:
        below = sums_of_squares(rows)
        rows[light, 1:D] *= 1.02
        reason = reason_to_withhold(rows)
    assert "squared leverages of the sampled rows sum to" in reason
    bound = sums.mean() + 3 * sums.std()
    assert below < bound + 0.3 * sums.std()
    assert sums_of_squares(rows) > bound - 0.3 * sums.std()


@pytest.mark.parametrize("columns", [2, D])
def test_a_sample_of_many_heavy_tailed_rows_is_withheld_too(columns: int) -> None:
    """Of 40 samples of 600 rows one in five passed while much was thought to do no harm where rows are many."""
    rng = np.random.default_rng(13)
    for rows in rng.standard_t(3, (40, 600, columns + 1)):
        rows[:, 0] = 1.0
        assert is_withheld(rows)
    even = rng.standard_normal((40, 600, columns + 1))
    assert sum(is_withheld(rows) for rows in even) <= 4


def test_most_samples_of_heavy_tailed_rows_are_withheld() -> None:
    """Of 100 samples with three degrees of freedom; by the largest leverage alone 18 of them passed."""
    rng = np.random.default_rng(10)
    heavy = np.concatenate([rng.standard_t(3, (100, 60, D)), rng.standard_normal((100, 60, 1))], axis=2)
    assert sum(is_withheld(rows) for rows in heavy) >= 90


def test_upper_ends_allow_for_rows_that_no_sample_shows() -> None:
    rows = rows_of(60, 12)
    basis = np.linalg.qr(rows[:, :D])[0]
    heaviest = float(np.sum(basis**2, axis=1).max())
    found = theory.certify_row_samples([sample_of(rows, 0.1)], 600)
    # The same rows with chances that are not quite equal are no uniform sample, of which nothing is missing.
    chances = np.full(60, 0.1)
    chances[0] *= 1 + 1e-12
    plain = theory.certify_row_samples([sample_of(rows, chances)], 600)
    assert found.excess_loss == pytest.approx(plain.excess_loss)
    for seen, all_rows in (
        (plain.confidence, found.confidence),
        (plain.relative_confidence, found.relative_confidence),
    ):
        assert seen is not None
        assert all_rows is not None
        for chance, unseen in ((0.005, 0.0050125), (0.5, 0.6931472), (0.95, 2.9957323), (0.995, 5.2983174)):
            expected = seen.quantile(chance) * (1 + unseen * heaviest / D)
            assert all_rows.quantile(chance) == pytest.approx(expected, rel=1e-6)


def test_rows_of_partitions_that_count_differently_are_as_uneven_as_fewer_rows() -> None:
    """Gaussian rows of two partitions, one sampled five times as often: not withheld for that, in 20 of 20 samples."""
    rng = np.random.default_rng(13)
    chances = np.repeat([0.5, 0.1], 80)
    groups = np.repeat([0.0, 1.0], 80)
    for _ in range(20):
        rows = np.column_stack([rng.standard_normal((160, D)), rng.standard_normal(160)])
        sample = theory.RowSample(rows / np.sqrt(chances)[:, None], chances, groups, D)
        assert theory.certify_row_samples([sample], 960).excess_loss > 0


def test_stacked_samples_do_not_take_unlike_partitions_for_noise() -> None:
    # Two partitions with opposite slopes: what rows of a partition have in common is taken off.
    rng = np.random.default_rng(8)
    groups = np.repeat([0.0, 1.0], 60)
    X = rng.standard_normal((120, D))
    target = np.where(groups == 0, 5.0, -5.0) * X[:, 0]
    rows = np.column_stack([X, target])
    apart = theory.RowSample(rows / np.sqrt(0.1), np.full(120, 0.1), groups, D)
    together = theory.RowSample(rows / np.sqrt(0.1), np.full(120, 0.1), np.zeros(120), D)
    assert (
        theory.certify_row_samples([apart], 1200).excess_loss
        < 0.95 * theory.certify_row_samples([together], 1200).excess_loss
    )
