"""Refinement: the accuracy of a direct method at every condition number, for dense and sparse rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LinearRegression

from partsketch import InputError, LocalEngine, PartsketchWarning, SketchedRegression
from partsketch.fitting.refinement import iteration, routes

FloatArray = NDArray[np.float64]


def rotated(rows: int, columns: int, digits: float, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Rows of condition number 10^digits that no scaling of columns cures; half of the target is noise."""
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.normal(size=(columns, columns)))[0] for _ in range(2))
    X = rng.normal(size=(rows, columns)) @ ((left * np.logspace(0, -digits, columns)) @ right)
    y = X @ rng.normal(size=columns)
    return X, y + rng.normal(size=rows) * y.std()


def reference(X: FloatArray, y: FloatArray) -> FloatArray:
    """Least squares with an intercept, refined with residuals in extended precision."""
    A = np.column_stack([np.ones(len(y)), X])
    Q, R = np.linalg.qr(A)
    wide, x = A.astype(np.longdouble), np.linalg.solve(R, Q.T @ y).astype(np.longdouble)
    r = y - wide @ x
    for _ in range(8):
        f, g = (y - r - wide @ x).astype(float), -(wide.T @ r).astype(float)
        step = Q.T @ f - np.linalg.solve(R.T, g)
        x, r = x + np.linalg.solve(R, step), r + (f - Q @ step)
    return x.astype(float)


def error(coefficients: NDArray[Any], truth: FloatArray) -> float:
    return float(np.linalg.norm(coefficients - truth) / np.linalg.norm(truth))


def coefficients_of(model: SketchedRegression) -> FloatArray:
    return np.concatenate([[model.intercept_], model.coef_])


@pytest.mark.filterwarnings("ignore:Coefficients nearly cancel")
@pytest.mark.parametrize("digits", [0, 4, 8, 10, 12])
def test_as_accurate_as_lapack_up_to_condition_1e12(digits: float) -> None:
    X, y = rotated(6000, 40, digits)
    truth = reference(X, y)
    model = SketchedRegression("exact", route="iterate", random_state=0).fit(X, y)
    assert model.model_.record.reasons["route"].startswith("refinement:")
    lapack = np.linalg.lstsq(np.column_stack([np.ones(len(y)), X]), y, rcond=1e-15)[0]
    # The goal set for this route; the second term is the rounding of one operation, for well-conditioned rows.
    assert error(coefficients_of(model), truth) <= 10 * error(lapack, truth) + 1e-15


@pytest.mark.filterwarnings("ignore:Coefficients nearly cancel")
@pytest.mark.parametrize("digits", [4, 8, 10, 12])
def test_backward_stable(digits: float) -> None:
    X, y = rotated(6000, 40, digits)
    A = np.column_stack([np.ones(len(y)), X])
    left, values, right = np.linalg.svd(A, full_matrices=False)

    def backward_error(x: FloatArray) -> float:
        """Karlson and Waldén's estimate of the least relative change of A for which x is the solution."""
        r = (y - A.astype(np.longdouble) @ x).astype(float)
        share = values / np.hypot(values, np.linalg.norm(r) / np.linalg.norm(x))
        return float(np.linalg.norm(share * (left.T @ r)) / np.linalg.norm(x) / np.linalg.norm(A))

    Q, R = np.linalg.qr(A)
    householder = backward_error(np.linalg.solve(R, Q.T @ y))
    for route in ("iterate", "factor"):
        x = coefficients_of(SketchedRegression("exact", route=route, random_state=0).fit(X, y))
        # Householder QR is backward stable; ten times its error, and no more than a few hundred roundings.
        assert backward_error(x) <= min(10 * householder + 1e-16, 1e-13), route
    # The estimate sees an error of 1e-9 in the direction that matters most.
    assert backward_error(x + 1e-9 * np.linalg.norm(x) * right[0]) > 1e-11


@pytest.mark.filterwarnings("ignore:Coefficients nearly cancel")
def test_error_falls_only_with_true_residuals(monkeypatch: pytest.MonkeyPatch) -> None:
    """A single run of conjugate gradients is not enough at condition 1e10: the second one is not decoration."""
    X, y = rotated(6000, 40, 10)
    truth = reference(X, y)
    good = error(coefficients_of(SketchedRegression("exact", route="iterate", random_state=0).fit(X, y)), truth)
    monkeypatch.setattr(iteration, "_EPSILON", 1e-10)
    coarse = error(coefficients_of(SketchedRegression("exact", route="iterate", random_state=0).fit(X, y)), truth)
    assert coarse > 10 * good


