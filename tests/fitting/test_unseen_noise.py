"""Robust errors of coefficients that a row, or a cluster, determines alone: too small, and it is said."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
import pytest

import partsketch as ps
from partsketch.model.model import Model


def _rows(count: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"x": rng.normal(size=count), "k": np.arange(count) % 6})
    frame["one"] = (np.arange(count) == 7).astype(float)
    frame["inside"] = (frame["k"] == 2).astype(float)
    frame["both"] = (frame["k"] < 2).astype(float)
    frame["y"] = 100 + frame["x"] + 10 * rng.normal(size=count)
    return frame


def _told(model: Model) -> str:
    return " ".join(sentence for sentence in model.record.warnings if "see no noise" in sentence)


@pytest.mark.parametrize("vcov", ["HC0", "HC1"])
def test_a_row_that_determines_a_coefficient_alone_is_told_of(vcov: str) -> None:
    # Its residual is zero, so these errors are those of the prediction for the row: 1.4 where the noise is 10.
    with pytest.warns(ps.PartsketchWarning, match=f"{vcov} see no noise in the coefficient of 'one': rows that fit"):
        model = ps.fit(_rows(), "y ~ x + one", vcov=vcov)
    assert model.standard_errors[2] < 2
    assert "'x'" not in _told(model)


@pytest.mark.filterwarnings("ignore::partsketch.PartsketchWarning")
@pytest.mark.parametrize(
    ("formula", "vcov", "named"),
    [
        ("y ~ x + inside", {"CRV1": "k"}, "'inside'"),
        ("y ~ x + inside:x", {"CRV1": "k"}, "'inside:x'"),
        # Clusters that are levels: nothing is left of any score but rounding.
        (
            "y ~ C(k)",
            {"CRV1": "k"},
            "the intercept, 'C(k)[T.1]', 'C(k)[T.2]', 'C(k)[T.3]', 'C(k)[T.4]' and 'C(k)[T.5]'",
        ),
        ("y ~ x + both", {"CRV1": "k"}, ""),
        ("y ~ x + inside", "HC1", ""),
        ("y ~ x + one", "iid", ""),
    ],
)
def test_a_cluster_that_determines_coefficients_alone_is_told_of(
    formula: str, vcov: str | dict[str, str], named: str
) -> None:
    told = _told(ps.fit(_rows(), formula, vcov=vcov))
    assert told.startswith(f"Errors of CRV1 see no noise in the coefficient{'s' * (',' in named)} of {named}:") or (
        not told and not named
    )


@pytest.mark.parametrize(("vcov", "so"), [("CRV1", "intervals are too narrow"), ("wild", "no test or interval of it")])
def test_a_partition_that_determines_a_coefficient_alone_is_told_of(vcov: str, so: str) -> None:
    summaries = ps.summarise(_rows(), partition_by="k")
    told = _told(summaries.fit("y", ["x", "inside"], vcov=vcov))
    assert "CRV1 see no noise in the coefficient of 'inside': the rows of one cluster" in told
    assert so in told
    assert not _told(summaries.fit("y", ["x", "both"], vcov=vcov))
    assert told in str(summaries.fit("y", ["x", "inside"], vcov=vcov).summary()).replace("\n", " ").replace("  ", " ")


def test_noise_that_differs_a_hundred_thousandfold_is_seen() -> None:
    # Squares differ by 1e10: far from what rounding leaves.
    frame = _rows(600)
    rare = np.arange(600) % 100 == 0
    frame["one"] = rare.astype(float)
    frame["y"] = np.where(rare, 1.0, 1e5) * np.random.default_rng(1).normal(size=600)
    assert not _told(ps.fit(frame, "y ~ x + one", vcov="HC1"))


@pytest.mark.parametrize("vcov", ["HC0", "HC1", "HC2", "HC3", {"CRV1": "k"}, {"CRV3": "k"}])
def test_rounding_of_a_fit_without_residuals_is_no_noise(vcov: str | dict[str, str]) -> None:
    # Errors of 2e-17 and p-values of 1e-168 were made of rounding.
    model = ps.fit(_rows().assign(y=lambda rows: 3 * rows["x"] + 0.1), "y ~ x", vcov=vcov)
    assert model.standard_errors.tolist() == [0.0, 0.0]
    assert np.isnan(model.p_values).all()


@pytest.mark.parametrize("intercept", ["common", "partition"])
def test_rounding_is_no_noise_of_partitions_either(intercept: Literal["common", "partition"]) -> None:
    summaries = ps.summarise(_rows().assign(y=lambda rows: 3 * rows["x"] + 0.1), partition_by="k")
    for vcov in ("CRV1", "CRV3"):
        model = summaries.fit("y", ["x"], vcov=vcov, intercept=intercept)
        assert not model.standard_errors.any()
        assert np.isnan(model.p_values).all()
    with pytest.raises(ps.InputError, match="leaves no residuals, and has no wild bootstrap"):
        summaries.fit("y", ["x"], vcov="wild", intercept=intercept)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore:What the fit loses")
def test_weights_beyond_doubles_explain_nothing() -> None:
    rows = _rows().assign(y=lambda rows: 5 * rows["x"] + (rows["y"] - 100) / 10)
    plain = ps.fit(rows, "y", ["x"])
    for weight in (1e-308, 1e300):
        same = ps.fit(rows.assign(w=weight), "y", ["x"], weights="w")
        assert same.standard_errors == pytest.approx(plain.standard_errors, rel=1e-9)
        assert same.r_squared == pytest.approx(plain.r_squared, rel=1e-9)
    # The residuals have 6e307, the target 1e309: R² was 1.
    large = ps.fit(rows.assign(w=1e306), "y", ["x"], weights="w")
    assert large.column_coefficients == pytest.approx(plain.column_coefficients, rel=1e-12)
    assert np.isnan(large.r_squared[0])
    with pytest.raises(ps.InputError, match="residual sum of squares is beyond what a double holds: divide the target"):
        ps.fit(rows.assign(w=1e306, y=100 * rows["y"]), "y", ["x"], weights="w")
    with pytest.raises(ps.InputError, match="weights add up to more than a double holds"):
        ps.fit(rows.assign(w=1e308), "y", ["x"], weights="w")
    with pytest.raises(ps.InputError, match="There are no standard errors: the sizes of the columns"):
        _ = ps.fit(rows.assign(w=1e-320), "y", ["x"], weights="w").standard_errors


def test_a_whole_number_beyond_64_bits_is_a_sentence() -> None:
    with pytest.raises(ps.InputError, match="cannot be read as a table: Python int too large"):
        ps.fit(_rows().assign(x=pd.Series([2**70] * 60, dtype=object)), "y", ["x"])


@pytest.mark.filterwarnings("ignore:Errors of HC1 see no noise")
def test_intervals_of_a_row_without_noise_say_what_to_do() -> None:
    rows = _rows()
    found = ps.fit(rows, "y", ["x", "one"], vcov="HC1")
    with pytest.raises(ps.InputError, match=r"row 7 is: .* see no noise in a coefficient ask for vcov='iid'"):
        found.predict(rows, interval="confidence")
    assert np.isfinite(ps.fit(rows, "y", ["x", "one"]).predict(rows, interval="confidence")).all()
