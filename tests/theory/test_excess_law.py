"""What an averaged fit loses and what the sketches show of it, given the sketched features: the law, by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from partsketch import theory
from partsketch.theory import excess_law as law_module
from partsketch.theory import unlike_coefficients
from partsketch.theory.excess_draws import (
    GramNoise,
    OwnPart,
    distribution_of,
    excess_distributions,
    told_of,
    variance_between,
)
from partsketch.theory.excess_law import ExcessLaw, FitInSketches, excess_law
from partsketch.theory.partition_certificate import excess_scalars

COLUMNS, SIZE, PARTITIONS, DRAWS = 5, 15, 4, 100
#: So many rows that their own noise is nothing beside that of the sketches.
MANY = 10**9
#: Variances of the sketched residuals of each partition.
NOISE = {"alike": np.ones(PARTITIONS), "unlike": np.array([0.25, 1.0, 2.0, 8.0])}

Array = NDArray[np.float64]


def features() -> list[Array]:
    rng = np.random.default_rng(8)
    return [rng.standard_normal((SIZE, COLUMNS)) for _ in range(PARTITIONS)]


def known(errors: list[Array], rows: int = MANY) -> tuple[theory.SketchMoments, theory.PooledScatter]:
    sketches = [np.column_stack(both) for both in zip(features(), errors, strict=True)]
    moments = theory.sketch_moments(sketches, [rows] * PARTITIONS)
    return moments, theory.pooled_scatter(moments)


def law_of(errors: list[Array], rows: int = MANY) -> ExcessLaw:
    moments, scatter = known(errors, rows)
    weights = theory.given_weights(moments)
    scalars = excess_scalars(moments, weights, scatter)
    return excess_law(moments, weights, scatter, FitInSketches(scalars.inverses, scalars.distance, 1.0, scalars.own))


def errors_of(name: str, rng: np.random.Generator) -> list[Array]:
    return [np.sqrt(level) * rng.standard_normal(SIZE) for level in NOISE[name]]


@pytest.mark.parametrize("name", NOISE)
def test_covariances_of_the_error_and_of_what_is_seen(name: str) -> None:
    """Features stay, noise is drawn: 20,000 times for the covariances, 100 times for the law that is to know them."""
    rng = np.random.default_rng(9)
    matrices = features()
    root = np.asarray(np.linalg.qr(np.vstack(matrices), mode="r"))
    noise = rng.standard_normal((20_000, PARTITIONS, SIZE)) * np.sqrt(NOISE[name])[:, None]
    fits = np.stack([noise[:, i] @ np.linalg.pinv(matrix).T for i, matrix in enumerate(matrices)], axis=1)
    stacked = noise.reshape(len(noise), -1) @ np.linalg.pinv(np.vstack(matrices)).T
    error = fits.mean(axis=1) @ root.T
    seen = error - stacked @ root.T
    laws = [law_of(errors_of(name, rng)) for _ in range(DRAWS)]
    for found, true in (
        (np.mean([law.fit for law in laws], axis=0), error.T @ error),
        (np.mean([law.crossed for law in laws], axis=0), error.T @ seen),
        (np.mean([law.spread for law in laws], axis=0), seen.T @ seen),
    ):
        # 44 degrees of freedom behind each law, 100 laws; E is never below zero, which adds a little to the last.
        assert np.trace(found) == pytest.approx(np.trace(true) / len(noise), rel=0.12)


def test_the_noise_of_rows_is_the_least_that_coefficients_differ_by() -> None:
    """`P_it_i` drawn 20,000 times: what it adds to the error of the stacked fit, written out, to 3%."""
    rng = np.random.default_rng(10)
    rows = 65
    moments, scatter = known(errors_of("unlike", rng), rows)
    weights = theory.given_weights(moments)
    scalars = excess_scalars(moments, weights, scatter)
    found = unlike_coefficients.error_of_rows(moments, weights, scatter, scalars.inverses, NOISE["unlike"])[0]
    scale = np.sqrt(NOISE["unlike"] * SIZE / (rows - COLUMNS))
    roots = np.linalg.cholesky(scatter.grams)
    gradients = np.einsum("kab,nkb->nka", roots, rng.standard_normal((20_000, PARTITIONS, COLUMNS))) * scale[:, None]
    apart = np.einsum("kab,nkb->nka", scalars.inverses, gradients) - gradients.sum(axis=1, keepdims=True)
    pulled = np.einsum("kab,nkb->nka", scatter.grams, apart)
    energies = np.sum(pulled * apart, axis=2).mean(axis=0)
    expected = np.tensordot(energies, scatter.grams, axes=1) + np.einsum("nka,nkb->ab", pulled, pulled) / 20_000
    np.testing.assert_allclose(found, expected / SIZE, atol=0.03 * np.trace(found) / COLUMNS)
    # Where E is found to be nothing, the noise of 25 rows takes its place.
    laws = [law_of(errors_of("alike", np.random.default_rng(5)), count) for count in (25, MANY)]
    few, many = (np.trace(law.spread) for law in laws)
    assert few > 1.1 * many


def test_what_the_distance_tells_of_residuals() -> None:
    """Noise drawn 40,000 times: of `Σ s_iᵀP_is_i/E` the distance to the stacked fit tells as much as is said."""
    rng = np.random.default_rng(12)
    levels = NOISE["unlike"]
    moments, scatter = known(errors_of("unlike", rng))
    weights = theory.given_weights(moments)
    scalars = excess_scalars(moments, weights, scatter)
    fit = FitInSketches(scalars.inverses, scalars.distance, 1.0, np.ones(PARTITIONS))
    matrix = law_module.told_by_distance(fit, weights, scatter, levels, slice(None))
    roots = np.linalg.cholesky(scatter.grams) * np.sqrt(levels)[:, None, None]
    gradients = np.einsum("kab,nkb->nka", roots, rng.standard_normal((40_000, PARTITIONS, COLUMNS)))
    fits = np.einsum("kab,nkb->nka", scalars.inverses, gradients)
    energies = np.sum(gradients * fits, axis=2) @ (1 / levels / COLUMNS) - PARTITIONS
    distances = fits.mean(axis=1) - gradients.sum(axis=1)
    variances, turns = np.linalg.eigh(distances.T @ distances / len(distances))
    every = np.ones(COLUMNS, dtype=bool)
    said = told_of(distances @ turns, variances[None], turns.T @ matrix @ turns, every)
    slope = float(said @ energies / (said @ said))
    # The standard error of the slope is 0.012; without the trace the mean would be 0.7 too large.
    assert slope == pytest.approx(1.0, abs=0.05)
    assert said.mean() == pytest.approx(0.0, abs=0.02)
    # The distance tells a good part of it, so the slope means something.
    assert np.var(said) > 0.1 * np.var(energies)


def test_a_trace_is_not_below_zero() -> None:
    """The mean of 400,000 normal draws without those below zero, to five standard errors of it."""
    drawn = np.random.default_rng(1).standard_normal(400_000)
    for mean, deviation in ((0.3, 2.0), (-1.0, 0.7), (5.0, 0.5)):
        expected = np.maximum(mean + deviation * drawn, 0.0).mean()
        assert unlike_coefficients.mean_above_zero(mean, deviation) == pytest.approx(expected, abs=0.008 * deviation)
    assert unlike_coefficients.mean_above_zero(-1.0, 0.0) == 0.0


def test_unlike_coefficients_are_seen_in_the_mean() -> None:
    """Coefficients of each partition drawn anew with 100 sets of errors: E is what they add to the stacked fit."""
    rng = np.random.default_rng(11)
    found, true = [], []
    for _ in range(100):
        shifts = rng.standard_normal((PARTITIONS, COLUMNS))
        errors = [matrix @ shift for matrix, shift in zip(features(), shifts, strict=True)]
        moments, scatter = known([a + b for a, b in zip(errors, errors_of("alike", rng), strict=True)])
        found.append(np.trace(unlike_coefficients.unlike_scatter(moments, scatter)))
        apart = shifts - np.linalg.lstsq(np.vstack(features()), np.concatenate(errors))[0]
        pulled = [matrix.T @ matrix @ shift for matrix, shift in zip(features(), apart, strict=True)]
        whitened = np.array(pulled) @ scatter.pooled.inverse_root
        energies = [float(shift @ one) for shift, one in zip(apart, pulled, strict=True)]
        true.append((np.sum(energies * scatter.leverages) + np.sum(whitened**2)) / SIZE)
    # Both vary by a third from draw to draw, and together; noise adds 5%. Energies include what sketches overestimate.
    assert np.mean(found) == pytest.approx(np.mean(true), rel=0.1)


def test_noise_that_hides_unlike_coefficients_in_every_direction_is_no_fault_of_its_unit() -> None:
    """One partition with a million times the noise: E is nothing in any direction, in any unit of the target."""
    hidden = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        errors = [level * rng.standard_normal(SIZE) for level in (1e6, 1.0, 1.0, 1.0)]
        small, large = (known([unit * one for one in errors]) for unit in (2.0**-40, 1.0))
        found = unlike_coefficients.unlike_scatter(*large)
        np.testing.assert_array_equal(found, unlike_coefficients.unlike_scatter(*small) * 2.0**80)
        hidden += not found.any()
        law = law_of(errors)
        assert np.isfinite(law.spread).all()
    assert hidden >= 5


def test_noise_is_shared_alike_where_chance_explains_the_differences() -> None:
    free = np.full(4, 8.0)
    alike = law_module.shared_noise(np.array([1.0, 1.1, 0.9, 1.05]), free)
    assert np.ptp(alike) < 1e-12
    apart = law_module.shared_noise(np.array([100.0, 1.0, 1.0, 1.0]), free)
    # The logarithms vary by 5.3, of which ψ'(4) = 0.28 is chance: 5% of the way to their mean.
    assert np.log(apart[0] / apart[1]) == pytest.approx(np.log(100) * (1 - 0.2838 / 5.302), rel=1e-3)
    # A partition without noise has none.
    assert not law_module.shared_noise(np.array([0.0, 1.0, 2.0, 1.0]), free)[0]


def test_what_the_distance_does_not_tell_is_the_noise_of_the_others() -> None:
    """One partition with 25 times the variance of the others decides ĝ, and little of what ĝ does not tell."""
    rng = np.random.default_rng(15)
    noise = np.array([5.0, 1.0, 1.0, 1.0])
    laws = [law_of([level * rng.standard_normal(SIZE) for level in noise]) for _ in range(20)]
    alike = [law_of(errors_of("alike", rng)) for _ in range(20)]
    one, all_of_them = SIZE - COLUMNS, PARTITIONS * (SIZE - COLUMNS)
    assert np.median([law.seen_freedom for law in laws]) < 1.7 * one
    assert np.median([law.freedom for law in laws]) > 2.4 * one
    for freedoms in zip(*((law.freedom, law.seen_freedom) for law in alike), strict=True):
        assert np.median(freedoms) > 0.6 * all_of_them


def test_variance_between_groups_solves_its_equation() -> None:
    seen, variances = np.array([3.0, 1.0, 0.3]), np.array([[0.5, 1.0, 2.0], [0.1, 0.1, 4.0], [5.0, 5.0, 5.0]])
    chances = np.array([[2.0, 0.5, 0.1], [1.0, 3.0, 0.2], [1.0, 1.5, 0.5]])
    between, none = variance_between(seen, variances, chances)
    np.testing.assert_allclose(np.sum((variances + between) * chances, axis=1)[:2], seen @ seen, rtol=1e-12)
    assert none.tolist() == [False, False, True]
    assert between[2, 0] == 0


def test_what_averaging_costs_counts_the_same_in_every_direction() -> None:
    """Whether ĝ tells a direction well or badly: 400 draws of ĝ, so that both means are known to 3%.

    A variance by `ĝᵀ(Q + τ²)⁻¹ĝ` follows the directions with little noise: 2.1 in the first and 1.5 in the last.
    """
    variances, means = np.array([0.02, 0.1, 0.3, 0.6, 1.0]), []
    for place in (0, 4):
        rng = np.random.default_rng(11)
        seen = rng.standard_normal((400, 5)) * np.sqrt(variances)
        seen[:, place] += 2.5
        draws = [rng.chisquare(1.0, (200, 5)) for _ in seen]
        found = [
            variance_between(one, np.tile(variances, (200, 1)), draw)[0].mean()
            for one, draw in zip(seen, draws, strict=True)
        ]
        means.append(5 * np.mean(found) / 2.5**2)
    assert means[0] == pytest.approx(means[1], rel=0.12)
    # The confidence distribution of a variance in five directions has a mean 5/3 times as large, without noise.
    assert 5 / 3 < np.mean(means) < 2.1


def test_lower_ends_make_up_for_upper_ends_that_cover_too_often() -> None:
    """If μ is zero the interval of 90% holds 90% of the draws without μ, unless tails must be equal."""
    rng = np.random.default_rng(4)
    without = rng.chisquare(5, 50_000)
    drawn = without * (1 + rng.random(50_000))
    for equal_tails, share in ((False, 0.90), (True, 0.945)):
        low, high = distribution_of(drawn, without, 1.0, equal_tails).interval(0.90)
        assert np.mean((without >= low) & (without <= high)) == pytest.approx(share, abs=0.01)
    # A share of draws without μ that is below the chance of the end says that μ is not zero.
    assert distribution_of(drawn, without, 0.01, False).quantile(0.05) == pytest.approx(np.quantile(drawn, 0.05))


def test_the_error_is_drawn_given_the_distance_that_is_seen() -> None:
    """The law written out for one variance in all directions, and drawn by other means: 100,000 draws."""
    rank, seen, crossed, fit = 6, 1.0, 1.0, 2.0
    distance = np.full(rank, np.sqrt(12 / rank))
    same = np.eye(rank)
    law = ExcessLaw(
        distance, fit * same, crossed * same, seen * same, 1e9, 1e9, 0.0, 0.0, 0.0, np.zeros((rank, rank)), True
    )
    found, _, _ = excess_distributions(law, GramNoise(1e9, 0.0), 1.0)
    rng = np.random.default_rng(21)
    between = np.maximum(distance @ distance / rng.chisquare(rank, 100_000) - seen, 0.0)[:, None]
    mean = (crossed + between) / (seen + between) * distance
    spread = np.sqrt(fit + between - (crossed + between) ** 2 / (seen + between))
    lengths = np.sum((mean + spread * rng.standard_normal(mean.shape)) ** 2, axis=1)
    # The median of 8,192 draws has an error of about 0.6% of the spread; without the regression it would be 30% less.
    assert found.quantile(0.5) == pytest.approx(np.median(lengths), rel=0.03)
    assert found.quantile(0.9) == pytest.approx(np.quantile(lengths, 0.9), rel=0.03)


def test_where_the_distance_is_beyond_doubt_nothing_is_drawn_towards_zero() -> None:
    """ĝ of ten standard deviations in one direction of 24: the excess is `(10 − z)²`, in quantiles of a normal z."""
    rank = 24
    nothing, same = np.zeros((rank, rank)), np.eye(rank)
    distance = np.zeros(rank)
    distance[3] = 10.0
    law = ExcessLaw(distance, 1e-12 * same, nothing, same, 1e9, 1e9, 0.0, 0.0, 0.0, nothing, False)
    found, _, _ = excess_distributions(law, GramNoise(1e9, 0.0), 1.0)
    # A variance shared with the other directions would leave 0.74 of the median.
    for chance, deviation in ((0.05, -1.644854), (0.5, 0.0), (0.95, 1.644854)):
        assert found.quantile(chance) == pytest.approx((10 + deviation) ** 2, rel=0.02)
    # Of 1.5 standard deviations nothing is certain, and they are drawn towards zero.
    small = ExcessLaw(0.15 * distance, 1e-12 * same, nothing, same, 1e9, 1e9, 0.0, 0.0, 0.0, nothing, False)
    assert excess_distributions(small, GramNoise(1e9, 0.0), 1.0)[0].quantile(0.5) < 0.5


def test_what_a_sketch_does_not_show_of_its_own_loss_has_the_law_that_is_drawn() -> None:
    """Written out for m = 12, r = 8: `‖ε‖²/‖Sε‖² − 1`, ε the error of the sketch's own fit; 10,000 draws."""
    size, rank, draws = 12, 8, 10_000
    rng = np.random.default_rng(8)
    sketches = rng.standard_normal((draws, size, rank)) / np.sqrt(size)
    scores = np.swapaxes(sketches, 1, 2) @ rng.standard_normal((draws, size, 1))
    errors = np.linalg.solve(np.swapaxes(sketches, 1, 2) @ sketches, scores)
    hidden = np.sum(errors**2, axis=(1, 2)) / np.sum((sketches @ errors) ** 2, axis=(1, 2)) - 1
    mean = (rank + 1) / (size - rank - 1)
    drawn = OwnPart(mean, size, rank, 1.0).drawn(np.random.default_rng(9), draws)
    # Quantiles of 10,000 draws of a chi-square of five degrees of freedom are known to 1 to 2%.
    for chance in (0.05, 0.5, 0.95):
        assert np.quantile(drawn, chance) == pytest.approx(np.quantile(hidden, chance), rel=0.06)
    # A sketch of all rows shows all: the mean stands for its law.
    assert np.ptp(OwnPart(mean, size, rank, 0.0).drawn(np.random.default_rng(9), 100)) == 0