def test_numbers_beside_the_coefficients_agree_with_the_factor() -> None:
    X, y = rotated(6000, 40, 8)
    weights = np.random.default_rng(3).uniform(0.5, 2.0, len(y))
    factor = SketchedRegression("exact", route="factor").fit(X, y + 1e3, weights).model_
    refined = SketchedRegression("exact", route="iterate", random_state=0).fit(X, y + 1e3, weights).model_
    assert refined.certificate.kind == "exact"
    assert refined.certificate.minimal_loss == pytest.approx(factor.certificate.minimal_loss, rel=1e-10)
    assert refined.record.row_count == factor.record.row_count
    assert refined.record.weight_sum == pytest.approx(factor.record.weight_sum, rel=1e-14)
    assert refined.record.rank == factor.record.rank == 41
    assert factor.record.condition is not None
    assert refined.record.condition is not None
    # Power steps find the smallest singular value from above.
    assert 0.5 * factor.record.condition < refined.record.condition < 1.2 * factor.record.condition
    ours, theirs = refined.inferences[0], factor.inferences[0]
    assert ours.r_squared == pytest.approx(theirs.r_squared, rel=1e-9)
    assert ours.is_estimated
    assert not theirs.is_estimated
    # Standard errors come from 328 sketch rows: √(1/(2·287)) = 4% each; forty of them, four such errors at most.
    assert ours.standard_errors is not None
    assert theirs.standard_errors is not None
    ratio = ours.standard_errors / theirs.standard_errors
    assert np.abs(ratio - 1).max() < 4 * 0.042
    assert np.abs(ratio.mean() - 1) < 0.05


def test_bits_depend_on_nothing_but_rows() -> None:
    X, y = rotated(20_000, 30, 8)
    fits = [
        SketchedRegression("exact", route="iterate", random_state=threads, engine=LocalEngine(threads, block_rows)).fit(
            X, y
        )
        for threads, block_rows in ((1, 32768), (3, 1000), (2, 777))
    ]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.coef_, fits[0].coef_)
    matrix = sparse.csr_array(np.where(np.random.default_rng(0).random(X.shape) < 0.2, X, 0.0))
    fits = [
        SketchedRegression("exact", route="iterate", random_state=threads, engine=LocalEngine(threads, block_rows)).fit(
            matrix, y
        )
        for threads, block_rows in ((1, 32768), (2, 777))
    ]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)


