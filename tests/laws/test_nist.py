"""NIST's reference data sets: as many digits as the best of the others, from any storage and number of partitions."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from sklearn.linear_model import LinearRegression
from statsmodels.tools.sm_exceptions import SingularMatrixWarning

import partsketch as ps
from tests.judge import digits_of
from tests.laws.tables import fit_table
from tests.nist import POWERS, Certified, certified

#: Powers up to the tenth have coefficients that nearly cancel, and the fit says so.
pytestmark = pytest.mark.filterwarnings("ignore:Coefficients nearly cancel")

#: Digits that must be reached whatever the others reach.
FLOORS = {"filip": 7.5, "longley": 13.0, "wampler4": 8.7, "wampler5": 7.1, "pontius": 12.0, "norris": 12.5}

#: How far we may be behind the best of the others: rounding is luck below half a digit.
MARGIN = 0.5

#: NIST's own certified values, as published, of one data set of each kind.
PUBLISHED = {
    "norris": ["-0.262323073774029", "1.00211681802045"],
    "pontius": ["0.673565789473684E-03", "0.732059160401003E-06", "-0.316081871345029E-14"],
    "noint1": ["2.07438016528926"],
    "noint2": ["0.727272727272727"],
    "longley": [
        "-3482258.63459582", "15.0618722713733", "-0.358191792925910E-01", "-2.02022980381683",
        "-1.03322686717359", "-0.511041056535807E-01", "1829.15146461355",
    ],
    "filip": [
        "-1467.48961422980", "-2772.17959193342", "-2316.37108160893", "-1127.97394098372", "-354.478233703349",
        "-75.1242017393757", "-10.8753180355343", "-1.06221498588947", "-0.670191154593408E-01",
        "-0.246781078275479E-02", "-0.402962525080404E-04",
    ],
    "wampler1": ["1"] * 6,
    "wampler2": ["1", "0.1", "0.01", "0.001", "0.0001", "0.00001"],
    "wampler3": ["1"] * 6,
    "wampler4": ["1"] * 6,
    "wampler5": ["1"] * 6,
}  # fmt: skip

#: Residual standard deviations, as published.
PUBLISHED_RESIDUALS = {
    "norris": 0.884796396144373,
    "pontius": 0.205177424076185e-03,
    "noint1": 3.56753034006338,
    "noint2": 0.369274472937998,
    "longley": 304.854073561965,
    "filip": 0.334801051324544e-02,
    "wampler1": 0.0,
    "wampler2": 0.0,
    "wampler3": 2360.14502379268,
    "wampler4": 236014.502379268,
    "wampler5": 23601450.2379268,
}


def others(data: Certified) -> dict[str, float]:
    """Return the digits of NumPy, scikit-learn and statsmodels on the same numbers."""
    matrix = np.column_stack([np.ones(len(data.y)), data.X]) if data.intercept else data.X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SingularMatrixWarning)
        ols = sm.OLS(data.y, matrix).fit()
    line = LinearRegression(fit_intercept=data.intercept, tol=1e-16).fit(data.X, data.y)
    answers: dict[str, Any] = {
        "numpy": np.linalg.lstsq(matrix, data.y)[0],
        "scikit-learn": [line.intercept_, *line.coef_] if data.intercept else line.coef_,
        "statsmodels": ols.params,
    }
    return {name: digits_of(answer, data.exact.coefficients) for name, answer in answers.items()}


def assert_digits(model: ps.Model, data: Certified) -> None:
    found = digits_of(model.column_coefficients[:, 0], data.exact.coefficients)
    rivals = others(data)
    assert found >= max(rivals.values()) - MARGIN, f"{found:.2f} digits, others have {rivals}"
    assert found >= FLOORS.get(data.name, 0.0)


@pytest.mark.parametrize("name", POWERS)
def test_certified_values_are_those_that_nist_publishes(name: str) -> None:
    """NIST prints fifteen digits: half a unit of the last is at most 5e-15 of the number."""
    data = certified(name)
    assert data.exact.rank == len(PUBLISHED[name])
    published = [float(text) for text in PUBLISHED[name]]
    np.testing.assert_allclose([float(value) for value in data.exact.coefficients], published, rtol=5e-15)
    residual = float(data.exact.loss / (len(data.y) - data.exact.rank)) ** 0.5
    assert residual == pytest.approx(PUBLISHED_RESIDUALS[name], rel=5e-15)


@pytest.mark.parametrize("storage", ["C", "F", "parquet", "csv", "feather"])
@pytest.mark.parametrize("name", POWERS)
def test_digits_of_exact_fits(name: str, storage: str, tmp_path: Path) -> None:
    data = certified(name)
    model = fit_table(
        data.X, data.y, storage=storage, folder=tmp_path, method="exact", fit_intercept=data.intercept
    )  # fmt: skip
    assert_digits(model, data)
    assert model.record.rank == data.exact.rank


@pytest.mark.parametrize("partitions", [1, 2, 3, 4])
@pytest.mark.parametrize("name", POWERS)
def test_digits_of_merged_partitions(name: str, partitions: int) -> None:
    """Sites that share only exact summaries lose nothing."""
    data = certified(name)
    table = np.column_stack([data.X, data.y])
    summaries = [
        ps.sketch(part, f"x{data.X.shape[1]}", sketch="triangular", site=str(number), fit_intercept=data.intercept)
        for number, part in enumerate(np.array_split(table, min(partitions, len(table))))
        if len(part)
    ]
    model = ps.combine(summaries)
    assert_digits(model, data)
    assert model.record.rank == data.exact.rank


@pytest.mark.parametrize("name", POWERS)
def test_standard_errors_and_loss(name: str) -> None:
    """The loss has at least as many digits as the data leave it; standard errors follow from it."""
    data = certified(name)
    model = fit_table(data.X, data.y, method="exact", fit_intercept=data.intercept)
    if not data.exact.loss:
        # Rounding x⁵ leaves a loss of its own.
        assert model.certificate.minimal_loss == pytest.approx(0, abs=1e-20 * float(np.sum(data.y**2)))
        return
    assert model.certificate.minimal_loss == pytest.approx(float(data.exact.loss), rel=1e-7)
    errors, inverse = model.inferences[0].standard_errors, data.exact.inverse_diagonal
    assert errors is not None
    assert inverse is not None
    variance = data.exact.loss / (len(data.y) - data.exact.rank)
    # Of filip's ten powers, whose condition number is 10¹⁵ before columns are moved, seven digits are left.
    np.testing.assert_allclose(errors, [float(variance * value) ** 0.5 for value in inverse], rtol=1e-6)
