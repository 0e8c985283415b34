"""The orthogonal sketch: the law of rows of a random rotation, exact at m = p, one exact pass."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partsketch as ps
from partsketch import InputError, theory
from partsketch.report.sketch_table import information_bound
from partsketch.sketches.orthogonal import OrthogonalSketch, orthogonal_rows
from tests.sketches.drawing import FloatArray

ROWS, WIDTH = 40, 4


def data(rows: int = ROWS, width: int = WIDTH, seed: int = 0) -> FloatArray:
    draw = np.random.default_rng(seed)
    return np.asarray(draw.normal(size=(rows, width)) @ draw.normal(size=(width, width)))


def explicit(A: FloatArray, size: int, draws: int, rng: np.random.Generator) -> FloatArray:
    """`√(p/m) H A` with every H drawn: the Q of a matrix of normals, signs of R's diagonal given to it."""
    sketches = []
    for _ in range(draws):
        turned, triangle = np.linalg.qr(rng.standard_normal((len(A), size)))
        sketches.append((turned * np.sign(np.diagonal(triangle))).T @ A)
    return np.asarray(np.stack(sketches) * math.sqrt(len(A) / size))


@pytest.mark.parametrize("size", [3, 12, 38])
def test_moments_are_those_of_explicit_rotations(size: int) -> None:
    """Entries, Gram matrices and their squares, 3,000 draws of each: within five standard errors of the difference.

    Of 38 rows of 40 the Gram matrix is nearly that of all: a Gaussian sketch has 20 times the variance.
    """
    A, rng, draws = data(), np.random.default_rng(1), 3000
    factor = np.asarray(np.linalg.qr(A, mode="r"))
    ours = np.stack([orthogonal_rows(factor, size, ROWS, seed) for seed in range(draws)])
    theirs = explicit(A, size, draws, rng)
    statistics: tuple[Callable[[FloatArray], FloatArray], ...] = (
        lambda Z: Z,
        lambda Z: Z**2,
        lambda Z: Z**4,
        lambda Z: np.swapaxes(Z, 1, 2) @ Z,
        lambda Z: (np.swapaxes(Z, 1, 2) @ Z) ** 2,
        lambda Z: Z[:, :1] * Z[:, 1:],
    )
    for statistic in statistics:
        mine, others = statistic(ours), statistic(theirs)
        error = np.sqrt((mine.var(axis=0) + others.var(axis=0)) / draws)
        assert np.all(np.abs(mine.mean(axis=0) - others.mean(axis=0)) < 5 * error + 1e-12)
    gram = A.T @ A
    np.testing.assert_allclose((np.swapaxes(ours, 1, 2) @ ours).mean(axis=0), gram, atol=0.12 * np.abs(gram).max())


def test_rows_of_h_are_orthonormal() -> None:
    """With as many columns as rows nothing of H is left open."""
    H = orthogonal_rows(np.eye(12), 5, 12, seed=3) / math.sqrt(12 / 5)
    np.testing.assert_allclose(H @ H.T, np.eye(5), atol=1e-12)


@pytest.mark.parametrize("size", [ROWS, ROWS + 9])
def test_all_rows_lose_nothing(size: int) -> None:
    A = data()
    Z = orthogonal_rows(np.asarray(np.linalg.qr(A, mode="r")), size, ROWS, seed=4)
    assert Z.shape == (size, WIDTH)
    np.testing.assert_allclose(Z.T @ Z, A.T @ A, rtol=1e-12)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_fewer_rows_than_columns(size: int) -> None:
    """Three rows of four columns: the factor has more rows than the data; the sketch lies in their span."""
    A = data(3)
    factor = np.vstack([np.asarray(np.linalg.qr(A, mode="r")), np.zeros((1, WIDTH))])
    Z = orthogonal_rows(factor, size, 3, seed=5)
    assert Z.shape == (size, WIDTH)
    outside = Z - Z @ np.linalg.pinv(A) @ A
    assert np.abs(outside).max() < 1e-12 * np.abs(Z).max()
    if size >= 3:
        np.testing.assert_allclose(Z.T @ Z, A.T @ A, atol=1e-12 * np.abs(A.T @ A).max())


@pytest.mark.parametrize(("n", "m"), [(120, 24), (120, 100)])
def test_expected_loss_is_exact(n: int, m: int) -> None:
    """Any data: heavy tails, a curve that the fit misses. 4,000 draws: known to 2% at m = 24, to 1% at m = 100."""
    draw = np.random.default_rng(6)
    X = draw.standard_t(4, size=(n, 6))
    y = X.sum(axis=1) + X[:, 0] ** 2 + draw.exponential(size=n)
    exact = theory.PartitionMoments.from_rows(X, y)
    losses = []
    for seed in range(4000):
        Z = orthogonal_rows(exact.factor, m, n, seed)
        a = np.linalg.lstsq(Z[:, :-1], Z[:, -1])[0]
        losses.append(np.sum((exact.root @ (a - exact.solution)) ** 2))
    predicted = theory.orthogonal_excess_loss(exact.loss, 6, n, m, 1)
    assert predicted == pytest.approx(exact.loss * 6 * (n - m) / ((n - 6) * (m - 7)))
    assert np.mean(losses) == pytest.approx(predicted, rel=0.08 if m == 24 else 0.04)
    assert predicted < theory.whole_excess_loss(exact.loss, 6, m, 1)


