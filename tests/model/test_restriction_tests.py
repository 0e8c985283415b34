"""F tests of linear restrictions and of nested models, against statsmodels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.formula.api as smf

import partsketch as ps
from tests.questions.data import clustered_rows

ROWS = clustered_rows()
SUMMARIES = ps.summarise(ROWS, ["a", "b", "c", "y"], partition_by="g")
STATED = ["a = 1, b = 2", "b = 2*c - 4", "a = 0, b = 0, c = 0", "(intercept) = 0.5", "c = 3"]


@pytest.mark.parametrize("stated", STATED)
@pytest.mark.parametrize("vcov", ["iid", "CRV1"])
def test_statsmodels_tests_the_same(stated: str, vcov: str) -> None:
    clusters = {"cov_type": "cluster", "cov_kwds": {"groups": ROWS["g"]}, "use_t": True} if vcov == "CRV1" else {}
    other = smf.ols("y ~ a + b + c", ROWS).fit(**clusters).f_test(stated.replace("(intercept)", "Intercept"))
    test = SUMMARIES.fit("y", vcov=vcov).test(stated)
    assert test.statistic == pytest.approx(float(np.squeeze(other.fvalue)), rel=1e-8)
    assert test.df == (other.df_num, other.df_denom)
    assert test.p_value == pytest.approx(float(other.pvalue), rel=1e-7, abs=1e-300)


def test_a_nested_model_is_a_restriction() -> None:
    large, small = SUMMARIES.fit("y", vcov="CRV1"), SUMMARIES.fit("y", ["a"])
    assert large.test(small) == large.test("b = 0, c = 0")
    classical = SUMMARIES.fit("y").test(small)
    rows = smf.ols("y ~ a + b + c", ROWS).fit().compare_f_test(smf.ols("y ~ a", ROWS).fit())
    assert classical.statistic == pytest.approx(rows[0], rel=1e-8)
    for other in (SUMMARIES.fit("c", ["a"]), large, SUMMARIES.fit("y", ["a"], intercept="partition")):
        with pytest.raises(ps.InputError, match="not nested"):
            large.test(other)


def test_a_model_of_other_rows_is_not_nested() -> None:
    large = SUMMARIES.fit("y")
    # As many rows, of the same names.
    others = ps.summarise(ROWS.assign(y=ROWS["y"] + 1e-3 * ROWS["b"]), ["a", "b", "c", "y"], partition_by="g")
    with pytest.raises(ps.InputError, match="not of the same rows: there 'y' has the sum of squares"):
        large.test(others.fit("y", ["a"]))
    # Other summaries of the same rows do, and a fit to the rows themselves.
    stated = large.test("b = 0, c = 0")
    assert large.test(ps.summarise(ROWS, ["a", "y"]).fit("y", ["a"])) == stated
    assert large.test(ps.fit(ROWS, "y", ["a"], method="exact")) == stated


def test_a_name_that_may_be_an_equation_is_asked_back() -> None:
    rows = ROWS[["a", "b", "y"]].rename(columns={"b": "a=0"})
    model = ps.summarise(rows).fit("y")
    with pytest.raises(ps.InputError, match="'a=0' is the name of a coefficient, and an equation about 'a'"):
        model.test("a=0")
    assert model.test("a = 0").statistic == pytest.approx(float(model.t_values[1]) ** 2, rel=1e-9)
    assert model.test("`a=0`").statistic == pytest.approx(float(model.t_values[2]) ** 2, rel=1e-9)


def test_degrees_of_freedom_are_written_out() -> None:
    known = SUMMARIES.fit("y").test("a = 0")
    assert " with 1 and 39,997 degrees of freedom, " in str(replace(known, df=(1, 39_997.0)))
    assert " with 2 and 12 degrees of freedom, " in str(replace(known, df=(2, 12.0)))
    assert " with 2 and 4.321 degrees of freedom, " in str(replace(known, df=(2, 4.3212)))


def test_what_cannot_be_tested() -> None:
    model = SUMMARIES.fit("y")
    with pytest.raises(ps.InputError, match="not independent"):
        model.test("a = 0, 2*a = 0")
    with pytest.raises(ps.InputError, match="no coefficient 'q'"):
        model.test("q = 0")
    with pytest.raises(ps.InputError, match="or a model with fewer features: not list"):
        model.test(["a = 0", "b = 0"])  # type: ignore[arg-type]
    with pytest.raises(ps.InputError, match="no standard errors"):
        SUMMARIES.fit("y", alpha=1.0).test("a = 0")
    both = ps.summarise(ROWS, ["a", "y", "z"]).fit(["y", "z"], ["a"])
    assert both.test("a = 0", target="z").df[0] == 1
    with pytest.raises(ps.InputError, match="name one of 'y', 'z'"):
        both.test("a = 0")


def test_more_restrictions_than_clusters_allow() -> None:
    few = ROWS.assign(g=ROWS["g"] % 2)
    model = ps.summarise(few, ["a", "b", "c", "y"], partition_by="g").fit("y", vcov="CRV1")
    with pytest.raises(ps.InputError, match="more than there are clusters"):
        model.test("a = 0, b = 0, c = 0")
