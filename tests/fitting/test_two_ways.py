"""Clusters of two columns at once: pyfixest is the judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy import sparse

import partsketch as ps
from partsketch import LocalEngine
from partsketch.cli import commands
from partsketch.common.cluster_names import joined_names, split_names

ROWS = 1500


def frame(cities: int = 40, years: int = 12) -> pd.DataFrame:
    generator = np.random.default_rng(4)
    city, year = generator.integers(0, cities, ROWS), generator.integers(0, years, ROWS)
    x, v = generator.normal(size=(2, ROWS)) + 0.1 * city + 0.2 * year
    shared = generator.normal(size=cities)[city] + generator.normal(size=years)[year]
    y = x - v + shared + generator.normal(size=ROWS)
    weights = generator.random(ROWS) + 0.5
    return pd.DataFrame({"y": y, "x": x, "v": v, "city": city, "year": year, "w": weights})


def errors_of(model: ps.Model) -> Any:
    return model.inferences[0].standard_errors


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("weights", [None, "w"])
def test_same_as_pyfixest(weights: str | None) -> None:
    pyfixest = pytest.importorskip("pyfixest")
    rows = frame()
    found = ps.fit(rows, "y ~ x + v", vcov={"CRV1": "city + year"}, weights=weights)
    judge = pyfixest.feols("y ~ x + v", rows, vcov={"CRV1": "city + year"}, weights=weights)
    np.testing.assert_allclose(errors_of(found), judge.se().to_numpy(), rtol=1e-9)
    assert found.inferences[0].degrees_of_freedom == 11
    assert "rows of the same 'city' or 'year' share" in str(found.summary())


def test_every_source_and_block_size(tmp_path: Path) -> None:
    rows = frame()
    rows.to_parquet(tmp_path / "rows.parquet", row_group_size=200)
    rows.assign(city=[f"c{number:02}" for number in rows["city"]]).to_csv(tmp_path / "rows.csv", index=False)
    asked: dict[str, Any] = {"features": ["x", "v"], "vcov": {"CRV1": "city + year"}, "weights": "w"}
    plain = ps.fit(rows, "y", **asked)
    for data, engine in (
        (tmp_path / "rows.parquet", LocalEngine(threads=1, block_rows=7)),
        (tmp_path / "rows.csv", LocalEngine(threads=2)),
    ):
        np.testing.assert_array_equal(errors_of(ps.fit(data, "y", engine=engine, **asked)), errors_of(plain))
    matrix = sparse.csr_array(rows.to_numpy())
    columns: dict[str, Any] = {"features": ["x1", "x2"], "vcov": {"CRV1": "x3 + x4"}, "weights": "x5"}
    np.testing.assert_allclose(errors_of(ps.fit(matrix, "x0", **columns)), errors_of(plain), rtol=1e-12)
    # The order of the columns is no matter, and segments add up.
    turned = ps.fit(rows, "y", **{**asked, "vcov": {"CRV1": ["year", "city"]}})
    np.testing.assert_allclose(errors_of(turned), errors_of(plain), rtol=1e-12)


def test_segments_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from partsketch.fitting.robust import errors

    whole = ps.fit(frame(), "y ~ x + v", vcov={"CRV1": "city + year"})
    monkeypatch.setattr(errors, "segment_rows_for", lambda clusters: 128)
    parts = ps.fit(frame(), "y ~ x + v", vcov={"CRV1": "city + year"})
    np.testing.assert_allclose(errors_of(parts), errors_of(whole), rtol=1e-12)


def test_no_covariance_matrix_is_told() -> None:
    """Of three clusters of each column V₁ + V₂ has a rank of four at most, and V₁₂ one of eight."""
    generator = np.random.default_rng(0)
    rows = frame(3, 3)
    for number in range(6):
        rows[f"x{number}"] = generator.normal(size=ROWS)
    features = ["x", "v", *(f"x{number}" for number in range(6))]
    with pytest.warns(ps.PartsketchWarning, match="negative eigenvalue, which was set to zero"):
        found = ps.fit(rows, "y", features, vcov={"CRV1": "city + year"})
    assert (errors_of(found) > 0).all()


@pytest.mark.parametrize(
    ("vcov", "sentence"),
    [
        ({"CRV1": "city + year + x"}, "one column of clusters, or two"),
        ({"CRV1": "city +"}, "one column of clusters, or two"),
        ({"CRV1": "city + city"}, "one column of clusters, or two"),
        ({"CRV3": "city + year"}, "ask for 'CRV1' of two"),
        ({"CRV1": "city + nowhere"}, "no column 'nowhere'"),
        ({"CRV1": 3}, "vcov is {'CRV1': 3}: choose"),
    ],
)
def test_refusals(vcov: Any, sentence: str) -> None:
    with pytest.raises(ps.InputError, match=sentence):
        ps.fit(frame(), "y ~ x", vcov=vcov)


def test_the_estimator_refuses() -> None:
    rows = frame()
    with pytest.raises(ps.InputError, match=r"two columns: use partsketch\.fit"):
        ps.SketchedRegression(vcov={"CRV1": "city + year"}).fit(rows[["x", "city", "year"]], rows["y"])


def test_names() -> None:
    assert split_names("home city") == ("home city",)
    assert split_names(joined_names(("a+b", "c d"))) == ("a+b", "c d")


def test_command(tmp_path: Path) -> None:
    frame().to_parquet(tmp_path / "rows.parquet")
    asked = ["fit", str(tmp_path / "rows.parquet"), "--formula", "y ~ x | city", "--vcov", "CRV1:year + city"]
    result = CliRunner().invoke(commands, [*asked, "--summary"])
    assert result.exit_code == 0
    assert "rows of the same 'year' or 'city' share" in " ".join(result.output.split())
