"""Errors where squares are beyond doubles, and where errors of slopes cancel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import partsketch as ps
from partsketch.model.held import lengths

_DRAW = np.random.default_rng(0)
X, NOISE, OTHER = _DRAW.normal(size=(3, 400))


def _nearly_equal(apart: float) -> pd.DataFrame:
    """Return columns near 5 that differ by a part of their spread, and what differs, exactly."""
    step = 2.0**-40
    a = np.rint((5 + X) / step) * step
    away = np.rint(apart * OTHER / step) * step
    return pd.DataFrame({"a": a, "b": a + away, "away": away, "y": 1 + 2 * a + NOISE})


@pytest.mark.parametrize("apart", [1e-4, 1e-7, 1e-8])
def test_the_error_of_an_intercept_in_which_slopes_cancel(apart: float) -> None:
    """Of a and b − a in place of a and b nothing cancels; it was 0.8 too large at 1e-8."""
    rows = _nearly_equal(apart)
    near, plain = ps.fit(rows, "y", ["a", "b"]), ps.fit(rows, "y", ["a", "away"])
    # Rounding, 1e-16, times the condition, 1e8, and room.
    assert near.standard_errors[0] == pytest.approx(plain.standard_errors[0], rel=1e-7)
    assert near.standard_errors[2] == pytest.approx(plain.standard_errors[2], rel=1e-7)


@pytest.mark.parametrize("vcov", ["iid", "HC1"])
@pytest.mark.parametrize("apart", [1e-4, 1e-6, 1e-8])
def test_a_restricted_sum_of_nearly_equal_columns_keeps_its_digits(apart: float, vcov: str, tmp_path: Path) -> None:
    rows = _nearly_equal(apart)
    model = ps.fit(rows, "y", ["a", "b"], vcov=vcov)
    plain = ps.fit(rows, "y", ["a", "away"], vcov=vcov)
    # What differs is the rounding of the columns: a part of eps in one that is 1 / apart times smaller.
    room = 1e-15 / apart
    assert model.test("a + b = 2").statistic == pytest.approx(plain.test("a = 2").statistic, rel=1e-9 + room)
    assert model.test("a + b = 2, (intercept) = 1").statistic == pytest.approx(
        plain.test("a = 2, (intercept) = 1").statistic, rel=1e-9 + room
    )
    here, there = (one.predict(rows[:3], interval="confidence") for one in (model, plain))
    np.testing.assert_allclose(here, there, rtol=1e-9 + room)
    model.save(tmp_path / "model.json")
    assert ps.load(tmp_path / "model.json").test("a + b = 2") == model.test("a + b = 2")


@pytest.mark.parametrize("vcov", ["iid", "CRV1", "CRV3"])
def test_values_far_from_the_origin_are_tested_without_loss(vcov: str) -> None:
    rows = _nearly_equal(1.0).assign(g=np.arange(len(X)) % 7)
    here, away = (
        ps.summarise(rows.assign(a=rows["a"] + far), ["a", "y"], partition_by="g").fit("y", vcov=vcov)
        for far in (0.0, 2.0**22)
    )
    there = away.test("(intercept) + 4194304 * a = 0").statistic
    assert there == pytest.approx(here.test("(intercept) = 0").statistic, rel=1e-8)


@pytest.mark.filterwarnings("ignore:Coefficients nearly cancel")
@pytest.mark.parametrize("vcov", ["iid", "HC1"])
def test_a_restricted_sum_that_rounding_hides_is_refused(vcov: str) -> None:
    model = ps.fit(_nearly_equal(1e-11), "y", ["a", "b"], vcov=vcov)
    with pytest.raises(ps.InputError, match="rounding hides how sure the restricted sums"):
        model.test("a + b = 2")
    # Of each alone all is known.
    assert model.test("b = 0").statistic == pytest.approx(model.t_values[2] ** 2, rel=1e-9)


def test_two_restrictions_of_which_rounding_hides_a_sum_are_refused() -> None:
    model = ps.fit(_nearly_equal(3e-6), "y", ["a", "b"])
    with pytest.raises(ps.InputError, match=r"rounding hides|not independent"):
        model.test("a + b = 2, a - b = 0, a = 1")


@pytest.mark.filterwarnings("ignore::partsketch.PartsketchWarning")
def test_an_average_does_not_state_what_rounding_hides() -> None:
    rows = _nearly_equal(1e-8)
    model = ps.fit(rows, "y", ["a", "b"], method="average", n_partitions=2)
    with pytest.raises(ps.InputError, match="rounding hides how sure the intercept is"):
        _ = model.standard_errors
    away = ps.fit(rows, "y", ["a", "away"], method="average", n_partitions=2)
    spread = [one.inferences[0].spread_standard_errors[0] for one in (model, away)]  # type: ignore[index]
    assert spread[0] == pytest.approx(spread[1], rel=1e-6)


def _scaled(target: float, column: float = 1.0) -> pd.DataFrame:
    return pd.DataFrame({"x": X * column, "y": (1 + X + NOISE) * target})


@pytest.mark.filterwarnings("ignore:What the fit loses")
@pytest.mark.parametrize("vcov", ["iid", "HC1", "HC3"])
@pytest.mark.parametrize("size", [1e-161, 1e-175, 1e160])
def test_targets_whose_squares_are_beyond_doubles(size: float, vcov: str) -> None:
    model, plain = ps.fit(_scaled(size), "y", vcov=vcov), ps.fit(_scaled(1.0), "y", vcov=vcov)
    assert model.standard_errors / size == pytest.approx(plain.standard_errors, rel=1e-9)
    assert model.certificate.minimal_loss is None
    assert model.inferences[0].noise_variance is None
    for interval in ("confidence", "prediction"):
        with pytest.raises(ps.InputError, match=r"variances of some coefficients are beyond|variance of the noise"):
            model.predict(_scaled(size), interval=interval)
    with pytest.raises(ps.InputError, match="variances of some coefficients are beyond"):
        model.test("x = 0")


@pytest.mark.parametrize("vcov", ["iid", "HC1"])
def test_columns_whose_variances_are_beyond_doubles(vcov: str) -> None:
    """Intervals of predictions left out what the slope adds."""
    plain = ps.fit(_scaled(1.0), "y", vcov=vcov)
    for column, target in ((1e150, 1e-150), (1e-160, 1.0)):
        model = ps.fit(_scaled(target, column), "y", vcov=vcov)
        found = model.standard_errors * [1.0, column] / target
        assert found == pytest.approx(plain.standard_errors, rel=1e-9)
        with pytest.raises(ps.InputError, match="variances of some coefficients are beyond"):
            model.predict(_scaled(target, column), interval="confidence")


def test_errors_by_partition_of_a_tiny_target() -> None:
    tiny, plain = (ps.summarise(_scaled(size), n_partitions=10).fit("y", vcov="CRV1") for size in (1e-155, 1.0))
    assert tiny.standard_errors / 1e-155 == pytest.approx(plain.standard_errors, rel=1e-9)


def test_a_coefficient_below_doubles_is_refused() -> None:
    """It was rounded to zero, and all predictions were the mean."""
    with pytest.raises(ps.InputError, match="coefficient of column 'x' is below what a double holds"):
        ps.fit(_scaled(1e-250, 1e120), "y")


@pytest.mark.parametrize("vcov", ["iid", "CRV1"])
def test_a_first_stage_whose_variances_are_beyond_doubles_is_refused(vcov: str) -> None:
    frame: dict[str, Any] = {"z": X * 1e-160, "p": X + NOISE, "y": X + NOISE + OTHER}
    summaries = ps.summarise(pd.DataFrame(frame), n_partitions=10)
    with pytest.raises(ps.InputError, match=r"variances of some coefficients are beyond|Variances by CRV1"):
        summaries.instrument("y", endogenous="p", instruments="z", vcov=vcov)


def test_lengths_of_lines_of_any_size() -> None:
    lines = np.array([[3e-200, 3e200, 0.0, 3.0], [4e-200, 4e200, 0.0, 4.0]])
    assert lengths(lines) == pytest.approx([5e-200, 5e200, 0.0, 5.0], rel=1e-15)
