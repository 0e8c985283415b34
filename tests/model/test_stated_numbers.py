"""Numbers that sketched and penalised fits state, each against one written out by hand or by a peer, two-sided.

Those of exact fits and of averages of exact fits are in `test_weights_everywhere.py`. The sketches themselves are taken
as they are; that they are the right ones is in `sketches/test_known_answers.py`.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import Ridge

from partsketch import PartsketchWarning, SketchedRegression
from tests.by_hand import FloatArray, judged, satterthwaite
from tests.fitting.fits import quiet

ROWS, K, M = 600, 4, 20


def problem(features: int = 3) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Partitions of four scales, so that what belongs to one cannot pass for what belongs to another."""
    draw = np.random.default_rng(77)
    X = draw.normal(size=(ROWS, features)) * np.repeat([0.5, 1.0, 2.0, 3.0], ROWS // K)[:, None] + 1.0
    y = X @ np.arange(1.0, features + 1) + 4.0 + draw.normal(size=ROWS)
    return X, y, draw.uniform(0.2, 2.0, ROWS)


class Sketched:
    """One sketch [F t], and what its own least squares fit gives."""

    def __init__(self, matrix: FloatArray) -> None:
        self.features, target = matrix[:, :-1], matrix[:, -1]
        self.size, self.columns = self.features.shape
        self.gram = self.features.T @ self.features
        self.inverse = np.linalg.inv(self.gram)
        self.solution = self.inverse @ self.features.T @ target
        self.loss = float(np.sum((target - self.features @ self.solution) ** 2))
        self.target = target


def sketches_of(model: SketchedRegression) -> list[Sketched]:
    return [Sketched(np.asarray(summary.matrix)) for summary in model.summaries_]


def total_of(sketches: list[Sketched], intercept: bool) -> float:
    """Sum of squares of the stacked target around its fit on the stacked ones."""
    target = np.concatenate([one.target for one in sketches])
    if not intercept:
        return float(target @ target)
    ones = np.concatenate([one.features[:, 0] for one in sketches])
    return float(target @ target - (ones @ target) ** 2 / (ones @ ones))


@pytest.mark.parametrize("intercept", [True, False])
def test_numbers_of_averaged_sketches_of_partitions(intercept: bool) -> None:
    X, y, weights = problem()
    model = SketchedRegression(
        "partition", n_partitions=K, sketch_size=M, random_state=5, fit_intercept=intercept
    ).fit(X, y, weights)  # fmt: skip
    parts = sketches_of(model)
    d, p = parts[0].columns, ROWS / K
    assert d == 3 + intercept
    losses = np.array([one.loss * M / (M - d) for one in parts])
    inverses = [one.inverse * (M - d - 1) / M for one in parts]
    # A sketch knows its own trace, d; those of the others are independent of its inverse.
    traces = np.array([
        d + sum(np.trace(other.gram @ inverse) for other in parts if other is not one)
        for one, inverse in zip(parts, inverses, strict=True)
    ])  # fmt: skip
    noise = losses.sum() / (ROWS - K * d)
    shares = np.full(K, 1 / K)
    fits = np.array([one.solution for one in parts])
    found: Any = model.model_
    np.testing.assert_allclose(found.column_coefficients[:, 0], shares @ fits, rtol=1e-9)
    certificate, inference = found.certificate, found.inferences[0]
    np.testing.assert_allclose(certificate.divergence, shares**2 @ traces, rtol=1e-9)
    np.testing.assert_allclose(certificate.noise_variance, noise, rtol=1e-9)
    # Each partition has a noise of its own: what sketching adds, and what its rows have.
    terms = [
        share**2 * loss * (1 / (M - d - 1) + 1 / (p - d)) * inverse
        for share, loss, inverse in zip(shares, losses, inverses, strict=True)
    ]
    np.testing.assert_allclose(inference.standard_errors, np.sqrt(np.diagonal(sum(terms))), rtol=1e-9)
    assert inference.degrees_of_freedom == pytest.approx(satterthwaite(terms, [M - d + 2] * K))
    deviations = (fits - shares @ fits) * shares[:, None]
    spread = np.sqrt(np.sum(deviations**2, axis=0) / (1 - shares @ shares))
    np.testing.assert_allclose(inference.spread_standard_errors, spread, rtol=1e-9)
    assert inference.spread_degrees_of_freedom == K - 1
    # Those of this fit: its loss over the rows' degrees of freedom, and over a total that K·M sketch rows estimate,
    # one of which goes to the mean.
    loss = certificate.minimal_loss + certificate.excess_loss
    total = total_of(parts, intercept) * K * M / (K * M - intercept)
    np.testing.assert_allclose(inference.noise_variance, loss / (ROWS - d), rtol=1e-9)
    np.testing.assert_allclose(inference.r_squared, 1 - loss / total, rtol=1e-9)
    assert inference.is_estimated
    assert_table(found, 0.8)
    # Kept to six digits; the trace of a partition with itself is known.
    pairs = [[np.trace(one.gram @ inverse) for inverse in inverses] for one in parts]
    np.fill_diagonal(matrix := np.array(pairs), d)
    np.testing.assert_allclose(found.outlook.divergences, matrix, rtol=1e-5)


def test_weights_of_an_average_of_exact_fits() -> None:
    """In inverse proportion to tr(G G_i⁻¹); squared in the covariance and in the divergence."""
    X, y, weights = problem()
    rows = np.split(np.arange(ROWS), K)
    judges = [judged(X[part], y[part], weights[part]) for part in rows]
    total = sum(one.gram for one in judges)
    traces = np.array([np.trace(total @ one.inverse) for one in judges])
    shares = (1 / traces) / np.sum(1 / traces)
    assert shares.max() > 2 * shares.min()
    fit = SketchedRegression("average", n_partitions=K, averaging="inverse_variance").fit(X, y, weights)
    model: Any = fit.model_
    fits = np.array([one.coefficients for one in judges])
    np.testing.assert_allclose(model.column_coefficients[:, 0], shares @ fits, rtol=1e-9)
    np.testing.assert_allclose(model.certificate.divergence, shares**2 @ traces, rtol=1e-9)
    terms = [share**2 * one.noise * one.inverse for share, one in zip(shares, judges, strict=True)]
    inference: Any = model.inferences[0]
    np.testing.assert_allclose(inference.standard_errors, np.sqrt(np.diagonal(sum(terms))), rtol=1e-9)
    assert inference.degrees_of_freedom == pytest.approx(satterthwaite(terms, [one.freedom for one in judges]))
    deviations = (fits - shares @ fits) * shares[:, None]
    spread = np.sqrt(np.sum(deviations**2, axis=0) / (1 - shares @ shares))
    np.testing.assert_allclose(model.inferences[0].spread_standard_errors, spread, rtol=1e-8)
    gap = shares @ fits - judged(X, y, weights).coefficients
    np.testing.assert_allclose(model.certificate.excess_loss, gap @ total @ gap, rtol=1e-7)


def assert_table(model: Any, level: float) -> None:
    """t values, p values and ends follow from coefficients, standard errors and degrees of freedom."""
    inference, centre = model.inferences[0], model.column_coefficients[:, 0]
    for kind in ("model", "spread") if inference.spread_standard_errors is not None else ("model",):
        errors = inference.standard_errors if kind == "model" else inference.spread_standard_errors
        freedom = inference.degrees_of_freedom if kind == "model" else inference.spread_degrees_of_freedom
        got = model.inference_table(0, level, kind)
        reach = stats.t.ppf(0.5 + level / 2, freedom) * errors
        p_values = 2 * stats.t.sf(np.abs(centre / errors), freedom)
        for value, expected in zip(got, (errors, centre / errors, p_values, centre - reach, centre + reach),
                                   strict=True):  # fmt: skip
            np.testing.assert_allclose(value, expected, rtol=1e-8)
        np.testing.assert_allclose(model.conf_int(level, kind), np.column_stack([centre - reach, centre + reach]))


@pytest.mark.parametrize("intercept", [True, False])
def test_numbers_of_averaged_sketches_of_the_whole(intercept: bool) -> None:
    X, y, weights = problem()
    model = SketchedRegression(
        "whole", n_partitions=K, sketch_size=M, random_state=6, fit_intercept=intercept
    ).fit(X, y, weights)  # fmt: skip
    parts = sketches_of(model)
    d = parts[0].columns
    loss = float(np.mean([one.loss for one in parts])) * M / (M - d)
    excess = loss * d / (M - d - 1) / K
    found: Any = model.model_
    np.testing.assert_allclose(found.column_coefficients[:, 0], np.mean([one.solution for one in parts], axis=0))
    certificate, inference = found.certificate, found.inferences[0]
    np.testing.assert_allclose(certificate.minimal_loss, loss, rtol=1e-9)
    np.testing.assert_allclose(certificate.excess_loss, excess, rtol=1e-9)
    np.testing.assert_allclose(certificate.relative_excess_loss, d / (M - d - 1) / K, rtol=1e-9)
    np.testing.assert_allclose(certificate.noise_variance, loss / (ROWS - d), rtol=1e-9)
    assert certificate.kind == "estimated"
    np.testing.assert_allclose(inference.noise_variance, loss / (ROWS - d), rtol=1e-9)
    assert inference.degrees_of_freedom == K * (M - d)
    pooled = np.linalg.inv(sum(one.gram for one in parts)) * (K * M - d - 1) / M
    sketching = sum(one.inverse for one in parts) * (ROWS - d) / (K**2 * M)
    errors = np.sqrt(loss / (ROWS - d) * np.diagonal(pooled + sketching))
    np.testing.assert_allclose(inference.standard_errors, errors, rtol=1e-9)
    assert inference.spread_standard_errors is None
    # K looks at the same rows count them once.
    total = total_of(parts, intercept) * K * M / (K * M - intercept) / K
    np.testing.assert_allclose(inference.r_squared, 1 - loss / total, rtol=1e-9)
    assert_table(found, 0.99)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
def test_exact_ridge(weighted: bool, intercept: bool) -> None:
    X, y, weights = problem()
    given = weights if weighted else None
    model = SketchedRegression("exact", alpha=40.0, fit_intercept=intercept).fit(X, y, given)
    peer = Ridge(alpha=40.0, fit_intercept=intercept).fit(X, y, given)
    expected = judged(X, y, given, intercept, 40.0)
    np.testing.assert_allclose(model.model_.column_coefficients[:, 0], expected.coefficients, rtol=1e-9)
    np.testing.assert_allclose(model.coef_, peer.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, rtol=1e-9)
    assert model.model_.record.weight_sum == pytest.approx(expected.weight_sum)
    assert model.certificate_.kind == "unavailable"


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("grown", [False, True])
def test_ridge_of_partitions_shares_the_penalty_by_weight(weighted: bool, intercept: bool, grown: bool) -> None:
    """Uneven weights of partitions; with `grown`, the same partitions made of batches that add to the last one."""
    X, y, weights = problem()
    weights = weights * np.repeat([1.0, 5.0, 0.5, 2.0], ROWS // K)
    given = weights if weighted else None
    model = SketchedRegression("average", n_partitions=K, alpha=40.0, fit_intercept=intercept)
    if grown:
        for start, stop, new in pieces():
            model.partial_fit(X[start:stop], y[start:stop], None if given is None else given[start:stop], new)
    else:
        model.fit(X, y, given)
    parts = np.split(np.arange(ROWS), K)
    sums = np.array([len(rows) if given is None else weights[rows].sum() for rows in parts])
    expected = np.mean([
        judged(X[rows], y[rows], None if given is None else given[rows], intercept, 40.0 * share).coefficients
        for rows, share in zip(parts, sums / sums.sum(), strict=True)
    ], axis=0)  # fmt: skip
    np.testing.assert_allclose(model.model_.column_coefficients[:, 0], expected, rtol=1e-8)
    assert [summary.weight_sum for summary in model.summaries_] == pytest.approx(sums)
    ranges = [(summary.parts[0].start, summary.parts[0].stop) for summary in model.summaries_]
    assert ranges == [(150 * number, 150 * (number + 1)) for number in range(K)]


def pieces() -> list[tuple[int, int, bool]]:
    """Batches: the partitions of 150 rows, two of them in several goes."""
    return [(0, 150, True), (150, 250, True), (250, 300, False), (300, 450, True), (450, 460, True), (460, 530, False),
            (530, 600, False)]  # fmt: skip


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
def test_exact_ridge_of_grown_batches(weighted: bool, intercept: bool) -> None:
    X, y, weights = problem()
    given = weights if weighted else None
    model = SketchedRegression("exact", alpha=40.0, fit_intercept=intercept)
    for start, stop, _ in pieces():
        model.partial_fit(X[start:stop], y[start:stop], None if given is None else given[start:stop])
    expected = judged(X, y, given, intercept, 40.0)
    np.testing.assert_allclose(model.model_.column_coefficients[:, 0], expected.coefficients, rtol=1e-8)
    record = model.model_.record
    assert record.row_count == ROWS
    assert record.weight_sum == pytest.approx(expected.weight_sum)
    (part,) = model.summaries_[0].parts
    assert (part.start, part.stop) == (0, ROWS)
    plain = SketchedRegression("exact", fit_intercept=intercept)
    for start, stop, _ in pieces():
        plain.partial_fit(X[start:stop], y[start:stop], None if given is None else given[start:stop])
    expected = judged(X, y, given, intercept)
    inference: Any = plain.model_.inferences[0]
    np.testing.assert_allclose(inference.standard_errors, expected.standard_errors, rtol=1e-8)
    assert plain.model_.certificate.minimal_loss == pytest.approx(expected.loss, rel=1e-8)


def reduced_penalty(features: FloatArray, penalty: float, intercept: bool) -> float:
    """λ' = λ (1 − d(λ')/m) by bisection, d(λ') the trace of the hat matrix of the sketched ridge fit."""
    size, columns = features.shape
    extra = np.diag([0.0] * intercept + [1.0] * (columns - intercept))

    def excess(candidate: float) -> float:
        hat = features @ np.linalg.solve(features.T @ features + candidate * extra, features.T)
        return float(candidate - penalty * (1 - np.trace(hat) / size))

    low, high = penalty * 1e-9, penalty
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    return high


def ridge_of(matrix: FloatArray, penalty: float, intercept: bool) -> FloatArray:
    features, target = matrix[:, :-1], matrix[:, -1]
    extra = np.diag([0.0] * intercept + [1.0] * (features.shape[1] - intercept))
    return np.asarray(np.linalg.solve(features.T @ features + penalty * extra, features.T @ target))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    ("method", "grown"),
    [("partition", False), ("partition", True), ("stack", False), ("stack", True), ("whole", False)],
)
def test_sketched_ridge(method: str, intercept: bool, grown: bool) -> None:
    """Each sketch has its share of the penalty, reduced for its own effective dimension, the intercept's included."""
    X, y, weights = problem(8)
    weights = weights * np.repeat([1.0, 5.0, 0.5, 2.0], ROWS // K)
    penalty = 300.0
    model = SketchedRegression(
        method, n_partitions=K, alpha=penalty, sketch_size=12, random_state=9, fit_intercept=intercept
    )
    if grown:
        for start, stop, new in pieces():
            model.partial_fit(X[start:stop], y[start:stop], weights[start:stop], new)
    else:
        model.fit(X, y, weights)
    matrices = [np.asarray(summary.matrix) for summary in model.summaries_]
    sums = np.array([weights[rows].sum() for rows in np.split(np.arange(ROWS), K)])
    shares = sums / sums.sum() if method == "partition" else np.ones(len(matrices))
    if method == "stack":
        matrices = [np.vstack(matrices)]
        shares = np.ones(1)
    fits = [
        ridge_of(matrix, reduced_penalty(matrix[:, :-1], penalty * share, intercept), intercept)
        for matrix, share in zip(matrices, shares, strict=True)
    ]
    np.testing.assert_allclose(model.model_.column_coefficients[:, 0], np.mean(fits, axis=0), rtol=1e-6)
    # And that the reduction matters here: without the intercept's dimension it would be another one.
    other = [reduced_penalty(matrix[:, intercept:-1], penalty, False) for matrix in matrices]
    if intercept:
        assert abs(other[0] / reduced_penalty(matrices[0][:, :-1], penalty, True) - 1) > 1e-3


def test_condition_and_rank_are_those_of_columns_of_norm_one() -> None:
    """One fit of all rows, and the worst of the partitions; without an intercept, whose part is another matter."""
    X, y, weights = problem()
    A = X * np.sqrt(weights)[:, None]
    for method, parts in (("exact", [A]), ("average", np.split(A, K))):
        model = SketchedRegression(method, n_partitions=K, fit_intercept=False).fit(X, y, weights).model_
        conditions = [np.linalg.cond(part / np.linalg.norm(part, axis=0)) for part in parts]
        assert model.record.condition == pytest.approx(max(conditions), rel=1e-9)
        assert [part.condition for part in model.record.partitions] == pytest.approx(conditions, rel=1e-9)
        assert model.record.rank == 3
        assert [part.rank for part in model.record.partitions] == [3] * len(parts)


def test_a_constant_target_is_noticed_and_a_target_that_only_begins_constant_is_not() -> None:
    X, y, _ = problem()
    late, early = np.full(ROWS, 2.0), np.full(ROWS, 2.0)
    late[-1], early[0] = 2.5, 1.5
    for target, constant in ((np.full(ROWS, 2.0), True), (late, False), (early, False), (y, False)):
        record = quiet("exact")(X, target).model_.record
        assert any("constant" in sentence for sentence in record.warnings) == constant
        grown = SketchedRegression("exact")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PartsketchWarning)
            for start in (0, 300):
                grown.partial_fit(X[start : start + 300], target[start : start + 300])
        assert any("constant" in sentence for sentence in grown.model_.record.warnings) == constant
