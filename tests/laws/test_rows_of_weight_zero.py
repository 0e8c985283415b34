"""Rows of weight zero are no observations: with or without them a fit says the same, standard errors included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import partsketch as ps
from tests.laws.tables import options_of

ROWS = 120
_DRAW = np.random.default_rng(8)
X = _DRAW.standard_normal((ROWS, 2))
Y = X @ [1.0, -2.0] + _DRAW.standard_normal(ROWS)
WEIGHTS = _DRAW.uniform(0.5, 2.0, ROWS)
SITES = np.arange(ROWS) % 3


def frame(zeros: bool) -> pd.DataFrame:
    """The rows, and if asked ten times as many of weight zero behind them, of which some would change everything."""
    rows = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y, "w": WEIGHTS, "site": SITES})
    more = pd.concat([rows] * 10).assign(w=0.0, y=1e9)
    return pd.concat([rows, more], ignore_index=True) if zeros else rows


def fit(zeros: bool, **options: Any) -> ps.Model:
    return ps.fit(frame(zeros), "y", ["a", "b"], weights="w", **options)


@pytest.mark.filterwarnings("ignore::partsketch.PartsketchWarning")
@pytest.mark.parametrize("vcov", ["iid", "HC1", "HC3", {"CRV1": "site"}])
def test_standard_errors_do_not_count_them(vcov: Any) -> None:
    plain, more = fit(False, method="exact", vcov=vcov), fit(True, method="exact", vcov=vcov)
    assert more.record.row_count == ROWS
    np.testing.assert_allclose(more.coefficients, plain.coefficients, rtol=1e-12)
    np.testing.assert_allclose(more.conf_int(), plain.conf_int(), rtol=1e-9)


@pytest.mark.filterwarnings("ignore::partsketch.PartsketchWarning")
@pytest.mark.parametrize("method", ["average", "partition", "stack"])
def test_nor_do_certificates(method: str) -> None:
    """The rows that count have the same numbers in both tables, and so the same random numbers."""
    options = {**options_of(method), "partition_by": "site"}
    del options["n_partitions"]
    plain, more = fit(False, **options), fit(True, **options)
    np.testing.assert_allclose(more.coefficients, plain.coefficients, rtol=1e-12)
    assert more.certificate.relative_excess_loss == pytest.approx(plain.certificate.relative_excess_loss, rel=1e-9)
    np.testing.assert_allclose(more.conf_int(), plain.conf_int(), rtol=1e-9)


def test_the_record_tells_how_many_there_were() -> None:
    with pytest.warns(ps.PartsketchWarning, match="1200 rows with missing values or of weight zero were dropped"):
        assert fit(True, method="exact").record.rows_dropped == 10 * ROWS


@pytest.mark.filterwarnings("ignore::partsketch.PartsketchWarning")
@pytest.mark.parametrize("missing", ["error", "drop"])
@pytest.mark.parametrize("formula", ["y ~ scale(a) + center(b)", "y ~ poly(a, 2) + standardize(b)"])
def test_nor_do_means_spreads_and_polynomials_of_formulas(formula: str, missing: Any) -> None:
    """Rows of weight zero lie far away; coefficients of scaled columns would change by orders."""
    far = frame(False).assign(w=0.0, a=X[:, 0] * 50 + 1e3, b=7e4)
    table = pd.concat([far, frame(False)], ignore_index=True)
    plain = ps.fit(frame(False), formula, weights="w", method="exact")
    more = ps.fit(table, formula, weights="w", method="exact", missing=missing)
    np.testing.assert_allclose(more.column_coefficients, plain.column_coefficients, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::partsketch.PartsketchWarning")
def test_levels_and_knots_are_those_of_all_rows() -> None:
    """A row of weight zero must have a place: its level is known, and its value no further than the last knot."""
    table = frame(False).assign(g=np.where(SITES == 0, "u", "v"))
    table.loc[table.g == "u", "w"] = 0.0
    table.loc[0, "a"] = 9.0
    model = ps.fit(table, "y ~ bs(a, df=4) + C(g, levels=['v', 'u'])", weights="w", method="exact")
    assert "u" in " ".join(model.feature_names)
    assert any("is zero in every row that counts" in sentence for sentence in model.record.warnings)
