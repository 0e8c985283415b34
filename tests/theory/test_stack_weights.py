"""Weights of stacked sketches: what they gain where coefficients are shared, what is done where they are not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from partsketch import InputError, theory
from partsketch.common.sketch_law import LAWS
from partsketch.fitting.keywords import choices_of
from partsketch.sketches.orthogonal import orthogonal_rows
from partsketch.theory.heterogeneity import constant_noise_heterogeneity
from partsketch.theory.partition_certificate import excess_scalars, mixture_share, row_shares
from partsketch.theory.sketch_moments import moments_of_parts
from partsketch.theory.stack_weights import (
    LEAST_AGREEMENT,
    WEIGHTINGS,
    agreement_level,
    information_weights,
    noise_of_rows,
    weights_by_counts,
)
from partsketch.theory.stacked_certificate import law_of_excess
from tests.theory.designs import FloatArray, read_all

# One process draws what several of them look at.
pytestmark = [pytest.mark.usefixtures("few_draws"), pytest.mark.xdist_group("stack weights")]

D, K, SIZE = 6, 6, 24
LEVELS = (0.9, 0.95, 0.99)


@dataclass(frozen=True)
class Design:
    """Rows, scale of the features, noise, and spread of the coefficients of six partitions."""

    rows: tuple[int, ...] = (500,) * K
    scales: tuple[float, ...] = (1.0,) * K
    noise: tuple[float, ...] = (1.0,) * K
    spread: float = 0.0

    def draw(self, rng: np.random.Generator) -> list[theory.PartitionMoments]:
        parts = []
        for rows, scale, noise in zip(self.rows, self.scales, self.noise, strict=True):
            X = scale * rng.standard_normal((rows, D))
            truth = 1 + self.spread * rng.standard_normal(D)
            parts.append(theory.PartitionMoments.from_rows(X, X @ truth + noise * rng.standard_normal(rows)))
        return parts


UNEVEN = (100,) * (K - 1) + (3000,)
DESIGNS = {
    "alike": Design(),
    "uneven sizes": Design(UNEVEN),
    "uneven scales": Design(UNEVEN, scales=(3.0,) * (K - 1) + (1.0,)),
    "unlike noise": Design(noise=(0.2, 0.36, 0.66, 1.21, 2.2, 4.0)),
    "unlike coefficients": Design(spread=0.5),
}
SHARED = [name for name in DESIGNS if name != "unlike coefficients"]


def sketched(
    parts: list[theory.PartitionMoments], size: int, rng: np.random.Generator, kind: str = "gaussian"
) -> theory.SketchMoments:
    """Sketches of all partitions, drawn from their factors."""
    return theory.sketch_moments(drawn(parts, size, rng, kind), [part.row_count for part in parts], sketch=kind)


def drawn(
    parts: list[theory.PartitionMoments], size: int, rng: np.random.Generator, kind: str = "gaussian"
) -> list[FloatArray]:
    if kind == "gaussian":
        return [rng.standard_normal((size, len(part.factor))) @ part.factor / np.sqrt(size) for part in parts]
    return [orthogonal_rows(part.factor, size, part.row_count, int(rng.integers(2**60))) for part in parts]


@dataclass
class Found:
    """What was found in many draws: losses over ℓ of stack, information and auto; what auto took, and its claims."""

    rows: FloatArray
    information: FloatArray
    auto: FloatArray
    taken: list[str]
    claims: FloatArray
    inside: FloatArray
    truth_inside: FloatArray


@cache
def simulated(name: str, kind: str) -> Found:
    """Draw 96 sets of sketches of a design, twelve of each of eight data sets: coverage is over both."""
    rng = np.random.default_rng(29)
    columns: list[list[float]] = []
    taken, inside, truth = [], [], []
    counts = list(DESIGNS[name].rows)
    data = [DESIGNS[name].draw(rng) for _ in range(8)]
    known = [pooled for parts in data for pooled in [theory.pooled_moments(parts)] * 12]
    read = read_all([drawn(parts, SIZE, rng, kind) for parts in data for _ in range(12)])
    for pooled, sketches in zip(known, read, strict=True):
        moments = moments_of_parts(sketches, counts, kind)
        choice = theory.choose_stack(moments)
        equal = theory.stacked_fit(moments.sketches, counts, kind)
        by_information = theory.stacked_fit(moments.sketches, counts, kind, theory.information_weights(moments))
        fit = theory.stacked_fit(moments.sketches, counts, kind, choice.weights, choice.following)
        solution = fit.solution
        if choice.taken == "mixture":
            average = row_shares(moments) @ moments.coefficients
            solution = (1 - choice.share) * solution + choice.share * average
            claim = theory.certify_partition(moments, row_shares(moments), choice.share)
        else:
            claim = theory.certify_stacked(fit)
            ends = theory.confidence_intervals(solution, theory.stacked_covariance(fit))
            truth.append(float(np.mean((ends[:, 0] <= 1) & (ends[:, 1] >= 1))))
        losses = [
            float(np.sum((pooled.root @ (a - pooled.solution)) ** 2)) / pooled.loss
            for a in (equal.solution, by_information.solution, solution)
        ]
        columns.append([*losses, claim.excess_loss / pooled.loss])
        taken.append(choice.taken)
        assert claim.confidence is not None
        inside.append([low <= losses[2] * pooled.loss <= high for low, high in map(claim.confidence.interval, LEVELS)])
    values = np.array(columns).T
    return Found(values[0], values[1], values[2], taken, values[3], np.array(inside), np.array(truth))


def test_alike_partitions_keep_equal_weights() -> None:
    # 96 draws, the same sketches for both: in all but a few nothing was estimated that could be followed.
    found = simulated("alike", "gaussian")
    assert found.taken.count("rows") > 0.9 * len(found.taken)
    assert found.auto.mean() < 1.05 * found.rows.mean()


@pytest.mark.parametrize(("name", "least"), [("uneven sizes", 3.0), ("uneven scales", 3.0), ("unlike noise", 4.0)])
def test_weights_by_information_gain_where_coefficients_are_shared(name: str, least: float) -> None:
    # 96 draws: ratios of 4.3, 7 and 11 are known to about an eighth. A false alarm of the test, one in 500, costs a
    # factor of four in that draw.
    found = simulated(name, "gaussian")
    assert found.rows.mean() > least * found.auto.mean()
    kept = np.array(found.taken) == "information"
    np.testing.assert_array_equal(found.auto[kept], found.information[kept])
    assert found.taken.count("information") > 0.97 * len(found.taken)


def test_unlike_coefficients_get_a_mixture() -> None:
    # The average loses 2.8% of ℓ here and the stack 4.6%; what is taken is near the better one without being told.
    found = simulated("unlike coefficients", "gaussian")
    assert set(found.taken) == {"mixture"}
    assert found.auto.mean() < 0.75 * found.rows.mean()


@pytest.mark.parametrize(
    ("name", "kind"),
    [*((name, "gaussian") for name in DESIGNS), ("uneven sizes", "orthogonal")],
)
def test_certificates_hold(name: str, kind: str) -> None:
    # 96 draws: 95% is known to 2.2 points, three of which are allowed besides the 1.5 that approximations may take;
    # a mean of skewed losses to 6.5%. Without the gap between weighted and exact fit to all rows the claim for unlike
    # noise is a third low.
    found = simulated(name, kind)
    for share, level in zip(found.inside.mean(axis=0), LEVELS, strict=True):
        assert abs(share - level) < 0.015 + 3 * np.sqrt(level * (1 - level) / len(found.inside)), (share, level)
    usual = max(set(found.taken), key=found.taken.count)
    kept = np.array(found.taken) == usual
    assert found.claims[kept].mean() == pytest.approx(found.auto[kept].mean(), rel=0.18)
    if name in SHARED:
        # Coefficients of one fit go together: 96 fits of six count as about 180, which tell 95% to 1.6 points.
        assert found.truth_inside.mean() == pytest.approx(0.95, abs=0.035)


def test_a_mixture_is_certified_by_its_parts_and_for_its_share() -> None:
    """`(1 − s)² c + s² Δ + 2 s (1 − s) a`, and more because s was found from the same sketches."""
    rng = np.random.default_rng(33)
    parts = DESIGNS["unlike coefficients"].draw(rng)
    lifts = []
    for _ in range(20):
        moments = sketched(parts, SIZE, rng)
        shares, share = row_shares(moments), theory.choose_stack(moments).share
        stack = float(theory.pooled_scatter(moments).overfit.sum())
        both = float(np.sum(shares * moments.losses * moments.ranks / moments.sizes))
        average = theory.certify_partition(moments, shares).excess_loss
        expected = (1 - share) ** 2 * stack + share**2 * average + 2 * share * (1 - share) * both
        lifts.append((theory.certify_partition(moments, shares, share).excess_loss - expected) / stack)
        if share == 1:
            assert lifts[-1] == pytest.approx(0, abs=1e-9)
    assert min(lifts) > -1e-9
    assert max(lifts) < 1
    assert np.mean(lifts) > 0.02


def test_of_two_partitions_a_mixture_knows_how_much_its_gain_varies() -> None:
    """Gradients of two sketches are each other's opposite, so that their gains hardly differ, however they vary.

    What sketching gives to the gain is counted at least: `4 Σ (e_j² − b_j²)/m_j` over the distance of both fits, e and
    b the error of the stack and what it has in common with that of the average.
    """
    rng = np.random.default_rng(5)
    parts, more = [], 0
    for _ in range(2):
        design = np.column_stack([np.ones(200), rng.standard_normal((200, 2))])
        parts.append((design, design @ (1 + rng.standard_normal(3)) + rng.standard_normal(200)))
    for _ in range(20):
        moments = sketched(theory.moments_of(parts), 12, rng)
        shares, share = row_shares(moments), mixture_share(moments)
        scatter = theory.pooled_scatter(moments)
        found = excess_scalars(moments, theory.given_weights(moments, shares), scatter)
        gains, own = found.error - found.both, float(found.own.sum())
        assert (share > 0) == (gains.sum() > 0)
        if not 0 < share < 1 or gains.min() < 0:
            continue
        average = theory.certify_partition(moments, shares).excess_loss
        plain = (1 - share) ** 2 * found.error.sum() + share**2 * average + 2 * share * (1 - share) * found.both.sum()
        lift = theory.certify_partition(moments, shares, share).excess_loss - plain
        away = max(found.length + own, float(np.sum(found.fit - 2 * found.both + found.error)) + own)
        least = 4 * float(np.sum(found.error**2 - found.both**2)) / 12 / away
        assert lift >= (1 - 1e-9) * least
        # By how the parts differ it would be less than half of that.
        more += 4 * float(np.var(gains, ddof=1)) / away < least / 2
    assert more >= 5


def test_orthogonal_sketches_lose_less_than_gaussian_ones() -> None:
    assert (
        simulated("uneven sizes", "orthogonal").auto.mean() < 0.95 * simulated("uneven sizes", "gaussian").auto.mean()
    )


@pytest.mark.parametrize("name", SHARED)
def test_agreement_is_rejected_as_often_as_it_says(name: str) -> None:
    # 400 sets of sketches of rows drawn anew: 5% is known to 1.1 points, 1% to 0.5.
    rng = np.random.default_rng(31)
    data = [DESIGNS[name].draw(rng) for _ in range(80)]
    read = read_all([drawn(parts, SIZE, rng) for parts in data for _ in range(5)])
    counts = DESIGNS[name].rows
    chances = [constant_noise_heterogeneity(moments_of_parts(one, counts, "gaussian")).p_value for one in read]
    values = np.array(chances, dtype=float)
    assert 0.015 < np.mean(values < 0.05) < 0.095
    assert np.mean(values < LEAST_AGREEMENT) < 0.012


def test_the_level_of_agreement_falls_as_weights_gain() -> None:
    """With the same features everywhere equal weights vary mean(ω)·mean(1/ω) times as much as those by noise."""
    rng = np.random.default_rng(0)
    features = np.linalg.qr(rng.normal(size=(SIZE, 3)))[0]
    moments = theory.sketch_moments([np.column_stack([features, rng.normal(size=SIZE)]) for _ in range(4)], [100] * 4)
    for weights in (np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 1.0, 1.0, 9.0])):
        gain = weights.mean() * (1 / weights).mean() - 1
        assert agreement_level(moments, weights) == pytest.approx(min(0.001 / gain, 0.002))
    assert agreement_level(moments, np.ones(4)) == 0.002
    assert agreement_level(moments, np.array([1e-3, 1.0, 1.0, 1.0])) == 0.0001


def test_intervals_know_what_the_weighted_sketches_measure() -> None:
    """Rows behind a sketch count as its weight: six of 24 rows together measure like 144, not like the largest one.

    The law then has 144 − 6 + 1 degrees of freedom, to the order of this approximation. So many rows that what is
    missed without sketches is next to nothing; 20 draws, each within a tenth.
    """
    rng = np.random.default_rng(4)
    parts, laws = Design((1000,) * (K - 1) + (30000,)).draw(rng), []
    for _ in range(20):
        moments = sketched(parts, SIZE, rng)
        weights = weights_by_counts(moments.sizes, moments.row_counts, moments.law)
        fit = theory.stacked_fit(moments.sketches, moments.row_counts.astype(int).tolist(), moments.law, weights)
        laws.append(law_of_excess(fit, np.ones(K)))
    assert np.mean([law.in_gram for law in laws]) == pytest.approx(K * SIZE - 5, rel=0.12)
    # Features are alike everywhere, so that all directions count.
    assert np.mean([law.above for law in laws]) > 5.5


def test_weights_by_counts_and_noise() -> None:
    rng = np.random.default_rng(3)
    moments = sketched(DESIGNS["uneven sizes"].draw(rng), SIZE, rng)
    weights = theory.information_weights(moments)
    assert weights.mean() == pytest.approx(1)
    # φ = p/m + 1: (3000/24 + 1)/(100/24 + 1), if no difference in noise is followed.
    assert weights[0] / weights[-1] == pytest.approx(126 / (100 / 24 + 1), rel=0.5)
    exact = noise_of_rows([24, 24, 24, 60], [100, 3000, 24, 60], LAWS["orthogonal"])
    np.testing.assert_allclose(exact, [100 / 24, 125, 1, 1])
    np.testing.assert_allclose(noise_of_rows([24], [100], LAWS["gaussian"]), [100 / 24 + 1])
    np.testing.assert_allclose(noise_of_rows([24], [100], LAWS["srht"]), [100 / 24 + 1 - 100 / 128])


def test_noise_is_found_from_the_residuals_of_the_weighted_fit() -> None:
    """Noise from 0.2 to 4 in partitions of 100 and 1,000 rows; m − r is 4, and the fit of all leaves up to ten.

    Mean squared errors of the logarithms of weights, in 100 draws: 0.25, and 0.52 by the residuals of fits of
    their own.
    """
    rng = np.random.default_rng(6)
    rows, noise = np.array([100, 1000, 100, 1000, 100, 1000]), np.geomspace(0.2, 4, 6)
    errors = []
    for _ in range(100):
        sketches = []
        for count, level in zip(rows, noise, strict=True):
            X = rng.normal(size=(count, 6))
            table = np.column_stack([X, X.sum(axis=1) + level * rng.normal(size=count)])
            sketches.append(rng.normal(size=(10, count)) @ table / np.sqrt(10))
        moments = theory.sketch_moments(sketches, rows.tolist())
        logs = np.log(information_weights(moments) * noise_of_rows(moments.sizes, rows, moments.law) * noise**2)
        errors.append(logs - logs.mean())
    assert np.mean(np.square(errors)) < 0.35
    # What is drawn to the mean is off by a part of the distance to it; numbers of rows make no difference.
    assert np.all(np.diff(np.mean(errors, axis=0)) > -0.15)


def test_what_cannot_be_tested_is_stacked_by_rows() -> None:
    rng = np.random.default_rng(4)
    parts = DESIGNS["uneven sizes"].draw(rng)
    samples = [rng.standard_normal((SIZE, D + 1)) for _ in parts]
    moments = theory.sketch_moments(samples, [part.row_count for part in parts], sketch="row_sample")
    choice = theory.choose_stack(moments)
    assert (choice.taken, choice.weights.tolist()) == ("rows", [1.0] * K)
    assert "cannot be tested" in choice.reason
    assert "weighting='information'" in choice.reason
    assert theory.choose_stack(moments, "information").taken == "information"
    one = theory.sketch_moments([samples[0]], [500])
    assert theory.choose_stack(one).reason == "there is one partition only"
    with pytest.raises(InputError, match="weighting is 'best': choose 'auto', 'rows' or 'information'"):
        theory.choose_stack(moments, "best")
    assert choices_of("weighting") == WEIGHTINGS


def test_a_weighted_fit_is_the_fit_to_weighted_rows() -> None:
    rng = np.random.default_rng(5)
    parts = DESIGNS["alike"].draw(rng)
    moments = sketched(parts, SIZE, rng)
    weights = np.linspace(1.0, 3.0, K)
    rows = np.vstack([np.sqrt(w) * part.factor for w, part in zip(weights, moments.sketches, strict=True)])
    expected = np.linalg.lstsq(rows[:, :-1], rows[:, -1])[0]
    counts = [part.row_count for part in parts]
    for scale in (1.0, 1e-6):
        fit = theory.stacked_fit(moments.sketches, counts, "gaussian", scale * weights)
        np.testing.assert_allclose(fit.pooled.solution, expected, rtol=1e-9)
        assert fit.weights.mean() == pytest.approx(1)
    # Nearly equal weights are certified as equal ones are, but for what is estimated of departures.
    nearly = theory.stacked_fit(moments.sketches, counts, "gaussian", 1 + 1e-9 * weights)
    equal = theory.stacked_fit(moments.sketches, counts, "gaussian")
    claims = [theory.certify_stacked(one).excess_loss for one in (nearly, equal)]
    assert claims[0] == pytest.approx(claims[1], rel=0.1)
    with pytest.raises(InputError, match="weights must be 6 positive numbers"):
        theory.stacked_fit(moments.sketches, counts, "gaussian", [1, 1, 1, 1, 1, 0])


@pytest.mark.parametrize("name", ["uneven sizes", "unlike noise", "unlike coefficients"])
def test_prediction_given_the_data_with_weights(name: str) -> None:
    # 300 sets of sketches: the mean loss is known to 4%.
    rng = np.random.default_rng(6)
    parts = DESIGNS[name].draw(rng)
    pooled, counts = theory.pooled_moments(parts), [part.row_count for part in parts]
    weights = 1 / (np.array(counts) / SIZE + 1) / [part.loss / part.row_count for part in parts]
    losses = []
    for sketches in read_all([drawn(parts, SIZE, rng) for _ in range(300)]):
        fit = theory.stacked_fit(sketches, counts, weights=weights)
        losses.append(np.sum((pooled.root @ (fit.pooled.solution - pooled.solution)) ** 2))
    assert theory.stacked_excess_loss_given_data(parts, SIZE, weights) == pytest.approx(np.mean(losses), rel=0.13)
