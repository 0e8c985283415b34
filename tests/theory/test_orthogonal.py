"""Exact losses of orthogonal sketches, samples of finite populations, and the bound that no fit can pass."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import block_diag

from partsketch import InputError, theory
from tests.theory.designs import design, excesses, fits, sketch_matrix, together


@pytest.mark.parametrize("name", ["heterogeneous", "singular"])
def test_average_of_orthogonal_fits(name: str) -> None:
    # 4,000 explicit draws: the mean is known to about 1.5%.
    rng = np.random.default_rng(71)
    partitions, weights, sizes = design(name), np.array([0.2, 0.5, 0.3]), (20, 24, 70)
    total = np.zeros((4000, 4))
    for part, weight, size in zip(partitions, weights, sizes, strict=True):
        rows = together(part)
        sketches = [sketch_matrix("orthogonal", size, len(rows), rng) @ rows for _ in range(4000)]
        total += weight * fits(np.stack(sketches))
    predicted = theory.orthogonal_partition_excess_loss(partitions, sizes, weights)
    assert np.mean(excesses(partitions, total)) == pytest.approx(predicted, rel=0.06)
    assert predicted < theory.partition_excess_loss(partitions, sizes, weights)


def test_nothing_is_lost_with_all_rows() -> None:
    partitions = design("heterogeneous")
    rows = [len(X) for X, _ in partitions]
    average = theory.unsketched_average_excess_loss(partitions)
    assert theory.orthogonal_partition_excess_loss(partitions, rows) == pytest.approx(average)
    assert theory.orthogonal_partition_excess_loss(partitions, [size + 3 for size in rows]) == pytest.approx(average)
    assert theory.orthogonal_excess_loss(5.0, 3, 40, 40, 2) == 0.0
    assert theory.orthogonal_excess_loss(5.0, 3, 10**9, 40, 2) == pytest.approx(theory.whole_excess_loss(5.0, 3, 40, 2))
    with pytest.raises(InputError, match=r"rank \+ 1"):
        theory.orthogonal_excess_loss(5.0, 3, 40, 4, 1)


@pytest.mark.parametrize("kind", ["srht", "row_sample", "leverage_sample", "orthogonal"])
def test_finite_populations_lose_less(kind: str) -> None:
    """The factor (n − m)/(n − r), n padded to a power of two for srht: in the formulas, and nothing lost at m = n."""
    n, m, r = 128, 96, 5
    share = (n - m) / (n - r)
    gaussian = theory.whole_excess_loss(7.0, r, m, 2)
    assert theory.approximate_whole_excess_loss(7.0, r, m, 2, n, kind) == pytest.approx(share * gaussian)
    assert theory.approximate_whole_excess_loss(7.0, r, n, 2, n, kind) == 0.0
    parts = [(X[:50], y[:50]) for X, y in design("identical")]
    padded = 64 if kind == "srht" else 50
    averaging = theory.unsketched_average_excess_loss(parts)
    found = theory.approximate_partition_excess_loss(parts, 40, kind) - averaging
    expected = theory.partition_excess_loss(parts, 40) - averaging
    assert found == pytest.approx(expected * (padded - 40) / (padded - 4))


@pytest.mark.parametrize("kind", ["srht", "row_sample", "leverage_sample", "orthogonal"])
def test_certificates_of_finite_populations(kind: str) -> None:
    """What the certificate of one sketch says is the Gaussian one times (n − m)/(n − r), ℓ̂ times (n − r)/n."""
    sketch = theory.read_sketch(np.random.default_rng(8).standard_normal((96, 6)))
    finite, gaussian = (theory.certify_whole([sketch], 128, name) for name in (kind, "gaussian"))
    assert finite.relative_excess_loss == pytest.approx(gaussian.relative_excess_loss * 32 / 123)
    assert finite.minimal_loss == pytest.approx(gaussian.minimal_loss * 123 / 128)
    assert finite.kind == ("estimated" if kind == "orthogonal" else "approximate")


def test_no_unbiased_fit_loses_less_than_the_bound() -> None:
    """By the exact expected losses of three fits, and of a thousand others that are unbiased too."""
    rng = np.random.default_rng(9)
    counts, size, d = (40, 60, 25), 12, 4
    designs = [rng.standard_normal((count, d)) for count in counts]
    sketches = [rng.standard_normal((size, count)) for count in counts]
    X, S = np.vstack(designs), block_diag(*sketches)
    gram = X.T @ X
    exact, SX = np.linalg.solve(gram, X.T), S @ X
    for noise in (np.ones(3), np.array([1.0, 4.0, 0.25])):
        variances = np.repeat(noise, counts)

        def lost(B: np.ndarray, variances: np.ndarray = variances) -> float:
            away = B @ S - exact
            return float(np.trace(gram @ (away * variances) @ away.T))

        bound = theory.least_sketched_excess_loss(designs, sketches, noise)
        W = (S * variances) @ S.T
        C = (S * variances) @ X @ np.linalg.inv(gram)
        generalised = np.linalg.solve(SX.T @ np.linalg.solve(W, SX), SX.T @ np.linalg.inv(W))
        added = (np.eye(d) - C.T @ np.linalg.solve(W, SX)) @ np.linalg.inv(SX.T @ np.linalg.solve(W, SX))
        best = (C.T + added @ SX.T) @ np.linalg.inv(W)
        assert lost(best) == pytest.approx(bound, rel=1e-9)
        assert lost(np.linalg.pinv(SX)) > bound
        assert lost(generalised) == pytest.approx(bound, rel=1e-9) if noise[1] == 1 else lost(generalised) > bound
        around = np.eye(len(SX)) - SX @ np.linalg.pinv(SX)
        others = [lost(best + 0.01 * rng.standard_normal(best.shape) @ around) for _ in range(1000)]
        assert min(others) > bound
    with pytest.raises(InputError, match="3 designs came with 1 sketching matrices"):
        theory.least_sketched_excess_loss(designs, sketches[:1])
    with pytest.raises(InputError, match="must be positive"):
        theory.least_sketched_excess_loss(designs, sketches, [1.0, 0.0, 1.0])


def test_price_of_estimated_noise() -> None:
    """20,000 draws of noise for one set of sketched rows: what estimated weights lose more is known to 5%.

    The approximation is of first order in 2/f, f = 21 degrees of freedom: a tenth of itself.
    """
    rng = np.random.default_rng(72)
    noise = np.array([0.25, 1.0, 1.0, 4.0])
    rows = [scale * rng.normal(size=(24, 3)) for scale in (1.0, 2.0, 1.0, 1.0)]
    errors = [np.sqrt(variance) * rng.normal(size=(20_000, 24)) for variance in noise]
    grams = np.stack([part.T @ part for part in rows])
    scores = [error @ part for error, part in zip(errors, rows, strict=True)]
    found = []
    for estimated in (False, True):
        matrix, side = np.zeros((20_000, 3, 3)), np.zeros((20_000, 3))
        for gram, score, error, variance in zip(grams, scores, errors, noise, strict=True):
            own = np.sum(error**2, axis=1) - np.einsum("na,ab,nb->n", score, np.linalg.inv(gram), score)
            weight = 21 / own if estimated else np.full(20_000, 1 / variance)
            matrix += weight[:, None, None] * gram
            side += weight[:, None] * score
        found.append(np.sum(np.linalg.solve(matrix, side[:, :, None]) ** 2, axis=(1, 2)))
    price = theory.price_of_estimated_noise(rows, np.eye(3), noise, np.full(4, 21.0))
    assert np.mean(found[1] - found[0]) == pytest.approx(price, rel=0.2)
    # One partition alone has nothing to weigh.
    assert theory.price_of_estimated_noise(rows[:1], np.eye(3), noise[:1]) == pytest.approx(0, abs=1e-12)


def test_bounds_refuse_what_they_are_not_of() -> None:
    """Dependent rows gave a bound that was too low, noise that is none no number, and shapes faults of NumPy."""
    rng = np.random.default_rng(3)
    X, S = [rng.standard_normal((20, 3)) for _ in range(2)], [rng.standard_normal((5, 20)) for _ in range(2)]
    bound, price = theory.least_sketched_excess_loss, theory.price_of_estimated_noise
    with pytest.raises(InputError, match="sketching matrix 0 has dependent rows"):
        bound(X, [np.zeros((5, 20)), S[1]])
    with pytest.raises(InputError, match=r"sketching matrix 1 has shape \(5, 19\) for 20 rows"):
        bound(X, [S[0], S[1][:, :19]])
    with pytest.raises(InputError, match="have rank 2 for 3 columns"):
        bound(X[:1], [S[0][:2]])
    with pytest.raises(InputError, match="matrices of finite numbers with the same columns"):
        bound([X[0], X[1][:, :2]], S)
    with pytest.raises(InputError, match="matrices of finite numbers"):
        bound([X[0] * np.nan, X[1]], S)
    for given in (np.nan, [1.0, 2.0, 3.0]):
        with pytest.raises(InputError, match="one for all or one for each of 2 partitions"):
            bound(X, S, given)
    with pytest.raises(InputError, match="2 sketches came with 1 Gram matrices"):
        theory.least_orthogonal_excess_loss(X, [np.eye(3)])
    for noise in ([0.0, 1.0], [1.0, 1.0, 1.0]):
        with pytest.raises(InputError, match="noise_variances must be positive"):
            price(X, np.eye(3), noise)
    with pytest.raises(InputError, match="no degrees of freedom"):
        price(X, np.eye(3), [1.0, 1.0], [0.0, 1.0])
    with pytest.raises(InputError, match="there are no sketches"):
        price([], np.eye(3), [])
