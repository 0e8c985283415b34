"""Two-stage least squares against linearmodels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from linearmodels.iv import IV2SLS

import partsketch as ps
from partsketch.common.errors import InputError
from tests.questions.data import clustered_rows


def instrumented_rows(rows: int = 900, clusters: int = 12, near: float = 1.0) -> pd.DataFrame:
    """Return rows in which price is related to the noise, and tax and rain are not."""
    rng = np.random.default_rng(5)
    cluster = rng.integers(0, clusters, rows)
    shared = rng.normal(size=clusters)[cluster]
    tax, rain, night = rng.normal(size=(3, rows))
    rain = tax + near * rain
    noise = rng.normal(size=rows) + 0.5 * shared
    price = 0.8 * tax + 0.4 * rain + 0.3 * night + 0.7 * noise + rng.normal(size=rows)
    fare = 2.0 + 1.5 * price - night + noise
    return pd.DataFrame({"tax": tax, "rain": rain, "night": night, "price": price, "fare": fare, "g": cluster})


ROWS = instrumented_rows()
SUMMARIES = ps.summarise(ROWS, partition_by="g")


def by_rows(rows: pd.DataFrame, instruments: list[str], vcov: str) -> Any:
    model = IV2SLS(rows["fare"], rows[["night"]].assign(one=1.0)[["one", "night"]], rows[["price"]], rows[instruments])
    if vcov == "iid":
        return model.fit(cov_type="unadjusted", debiased=True)
    return model.fit(cov_type="clustered", clusters=rows["g"], debiased=True)


@pytest.mark.parametrize("instruments", [["tax"], ["tax", "rain"]])
@pytest.mark.parametrize("vcov", ["iid", "CRV1"])
def test_linearmodels_finds_the_same(instruments: list[str], vcov: str) -> None:
    model = SUMMARIES.instrument("fare", "price", instruments, "night", vcov=vcov)
    other = by_rows(ROWS, instruments, vcov)
    assert model.column_names == ("(intercept)", "night", "price")
    np.testing.assert_allclose(model.column_coefficients[:, 0], other.params, rtol=1e-8)
    np.testing.assert_allclose(model.standard_errors, other.std_errors, rtol=1e-8)
    tests = model.instruments
    assert tests is not None
    if len(instruments) == 1:
        assert tests.overidentification is None
    else:
        assert tests.overidentification is not None
        assert tests.overidentification.statistic == pytest.approx(other.sargan.stat, rel=1e-8)
        assert tests.overidentification.p_value == pytest.approx(other.sargan.pval, rel=1e-8)
    if vcov == "iid":
        # linearmodels has a Wald statistic of the first stage: restrictions times F, without the factor of freedom.
        wald = IV2SLS(ROWS["price"], ROWS[["night", *instruments]].assign(one=1.0), None, None).fit(
            cov_type="unadjusted", debiased=True
        )
        formula = " = ".join([*instruments, "0"])
        assert tests.first_stages[0].statistic == pytest.approx(
            float(wald.wald_test(formula=formula).stat) / len(instruments), rel=1e-8
        )


def test_instruments_that_nearly_depend_and_columns_far_from_zero() -> None:
    near = instrumented_rows(near=1e-4)
    model = ps.summarise(near, partition_by="g").instrument("fare", "price", ["tax", "rain"], "night", vcov="CRV1")
    other = by_rows(near, ["tax", "rain"], "CRV1")
    np.testing.assert_allclose(model.column_coefficients[:, 0], other.params, rtol=1e-8)
    np.testing.assert_allclose(model.standard_errors, other.std_errors, rtol=1e-8)
    far = ROWS.assign(price=ROWS["price"].round(3) + 2**20, tax=ROWS["tax"].round(3) - 2**22)
    here = ROWS.assign(price=ROWS["price"].round(3), tax=ROWS["tax"].round(3))
    one, two = (
        ps.summarise(rows, partition_by="g").instrument("fare", "price", "tax", "night") for rows in (far, here)
    )
    np.testing.assert_allclose(one.coefficients, two.coefficients, rtol=1e-8)
    np.testing.assert_allclose(one.standard_errors[1:], two.standard_errors[1:], rtol=1e-8)


def test_nothing_is_said_of_least_squares() -> None:
    """Instruments do not minimise the loss: to state that nothing is lost, or that least squares is known, is false."""
    model = SUMMARIES.instrument("fare", "price", "tax", "night")
    plain = SUMMARIES.fit("fare", ["night", "price"])
    assert abs(model.column_coefficients[2, 0] - plain.column_coefficients[2, 0]) > 0.1
    assert model.certificate.kind == "unavailable"
    assert model.certificate.excess_loss is None
    assert "Excess loss" not in str(model)
    with pytest.raises(InputError, match="instruments aim at other coefficients"):
        model.conf_int(of="exact")


def test_a_tiny_p_value_is_a_bound() -> None:
    assert "p < 1e-16" in str(SUMMARIES.instrument("fare", "price", "tax", "night"))


def test_intercepts_of_partitions() -> None:
    model = SUMMARIES.instrument("fare", "price", ["tax", "rain"], "night", intercept="partition")
    dummies = pd.get_dummies(ROWS["g"], prefix="g", dtype=float)
    other = IV2SLS(ROWS["fare"], ROWS[["night"]].join(dummies), ROWS[["price"]], ROWS[["tax", "rain"]])
    found = other.fit(cov_type="unadjusted", debiased=True)
    np.testing.assert_allclose(model.coefficients[:, 0], found.params[["night", "price"]], rtol=1e-8)
    np.testing.assert_allclose(model.standard_errors, found.std_errors[["night", "price"]], rtol=1e-8)


def test_a_model_with_instruments_is_kept(tmp_path: Any) -> None:
    model = SUMMARIES.instrument("fare", "price", ["tax", "rain"], "night")
    model.save(tmp_path / "model.json")
    assert ps.load(tmp_path / "model.json").instruments == model.instruments
    assert "Sargan's test, which takes noise for independent" in str(model.summary())


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("fare", ["price", "night"], ["tax"]), "at least as many instruments"),
        (("fare", [], ["tax"]), "at least one endogenous"),
        (("fare", "price", ["price"]), "named twice"),
        (("fare", "price", ["snow"]), "no column 'snow'"),
        ((["fare", "night"], "price", ["tax"]), "name one column"),
        ((None, "price", ["tax"]), "name one column"),
    ],
)
def test_what_cannot_be_asked(asked: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ps.InputError, match=message):
        SUMMARIES.instrument(*asked)


def test_instruments_without_relation_are_refused() -> None:
    rows = ROWS.assign(same=ROWS["night"] * 2)
    summaries = ps.summarise(rows, partition_by="g")
    with pytest.raises(ps.InputError, match="dependent"):
        summaries.instrument("fare", "price", "same", "night")
    with pytest.raises(ps.InputError, match="vcov is 'CRV3'"):
        summaries.instrument("fare", "price", "tax", vcov="CRV3")


def test_instruments_that_do_not_tell_two_columns_apart_are_refused() -> None:
    rows = clustered_rows().assign(twice=lambda frame: 2 * frame["a"] - 3)
    summaries = ps.summarise(rows, ["a", "twice", "b", "c", "z", "y"], partition_by="g")
    with pytest.raises(ps.InputError, match="do not determine the coefficient of 'twice'"):
        summaries.instrument("y", ["a", "twice"], ["z", "c"], ["b"])


def test_ugly_instruments() -> None:
    rows = ROWS.assign(
        exact=3 - 2 * ROWS["price"] + ROWS["night"],
        constant=7.0,
        only=1.0 * (ROWS["g"] == 4),
        determined=ROWS["tax"] - 2 * ROWS["rain"],
        near=ROWS["tax"] + 1e-11 * np.random.default_rng(1).normal(size=len(ROWS)),
    )
    summaries = ps.summarise(rows, [name for name in rows if name != "g"], partition_by="g")
    for vcov in ("iid", "CRV1"):
        # Nothing is made of rounding: neither errors nor Sargan's test.
        for target in ("exact", "constant"):
            model = summaries.instrument(target, "price", ["tax", "rain"], "night", vcov=vcov)
            assert not model.standard_errors.any()
            assert model.instruments is not None
            assert model.instruments.overidentification is None
            assert any("leaves no residuals" in sentence for sentence in model.record.warnings)
        with pytest.raises(ps.InputError, match="leave nothing of 'determined' but rounding"):
            summaries.instrument("fare", "determined", ["tax", "rain"], "night", vcov=vcov)
        with pytest.raises(ps.InputError, match="The first stage of 'price' cannot be tested"):
            summaries.instrument("fare", "price", ["tax", "near"], "night", vcov=vcov)
        told = summaries.instrument("fare", "price", ["tax", "rain"], ["night", "only"], vcov=vcov).record.warnings
        assert any("see no noise in the coefficient of 'only'" in sentence for sentence in told) == (vcov == "CRV1")