def test_own_losses_of_few_partitions_are_as_uncertain_as_their_chi_squares() -> None:
    """An error that is known, 1 in length, and what three sketches do not show of it, 1 in the mean, drawn."""
    rank = 30
    nothing, same = np.zeros((rank, rank)), np.eye(rank)
    distance = np.zeros(rank)
    distance[0] = 1.0
    law = ExcessLaw(distance, 1e-12 * same, nothing, 1e-8 * same, 1e9, 1e9, 0.0, 0.0, 1.0, nothing, True)
    parts = (OwnPart(1 / 3, rank + 5, rank, 1.0),) * 3
    found, _, _ = excess_distributions(law, GramNoise(1e9, 0.0, parts), 1.0)
    rng = np.random.default_rng(10)
    expected = 1 + np.mean([part.drawn(rng, 100_000) * 3 for part in parts], axis=0)
    for chance in (0.05, 0.5, 0.95):
        assert found.quantile(chance) == pytest.approx(np.quantile(expected, chance), rel=0.04)
    # Of one among many only the mean counts, and the sum has the mean of all.
    many = (OwnPart(1 / 1000, rank + 5, rank, 1.0),) * 1000
    assert excess_distributions(law, GramNoise(1e9, 0.0, many), 1.0)[0].quantile(0.5) == pytest.approx(2, rel=0.01)