@pytest.mark.parametrize(
    "convert", [np.asfortranarray, lambda X: X.astype(np.float32).astype(np.float64), sparse.csr_array]
)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_any_layout_several_targets_and_weights(convert: Any, fit_intercept: bool) -> None:
    X, y = rotated(5000, 12, 1)
    X = convert(X)
    Y = np.column_stack([y, 2 * y - 1, np.random.default_rng(2).normal(size=len(y))])
    weights = np.random.default_rng(3).integers(0, 3, len(y)).astype(float)
    options: dict[str, Any] = {"fit_intercept": fit_intercept, "random_state": 0}
    refined = SketchedRegression("exact", route="iterate", **options).fit(X, Y, weights)
    factor = SketchedRegression("exact", route="factor", **options).fit(X, Y, weights)
    np.testing.assert_allclose(refined.coef_, factor.coef_, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(refined.intercept_, factor.intercept_, rtol=1e-11, atol=1e-13)


def ill_conditioned_sparse(digits: float, rows: int = 20_000, columns: int = 60) -> tuple[Any, FloatArray]:
    """Sparse rows whose columns come in pairs that are all but equal."""
    rng = np.random.default_rng(5)
    half = sparse.random_array((rows, columns // 2), density=0.05, rng=rng, format="csr")
    other = half + 10.0**-digits * sparse.random_array((rows, columns // 2), density=0.05, rng=rng, format="csr")
    X = sparse.csr_array(sparse.hstack([half, other]))
    return X, X @ rng.normal(size=columns) + 0.1 * rng.normal(size=rows)


@pytest.mark.filterwarnings("ignore:Coefficients nearly cancel")
@pytest.mark.parametrize("digits", [8, 10])
def test_sparse_rows_on_which_lsqr_stalls(digits: float) -> None:
    X, y = ill_conditioned_sparse(digits)
    truth = reference(X.toarray(), y)
    model = SketchedRegression("exact", route="iterate", random_state=0).fit(X, y)
    assert "sparse sign sketch" in model.model_.record.reasons["route"]
    lapack = np.linalg.lstsq(np.column_stack([np.ones(len(y)), X.toarray()]), y, rcond=1e-15)[0]
    assert error(coefficients_of(model), truth) <= 10 * error(lapack, truth)
    plain = LinearRegression(tol=1e-12).fit(X, y)
    assert error(np.concatenate([[plain.intercept_], plain.coef_]), truth) > 0.01


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_coefficients_that_nearly_cancel_are_found_and_told(convert: Any) -> None:
    """Two columns differ by 1e-9, and their difference explains half: steps on column norms alone do not see it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4))
    difference = rng.normal(size=3000)
    X[:, 1] = X[:, 0] + 1e-9 * difference
    y = X[:, 2] + difference + rng.normal(size=3000)
    with pytest.warns(PartsketchWarning, match="Coefficients nearly cancel, most of all those of 'x0' and 'x1'"):
        model = SketchedRegression("exact", route="iterate", random_state=0).fit(convert(X), y).model_
    assert "sparse sign sketch" in model.record.reasons["route"]
    ones = np.column_stack([np.ones(3000), difference, X[:, [0, 2, 3]]])
    least = float(np.linalg.lstsq(ones, y, rcond=None)[1][0])
    # The difference is rounded to 1e-7 of itself where it is added to a column; coefficients to 1e-16 of 1e9.
    assert model.certificate.minimal_loss == pytest.approx(least, rel=1e-6)


def test_sparse_rows_that_need_no_sketch_and_say_how_to_get_intervals() -> None:
    rng = np.random.default_rng(0)
    X: Any = sparse.random_array((20_000, 100), density=0.03, rng=rng, format="csr")
    y = X @ rng.normal(size=100) + rng.normal(size=20_000) + 1e5
    model = SketchedRegression("exact", route="iterate").fit(X, y)
    factor = SketchedRegression("exact", route="factor").fit(X, y)
    assert "column norms" in model.model_.record.reasons["route"]
    np.testing.assert_allclose(model.coef_, factor.coef_, rtol=1e-9, atol=1e-9)
    assert model.model_.inferences[0].r_squared == pytest.approx(factor.model_.inferences[0].r_squared, rel=1e-8)
    with pytest.raises(InputError, match="route='factor'"):
        model.conf_int()
    assert "exact" in str(model.summary())
    with pytest.raises(InputError, match="cannot go on: fit with route='factor'"):
        model.set_params(route="auto").partial_fit(X, y)


@pytest.mark.filterwarnings("ignore::partsketch.PartsketchWarning")
def test_dependent_columns_are_found_and_left_to_the_factor() -> None:
    """One-hot groups beside an intercept: the targets converge, the probe tells that the columns are dependent."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 20, 10_000)
    X = sparse.csr_array((np.ones(10_000), (np.arange(10_000), groups)), shape=(10_000, 20))
    y = rng.normal(size=20)[groups] + rng.normal(size=10_000)
    refined = SketchedRegression("exact", route="iterate", random_state=0).fit(X, y)
    factor = SketchedRegression("exact", route="factor").fit(X, y)
    assert "as good as dependent" in refined.model_.record.reasons["route"]
    np.testing.assert_array_equal(refined.coef_, factor.coef_)
    assert refined.rank_ == 20


def test_empty_columns_of_sparse_rows_are_named() -> None:
    rng = np.random.default_rng(0)
    X: Any = sparse.random_array((5000, 30), density=0.1, rng=rng, format="lil")
    X[:, [4]] = 0.0
    X = sparse.csr_array(X)
    X.eliminate_zeros()
    y = X @ rng.normal(size=30) + rng.normal(size=5000)
    with pytest.warns(match="'x4' is zero in every row"):
        refined = SketchedRegression("exact", route="iterate", random_state=0).fit(X, y)
    assert refined.rank_ == 30
    assert refined.coef_[4] == 0.0
    assert "column norms" in refined.model_.record.reasons["route"]


def test_the_choice_follows_cost_and_condition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "LEAST_DENSE_COLUMNS", 20)
    monkeypatch.setattr(routes, "LEAST_SPARSE_WORK", 1e6)
    monkeypatch.setattr(routes, "LEAST_WORK_PER_ENTRY", 1000)

    def route(X: Any, y: FloatArray, **options: Any) -> str:
        fit = SketchedRegression("exact", random_state=0, **options).fit(X, y)
        return "refined" if fit.model_.record.reasons["route"].startswith("refinement") else "factor"

    ill, y = rotated(5000, 40, 8)
    well, _ = rotated(5000, 40, 0)
    assert route(ill, y) == "refined"
    assert route(ill, y, route="factor") == "factor"
    assert route(ill, y, alpha=1.0) == "factor"
    assert route(well, y) == "factor"
    assert route(ill[:, :10], y) == "factor"
    assert route(ill[:1500], y[:1500]) == "factor"
    thin = sparse.random_array((5000, 60), density=0.01, rng=np.random.default_rng(0), format="csr")
    thick = sparse.random_array((5000, 60), density=0.5, rng=np.random.default_rng(0), format="csr")
    assert route(thin, y) == "refined"
    assert route(thick, y) == "factor"


def test_what_cannot_be_refined_is_refused() -> None:
    X, y = rotated(500, 5, 0)
    with pytest.raises(InputError, match="goes with method='exact' and alpha=0"):
        SketchedRegression("stack", route="iterate").fit(X, y)
    with pytest.raises(InputError, match="choose 'auto', 'factor' or 'iterate'"):
        SketchedRegression("exact", route="fast").fit(X, y)
    for bad, message in ((np.nan, "row 321"), (np.inf, "row 321")):
        for convert in (np.asarray, sparse.csr_array):
            spoilt = X.copy()
            spoilt[321, 2] = bad
            with pytest.raises(InputError, match=message):
                SketchedRegression("exact", route="iterate", random_state=0).fit(convert(spoilt), y)


def test_a_stream_is_read_once() -> None:
    import pyarrow as pa

    import partsketch as ps

    batch = pa.record_batch({"x": np.arange(100.0), "y": np.arange(100.0) ** 2})
    reader = pa.RecordBatchReader.from_batches(batch.schema, [batch])
    with pytest.raises(InputError, match="several times"):
        ps.fit(reader, target="y", method="exact", route="iterate")
