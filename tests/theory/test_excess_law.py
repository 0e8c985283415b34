"""What an averaged fit loses and what the sketches show of it, given the sketched features: the law, by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from partsketch import theory
from partsketch.theory import excess_law as law_module
from partsketch.theory.excess_draws import GramNoise, distribution_of, excess_distributions, told_of, variance_between
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
        (np.mean([law.fit.mean(axis=0) for law in laws], axis=0), error.T @ error),
        (np.mean([law.crossed.mean(axis=0) for law in laws], axis=0), error.T @ seen),
        (np.mean([law.spread.mean(axis=0) for law in laws], axis=0), seen.T @ seen),
    ):
        # 44 degrees of freedom behind each law, 100 laws; E is never drawn below zero, which adds a little to the last.
        assert np.trace(found) == pytest.approx(np.trace(true) / len(noise), rel=0.12)


def test_the_noise_of_rows_is_the_least_that_coefficients_differ_by() -> None:
    """`P_it_i` drawn 20,000 times: what it adds to the error of the stacked fit, written out, to 3%."""
    rng = np.random.default_rng(10)
    rows = 65
    moments, scatter = known(errors_of("unlike", rng), rows)
    weights = theory.given_weights(moments)
    scalars = excess_scalars(moments, weights, scatter)
    fit = FitInSketches(scalars.inverses, scalars.distance, 1.0, scalars.own)
    found = law_module.error_of_rows(moments, weights, scatter, fit, NOISE["unlike"][None])[0][0]
    scale = np.sqrt(NOISE["unlike"] * SIZE / (rows - COLUMNS))
    roots = np.linalg.cholesky(scatter.grams)
    gradients = np.einsum("kab,nkb->nka", roots, rng.standard_normal((20_000, PARTITIONS, COLUMNS))) * scale[:, None]
    apart = np.einsum("kab,nkb->nka", scalars.inverses, gradients) - gradients.sum(axis=1, keepdims=True)
    pulled = np.einsum("kab,nkb->nka", scatter.grams, apart)
    energies = np.sum(pulled * apart, axis=2).mean(axis=0)
    expected = np.tensordot(energies, scatter.grams, axes=1) + np.einsum("nka,nkb->ab", pulled, pulled) / 20_000
    np.testing.assert_allclose(found, expected / SIZE, atol=0.03 * np.trace(found) / COLUMNS)
    # Where E is drawn as nothing, the noise of 25 rows takes its place.
    laws = [law_of(errors_of("alike", np.random.default_rng(3)), count) for count in (25, MANY)]
    few, many = (np.trace(law.spread, axis1=1, axis2=2).min() for law in laws)
    assert few > 1.1 * many


def test_what_the_distance_tells_of_residuals() -> None:
    """Noise drawn 40,000 times: of `Σ s_iᵀP_is_i/E` the distance to the stacked fit tells as much as is said."""
    rng = np.random.default_rng(12)
    levels = NOISE["unlike"]
    moments, scatter = known(errors_of("unlike", rng))
    weights = theory.given_weights(moments)
    scalars = excess_scalars(moments, weights, scatter)
    fit = FitInSketches(scalars.inverses, scalars.distance, 1.0, scalars.own)
    matrix = law_module.told_by_distance(fit, weights, scatter, levels, np.ones((1, PARTITIONS)), slice(None))[0]
    roots = np.linalg.cholesky(scatter.grams) * np.sqrt(levels)[:, None, None]
    gradients = np.einsum("kab,nkb->nka", roots, rng.standard_normal((40_000, PARTITIONS, COLUMNS)))
    fits = np.einsum("kab,nkb->nka", scalars.inverses, gradients)
    energies = np.sum(gradients * fits, axis=2) @ (1 / levels / COLUMNS) - PARTITIONS
    distances = fits.mean(axis=1) - gradients.sum(axis=1)
    variances, turns = np.linalg.eigh(distances.T @ distances / len(distances))
    said = told_of(distances @ turns, variances[None], turns.T @ matrix @ turns)
    slope = float(said @ energies / (said @ said))
    # The standard error of the slope is 0.012; without the trace the mean would be 0.7 too large.
    assert slope == pytest.approx(1.0, abs=0.05)
    assert said.mean() == pytest.approx(0.0, abs=0.02)
    # The distance tells a good part of it, so the slope means something.
    assert np.var(said) > 0.1 * np.var(energies)


def test_the_distance_tells_nothing_of_the_minimal_loss_with_weights_by_variance() -> None:
    """Relative intervals of 90% covered 84% of 500 draws when it was taken to: ĝ is then the noise of other fits."""
    moments, scatter = known(errors_of("unlike", np.random.default_rng(13)))
    for weights, tells in ((theory.given_weights(moments), True), (theory.sketch_weights(moments), False)):
        scalars = excess_scalars(moments, weights, scatter)
        fit = FitInSketches(scalars.inverses, scalars.distance, 1.0, scalars.own)
        of_own, of_loss = excess_law(moments, weights, scatter, fit).told
        assert of_own.any()
        assert of_loss.any() == tells


def test_unlike_coefficients_are_drawn_as_far_as_they_are_in_doubt() -> None:
    moments, scatter = known(errors_of("alike", np.random.default_rng(11)))
    amounts = np.trace(law_module.unlike_scatter(moments, scatter, 1000, np.random.default_rng(1)), axis1=1, axis2=2)
    own = moments.losses / moments.sizes
    doubt = np.sum(
        2
        * (own * scatter.leverages) ** 2
        * (COLUMNS - scatter.leverages)
        / (SIZE - scatter.leverages)
        / (SIZE - COLUMNS)
    )
    positive = amounts[amounts > 0]
    # Half of a normal distribution or so: its spread is 0.6 to 1 of the whole one's (squares of estimates: 20% less).
    assert 0.4 < positive.std() / np.sqrt(doubt) < 1.0


def test_noise_is_shared_alike_where_chance_explains_the_differences() -> None:
    rng = np.random.default_rng(1)
    free = np.full(4, 8.0)
    alike = law_module.shared_noise(np.array([1.0, 1.1, 0.9, 1.05]), free, 50, rng)
    assert np.ptp(alike) < 1e-12
    apart = law_module.shared_noise(np.array([100.0, 1.0, 1.0, 1.0]), free, 400, rng)
    ratio = apart[:, 0] / apart[:, 1]
    assert 40 < np.median(ratio) < 110
    # Of the logarithms of both: about twice ψ'(4) = 0.28, a little less where they are drawn together.
    assert 0.35 < np.var(np.log(ratio)) < 0.7
    # A partition without noise has none.
    assert not law_module.shared_noise(np.array([0.0, 1.0, 2.0, 1.0]), free, 5, rng)[:, 0].any()


def test_variance_between_groups_solves_its_equation() -> None:
    squares, variances = np.array([9.0, 1.0, 0.1]), np.array([[0.5, 1.0, 2.0], [0.1, 0.1, 4.0], [5.0, 5.0, 5.0]])
    chances = np.array([2.0, 3.0, 2.5])
    between, none = variance_between(squares, variances, chances)
    np.testing.assert_allclose((1 / (variances[:2] + between[:2])) @ squares, chances[:2], rtol=1e-6)
    assert none.tolist() == [False, False, True]
    assert between[2, 0] == 0


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
    same = np.eye(rank)[None]
    law = ExcessLaw(
        distance, fit * same, crossed * same, seen * same, 1e9, 0.0, 0.0, 0.0, np.zeros((2, rank, rank)), True
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