def frame(rows: int = 600) -> dict[str, FloatArray]:
    draw = np.random.default_rng(7)
    X = draw.normal(size=(rows, 3))
    return {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": X @ [1.0, 2.0, 3.0] + draw.normal(size=rows)}


def test_private_sketches(tmp_path: Path) -> None:
    import pyarrow as pa

    table = pa.table(frame())
    options: dict[str, Any] = {"sketch": "orthogonal", "sketch_size": 40, "private": True}
    first, second = (ps.sketch(table, "y", ["a", "b", "c"], site="north", **options) for _ in range(2))
    assert not np.array_equal(first.matrix, second.matrix)
    assert first.parts[0].seed is None
    # A Gaussian sketch can be made of an orthogonal one, so that the bound for those does not hold.
    assert information_bound(first) is None
    other = ps.sketch(table, "y", ["a", "b", "c"], site="south", **options)
    first.save(tmp_path / "north.psk")
    other.save(tmp_path / "south.psk")
    model = ps.combine(str(tmp_path / "*.psk"), "y")
    np.testing.assert_allclose(model.coefficients[:, 0], [1, 2, 3], atol=1.0)
    assert model.certificate.kind == "approximate"
    with pytest.raises(InputError, match="too large for a private sketch of 600 rows"):
        ps.sketch(table, "y", ["a", "b", "c"], site="n", **{**options, "sketch_size": 600})
    with pytest.raises(InputError, match="takes no seed"):
        ps.sketch(table, "y", ["a", "b", "c"], site="n", random_state=1, **options)


def test_sketches_of_the_whole_share_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are added up once for all of them, and each has numbers of its own."""
    made = []
    accumulator = OrthogonalSketch.accumulator

    def counted(self: OrthogonalSketch, *arguments: Any) -> Any:
        made.append(1)
        return accumulator(self, *arguments)

    monkeypatch.setattr(OrthogonalSketch, "accumulator", counted)
    columns = frame()
    X, y = np.column_stack([columns[name] for name in "abc"]), columns["y"]
    model = ps.SketchedRegression("whole", n_partitions=5, sketch="orthogonal", sketch_size=30, random_state=1).fit(
        X, y
    )
    assert len(made) == 1
    assert len(model.summaries_) == 5
    assert len({summary.matrix.tobytes() for summary in model.summaries_}) == 5
    assert [summary.parts[0].stream for summary in model.summaries_] == list(range(5))


def test_certificate_of_one_sketch_is_exact_in_the_mean() -> None:
    # 250 fits: relative loss known to 5%; the interval at 95% to 1.4 points.
    columns = frame(150)
    X, y = np.column_stack([columns[name] for name in "abc"]), columns["y"]
    exact = ps.SketchedRegression("exact").fit(X, y)
    design = np.column_stack([np.ones(150), X])
    lost, claimed, inside = [], [], []
    for seed in range(250):
        model = ps.SketchedRegression("whole", n_partitions=1, sketch="orthogonal", sketch_size=30, random_state=seed)
        model.fit(X, y)
        away = design @ np.r_[model.intercept_ - exact.intercept_, model.coef_ - exact.coef_]
        lost.append(float(away @ away))
        claimed.append(model.certificate_.excess_loss)
        low, high = model.certificate_.interval(0.95)
        inside.append(low <= lost[-1] <= high)
    assert model.certificate_.kind == "estimated"
    assert np.mean(claimed) == pytest.approx(np.mean(lost), rel=0.16)
    minimum = exact.certificate_.minimal_loss
    assert np.mean(lost) == pytest.approx(theory.orthogonal_excess_loss(minimum, 4, 150, 30, 1), rel=0.16)
    assert 0.90 < np.mean(inside) < 0.99


@pytest.mark.parametrize("size", [1, 2, 6])
def test_fewer_rows_than_columns_of_any_units(size: int) -> None:
    """What a large column has in common with small ones was rounded off beside it, and a fit "lost nothing"."""
    units = 2.0 ** np.array([166, 53, 0, -266])
    rows = data(2)
    plain, scaled = (
        orthogonal_rows(np.asarray(np.linalg.qr(np.vstack([A, np.zeros((2, 4))]), mode="r")), size, 2, seed=1)
        for A in (rows, rows * units)
    )
    np.testing.assert_allclose(scaled / units, plain, rtol=1e-12, atol=1e-13)
    if size >= 2:
        gram = (scaled / units).T @ (scaled / units)
        np.testing.assert_allclose(gram, rows.T @ rows, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("zero", range(5))
def test_a_column_of_zeros_stays_one_in_fewer_rows_than_columns(zero: int) -> None:
    rows = data(3, 5)
    rows[:, zero] = 0.0
    factor = np.asarray(np.linalg.qr(np.vstack([rows, np.zeros((2, 5))]), mode="r"))
    assert not orthogonal_rows(factor, 3, 3, seed=1)[:, zero].any()
    assert not orthogonal_rows(factor, 2, 3, seed=1)[:, zero].any()


def test_columns_of_zeros_are_named_where_partitions_are_short() -> None:
    """Sketches held rounding in their place, of which a coefficient was found without a word."""
    rng = np.random.default_rng(5)
    X = np.c_[np.zeros(15), rng.normal(size=(15, 3))]
    y = X @ [0.0, 1.0, 2.0, 3.0] + rng.normal(size=15)
    with pytest.warns(ps.PartsketchWarning, match="Column 'x0' is zero in every row"):
        model = ps.SketchedRegression(
            "stack", n_partitions=5, sketch="orthogonal", sketch_size=3, random_state=1
        ).fit(X, y)  # fmt: skip
    assert model.model_.record.rank == 4
    assert model.coef_[0] == 0.0
    exact = np.linalg.lstsq(np.c_[np.ones(15), X[:, 1:]], y, rcond=None)[0]
    np.testing.assert_allclose(model.coef_[1:], exact[1:], rtol=1e-10)
