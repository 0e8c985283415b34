"""Stacked sketches with fewer rows than columns: together they determine the fit, and they say what it loses."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import partsketch as ps
from partsketch.theory import certify_stacked, read_sketch, stacked_fit

Array = NDArray[np.float64]


def rows(partitions: int, columns: int, each: int = 60) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(partitions * each, columns))
    return X, X.sum(axis=1) + rng.normal(size=len(X))


def test_short_sketches_lose_what_all_their_rows_together_do() -> None:
    # 100 sites with m = d/10: by formula d/(100 m − d − 1), 11.6%. Of 8 fits the mean has a standard error of 1%.
    X, y = rows(100, 30)
    exact = ps.SketchedRegression("exact", fit_intercept=False).fit(X, y)
    least = float(np.sum((y - X @ exact.coef_) ** 2))
    losses, inside = [], 0
    for seed in range(8):
        fit = ps.SketchedRegression("stack", n_partitions=100, sketch_size=3, fit_intercept=False, random_state=seed)
        fit.fit(X, y)
        losses.append(float(np.sum((X @ (fit.coef_ - exact.coef_)) ** 2)) / least)
        low, high = fit.certificate_.interval(0.95, relative=True)
        inside += low <= losses[-1] <= high
    assert abs(np.mean(losses) - 30 / (300 - 31)) < 0.03
    assert inside >= 6
    assert "all 100 together have 300 rows for 30 columns" in fit.model_.record.reasons["sketch_size"]
    auto = fit.set_params(weighting="auto").fit(X, y).model_.record.reasons["weighting"]
    assert auto.endswith("sketches of 3 rows do not show by themselves whether partitions share 30 coefficients")


def test_certificates_of_short_sketches_cover() -> None:
    # 200 draws of 20 sketches of 3 rows for 8 columns: a share of 0.95 has a standard error of 1.5 points.
    X, y = rows(20, 8, 40)
    table, rng = np.column_stack([X, y]), np.random.default_rng(1)
    answer = np.linalg.lstsq(X, y, rcond=None)[0]
    inside = 0
    for _ in range(200):
        sketches = [read_sketch(rng.normal(size=(3, 40)) / np.sqrt(3) @ part) for part in np.split(table, 20)]
        fit = stacked_fit(sketches, [40] * 20)
        low, high = certify_stacked(fit).confidence.interval(0.95)  # type: ignore[union-attr]
        loss = float(np.sum((X @ (fit.pooled.solution - answer)) ** 2))
        inside += low <= loss <= high
    assert inside / 200 > 0.91


def test_fits_and_files_are_the_same(tmp_path: Path) -> None:
    X, y = rows(6, 8, 40)
    table = pa.table({**{f"x{j}": X[:, j] for j in range(8)}, "y": y})
    fit = ps.fit(table, "y", method="stack", n_partitions=6, sketch_size=4, random_state=3)
    summaries = ps.sketch(table, "y", n_partitions=6, sketch_size=4, random_state=3)
    for number, summary in enumerate(summaries):
        summary.save(tmp_path / f"{number}.psk")
    model = ps.combine(str(tmp_path / "*.psk"))
    np.testing.assert_array_equal(model.coefficients, fit.coefficients)
    assert model.certificate.relative_excess_loss == fit.certificate.relative_excess_loss
    assert model.certificate.heterogeneity is not None
    assert model.certificate.heterogeneity.p_value is None
    with pytest.raises(ps.InputError, match="use method 'stack', which takes all rows together"):
        ps.combine(str(tmp_path / "*.psk"), method="partition")
    with pytest.raises(ps.InputError, match=r"have 8 rows together: 9 columns to estimate .* need at least 11"):
        ps.combine([tmp_path / "0.psk", tmp_path / "1.psk"])


@pytest.mark.filterwarnings("ignore:What the fit loses")
def test_too_few_rows_together_are_refused_or_warned_of() -> None:
    X, y = rows(5, 18, 30)
    with pytest.raises(ps.InputError, match=r"5 stacked sketches have 15 rows, .* so give at least 4"):
        ps.SketchedRegression("stack", n_partitions=5, sketch_size=3, fit_intercept=False).fit(X, y)
    with pytest.warns(ps.PartsketchWarning, match=r"have 20 rows, at most 18 columns . 3: .* at least 22 in all"):
        ps.SketchedRegression("stack", n_partitions=5, sketch_size=4, fit_intercept=False, random_state=0).fit(X, y)
    with pytest.raises(ps.InputError, match="sketch_size=4 is too small: with 18 columns"):
        ps.SketchedRegression("partition", n_partitions=5, sketch_size=4, fit_intercept=False).fit(X, y)


def test_partitions_may_be_short_too_where_their_sketches_are() -> None:
    X, y = rows(30, 20, 8)
    fit = ps.SketchedRegression("stack", n_partitions=30, sketch_size=4, fit_intercept=False, random_state=0).fit(X, y)
    assert fit.rank_ == 20
    with pytest.raises(ps.InputError, match="Too few rows"):
        ps.SketchedRegression("stack", n_partitions=10, sketch_size=4, fit_intercept=False).fit(X[:21], y[:21])


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    ("kind", "weighting"), [("gaussian", "rows"), ("orthogonal", "auto"), ("orthogonal", "information")]
)
def test_partitions_may_be_short_where_their_sketches_are_not(kind: str, weighting: str) -> None:
    """Two partitions of 5 rows beside three of 400, for 8 columns; and 60 of 6 rows, whose sketches are larger still.

    The mean of six losses of about 8% has a standard error of 1.6 points.
    """
    sizes = [5, 400, 400, 5, 400]
    X, y = rows(1, 8, sum(sizes))
    table = pa.table({**{f"x{j}": X[:, j] for j in range(8)}, "site": np.repeat(list("abcde"), sizes), "y": y})
    asked: dict[str, Any] = {
        "method": "stack",
        "partition_by": "site",
        "sketch": kind,
        "fit_intercept": False,
        "weighting": weighting,
    }
    exact = np.linalg.lstsq(X, y, rcond=None)[0]
    losses, claims = [], []
    for seed in range(6):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ps.PartsketchWarning)
            model = ps.fit(table, "y", **asked, random_state=seed)
        losses.append(float(np.sum((X @ (model.coefficients[:, 0] - exact)) ** 2) / np.sum((y - X @ exact) ** 2)))
        claims.append(model.certificate.relative_excess_loss or 0.0)
    assert np.mean(losses) == pytest.approx(8 / (3 * 32 - 9), abs=0.055)
    if weighting == "information":
        assert "too few rows to show its noise" in model.record.reasons["weighting"]
        assert model.certificate.kind == "unavailable"
    else:
        assert np.mean(claims) == pytest.approx(np.mean(losses), rel=0.6)
    many = ps.SketchedRegression("stack", n_partitions=60, sketch=kind, partition_by="order", random_state=0)
    assert many.fit(X[:360], y[:360]).rank_ == 9


def test_a_plan_offers_short_sketches_where_bytes_are_limited() -> None:
    limits = {"max_bytes_per_partition": "10 kB"}
    plan = ps.plan(rows=10**6, columns=99, n_partitions=100, limits=limits)
    short = [c for c in plan.candidates if c.method == "stack" and c.sketch == "gaussian" and not c.breaks]
    # 10 kB hold 12 rows of 101 numbers: 1200 rows in all lose 100/(1200 − 101).
    assert [(c.sketch_size, c.bytes_per_partition) for c in short][-1] == (12, 12 * 101 * 8)
    assert short[-1].excess == pytest.approx(100 / (1200 - 101), rel=1e-6)
    free = ps.plan(rows=10**6, columns=99, n_partitions=100)
    assert all(c.sketch_size is None or c.sketch_size >= 104 for c in free.candidates)
    assert any("The exact summary of a partition takes 81.6 kB" in note for note in free.notes)
    asked = ps.plan(rows=10**6, columns=99, n_partitions=100, sketch_size=10)
    assert {c.method for c in asked.candidates if c.sketch is not None} == {"stack"}
    with pytest.raises(ps.InputError, match="at least 102, or 2 to be stacked"):
        ps.plan(rows=10**6, columns=99, n_partitions=100, sketch_size=1)
