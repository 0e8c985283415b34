"""Numbers that files with a promise and their models state, written out by hand; the noise is none or a known one."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import partsketch as ps
from partsketch.fitting.data_request import DataRequest
from partsketch.sites.noisy import mechanism
from partsketch.sites.noisy.bounds import measures_of
from partsketch.sites.noisy.judgement import NoisyRegression, certify
from partsketch.sites.noisy.pool import pool
from partsketch.theory.noisy_products import excess_distribution, fit_noisy_products
from tests.sites.noisy.files import noisy, table

#: Wider than all rows, so that none is bounded or clipped; no centre is that of the rows.
WIDE: dict[str, Any] = {
    "a": {"lower": -10, "upper": 150, "spread": 60},
    "b": {"lower": -9, "upper": 11, "spread": 6},
    "y": (-60, 90),
}


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mechanism, "draw_noise", lambda count, epsilon, delta: [0] * count)


@pytest.mark.parametrize("targets", [["y"], ["y", "z", "v"]])
def test_how_rows_are_measured(targets: list[str]) -> None:
    rows = table(50)
    for name in targets[1:]:
        rows = rows.append_column(name, rows["y"])
    bounds = {"a": (0, 100), "b": {"lower": -4, "upper": 4, "spread": 1}, **dict.fromkeys(targets, (-20, 30))}
    measures = measures_of(DataRequest(rows, targets, ["a", "b"]).open(None, True), bounds)
    # Values that lie evenly between the bounds have a deviation of their width over √12.
    assert measures.bounds[0].spread == pytest.approx(100 / math.sqrt(12))
    # A column at one spread each, the ones included, and a tenth more; targets have half of that squared norm.
    assert measures.clip == pytest.approx(1.1 * math.sqrt(3))
    shares = [known.reach**2 for known in measures.bounds[2:]]
    assert shares == pytest.approx([measures.clip**2 / 2 / len(targets)] * len(targets))
    assert measures.norm**2 == pytest.approx(1.5 * measures.clip**2)


def test_noise_on_and_beside_the_diagonal() -> None:
    """A unit of noise in every place is 1/29 of a product on the diagonal, and 1/41 beside it."""
    none, one = (mechanism.noisy_products([[0, 0], [0, 0]], 1.0, 1.0, 1e-6, [units] * 3) for units in (0, 29 * 41))
    assert not none.any()
    assert one[0, 0] == one[1, 1]
    assert one[0, 1] == one[1, 0] == pytest.approx(29 / 41 * one[0, 0])


@pytest.mark.usefixtures("silent")
def test_without_noise_numbers_are_those_of_least_squares(tmp_path: Path) -> None:
    """A noisy and an exact file; rows of the noisy one are rounded to a millionth of their norm."""
    here, there = table(20_000), table(3000, seed=5)
    first = noisy(tmp_path, here, bounds=WIDE, epsilon=50.0)
    model = ps.combine([first, ps.sketch(there, "y", sketch="triangular", site="south")])
    plain = ps.fit(pa.concat_tables([here, there]), "y")
    np.testing.assert_allclose(model.coefficients, plain.coefficients, rtol=1e-4)
    np.testing.assert_allclose(model.intercept, plain.intercept, rtol=1e-3)
    assert model.inferences[0].r_squared == pytest.approx(plain.inferences[0].r_squared, rel=1e-3)
    # Around the truth there are the noise of the rows and that of the promise.
    around_exact = np.diff(model.conf_int(of="exact"), axis=1)[:, 0] / 3.92
    expected = np.hypot(plain.standard_errors, around_exact)
    np.testing.assert_allclose(model.standard_errors, expected, rtol=1e-2)
    assert np.all(expected > 1.05 * around_exact)


@pytest.mark.usefixtures("silent")
def test_noise_of_several_files(tmp_path: Path) -> None:
    files = [
        noisy(tmp_path, table(500, seed), site=f"site {seed}", epsilon=epsilon) for seed, epsilon in ((1, 1), (2, 3))
    ]
    pooled = pool([("one", files[0]), ("two", files[1])], [])
    assert pooled.deviation == pytest.approx(math.hypot(*(summary.promise.noise for summary in files)))
    # The noise of a promise is never the same twice: equal numbers are the same file.
    again = noisy(tmp_path, table(500, 1), site="elsewhere", epsilon=1)
    with pytest.raises(ps.InputError, match="hold the same numbers"):
        pool([("one", files[0]), ("again", again)], [])


@pytest.mark.usefixtures("silent")
def test_the_interval_of_the_relative_loss(tmp_path: Path) -> None:
    """A weighted sum of squares over a mean square of 2 (loss / deviation)² degrees of freedom, drawn with other seeds.

    400,000 draws against 16,384: ends at 2.5% and 97.5% are known to 0.12 points of probability, five of them here.
    """
    pooled = pool([("one", noisy(tmp_path, table(20_000), epsilon=50.0))], [])
    regression = NoisyRegression(pooled, ("a", "b"), ("y",), with_ones=True)
    fit = fit_noisy_products(pooled.products, regression.lines, regression.target_line("y"), pooled.deviation)
    certificate = certify(regression, "y", fit)
    below = 2 * (fit.minimal_loss / fit.loss_deviation) ** 2
    assert 10 < below < 1e6
    draw = np.random.default_rng(4)
    shares = draw.normal(size=(400_000, 3)) ** 2 @ fit.excess_weights / fit.minimal_loss
    shares /= draw.chisquare(below, 400_000) / below
    # Half the degrees of freedom would move the ends by less than the draws show.
    assert certificate.relative_confidence == excess_distribution(fit.excess_weights / fit.minimal_loss, below)
    low, high = certificate.relative_confidence.interval(0.95)
    assert np.mean(shares < low) == pytest.approx(0.025, abs=0.006)
    assert np.mean(shares > high) == pytest.approx(0.025, abs=0.006)


@pytest.mark.parametrize(("place", "columns"), [(0, 3), (1, 6), (2, 12)])
def test_how_wide_intervals_of_clipped_rows_are(place: int, columns: int) -> None:
    """The numbers of docs/privacy.md, which are rounded to a tenth; 200,000 rows know them to 0.02 points.

    Normal features within four spreads: σ²G⁻¹ is stated, and the variance is σ²G⁻¹(Σw⁴xxᵀ)G⁻¹.
    """
    values = np.random.default_rng(1).normal(size=(200_000, columns - 1)).clip(-4, 4)
    names = [f"x{number}" for number in range(columns - 1)]
    rows = pa.table({name: [0.0] for name in [*names, "y"]})
    bounds = {name: {"lower": -4, "upper": 4, "spread": 1} for name in [*names, "y"]}
    clip = measures_of(DataRequest(rows, "y").open(None, True), bounds).clip
    x = np.column_stack([np.ones(len(values)), values])
    squares = np.minimum(1.0, clip / np.linalg.norm(x, axis=1)) ** 2
    inverse = np.linalg.inv((x.T * squares) @ x)
    shares = np.diagonal(inverse @ ((x.T * squares**2) @ x) @ inverse) / np.diagonal(inverse)
    covered = 100 * np.array([math.erf(1.96 / math.sqrt(2 * share)) for share in shares])
    page = (Path(__file__).parents[3] / "docs" / "privacy.md").read_text()
    told = re.search(r"that makes ([\d., and]+) with 3, 6 and 12 columns .*? \(([\d., and]+) for slopes alone\)", page)
    assert told is not None
    stated = [float(re.findall(r"\d+\.\d", numbers)[place]) for numbers in told.groups()]
    assert stated == pytest.approx([covered.mean(), covered[1:].mean()], abs=0.08)
