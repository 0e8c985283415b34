"""Files with a promise combined, with one another and with exact ones: what fits together, and what intervals cover."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partsketch as ps
from partsketch import InputError, PartsketchWarning
from partsketch.engines.local import LocalEngine
from partsketch.fitting.data_request import DataRequest
from partsketch.sites.noisy import mechanism
from partsketch.sites.noisy.bounds import measures_of
from partsketch.sites.noisy.mechanism import noisy_products
from partsketch.sites.noisy.products import sum_products
from tests.sites.noisy.files import BOUNDS, TRUTH, noisy, seeded_noise, table


@pytest.fixture(scope="module")
def north(tmp_path_factory: pytest.TempPathFactory) -> ps.NoisySummary:
    """Of so large an ε that the loss has 31 ± 1 standard deviations of its noise: warnings begin at 8."""
    return noisy(tmp_path_factory.mktemp("north"), table(20_000), epsilon=20.0)


def exact() -> ps.Summary:
    return ps.sketch(table(20_000, seed=5), "y", sketch="triangular", site="south")


def test_exact_files_beside_make_it_more_certain(north: ps.NoisySummary) -> None:
    alone, both = ps.combine(north), ps.combine([north, exact()])
    assert np.all(both.standard_errors < 0.8 * alone.standard_errors)
    assert np.all(np.abs(both.coefficients[:, 0] - TRUTH) < 5 * both.standard_errors[1:])
    assert [part.name for part in both.record.partitions] == ["north", "south"]


def test_two_promises_add_up(tmp_path: Path, north: ps.NoisySummary) -> None:
    other = noisy(tmp_path, table(20_000, seed=4), site="west", epsilon=10.0)
    model = ps.combine([north, other])
    swapped = ps.combine([other, north])
    np.testing.assert_array_equal(model.coefficients, swapped.coefficients)
    assert {entry["epsilon"] for entry in model.record.options["files"]} == {20.0, 10.0}


def test_without_an_intercept_columns_are_as_they_are(tmp_path: Path) -> None:
    """Against least squares on the rows without ones, by the stated errors around it."""
    rows = table(50_000)
    model = ps.combine(noisy(tmp_path, rows, epsilon=20.0), fit_intercept=False)
    plain = ps.fit(rows, "y", fit_intercept=False)
    errors = np.diff(model.conf_int(of="exact"), axis=1)[:, 0] / 3.92
    assert np.all(np.abs(model.coefficients[:, 0] - plain.coefficients[:, 0]) < 5 * errors + 0.01)


def test_another_target_is_said_to_have_been_clipped_by(north: ps.NoisySummary) -> None:
    with pytest.warns(PartsketchWarning, match="Rows were clipped by their values of 'b'"):
        ps.combine(north, "b", ["a"])


def test_what_noise_drowns_is_not_stated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise of 198 on the diagonal and eigenvalues from 35: below 1.645 times the noise no interval has ends."""
    monkeypatch.setattr(mechanism, "draw_noise", lambda count, epsilon, delta: [0] * count)
    with pytest.warns(PartsketchWarning, match="as large as"):
        model = ps.combine(noisy(tmp_path, table(60), epsilon=0.1))
    assert model.certificate.kind == "unavailable"
    for errors in ("standard_errors", "t_values"):
        with pytest.raises(InputError, match="more rows, fewer columns or a larger epsilon"):
            getattr(model, errors)
    with pytest.raises(InputError, match="There are no standard errors"):
        model.test("a = 0")
    np.testing.assert_array_equal(model.conf_int(), [[-np.inf, np.inf]] * 3)
    assert (model.p_values == 1).all()
    assert "From -inf to inf: the noise leaves nothing known" in str(model.summary())
    model.save(tmp_path / "model.json")
    loaded = ps.load(tmp_path / "model.json")
    assert loaded.certificate.kind == "unavailable"
    np.testing.assert_array_equal(loaded.conf_int(), model.conf_int())
    loaded.report(tmp_path / "page.html")
    assert "nan" not in (tmp_path / "page.html").read_text().partition("<table")[2].partition("</table")[0]


def test_intervals_where_noise_is_nearly_as_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise the fit is least squares, and intervals lie around it: at ε = 0.3 without errors, at 0.7 with them.

    No two columns have the same place or unit, and the target is not centred: ends of the intercept are shifted by it.
    """
    monkeypatch.setattr(mechanism, "draw_noise", lambda count, epsilon, delta: [0] * count)
    rows = table(300)
    plain = ps.fit(rows, "y")
    truth = np.append(plain.intercept, plain.coefficients[:, 0])
    widths = []
    for epsilon in (0.3, 0.7):
        with pytest.warns(PartsketchWarning, match="noise of the promise"):
            model = ps.combine(noisy(tmp_path, rows, epsilon=epsilon, label=str(epsilon)))
        assert (model.inferences[0].standard_errors is None) == (epsilon == 0.3)
        assert model.inferences[0].inverted is not None
        low, high = model.conf_int().T
        assert np.isfinite([low, high]).all()
        assert np.all((low < truth) & (truth < high))
        widths.append(high - low)
        # A coefficient is told from zero where its interval leaves zero out.
        np.testing.assert_array_equal(model.p_values < 0.05, (low > 0) | (high < 0))
        assert np.all(model.conf_int(0.99) @ [-1, 1] > high - low)
        with pytest.raises(InputError, match=r"kept at 0\.9, 0\.95, 0\.99"):
            model.conf_int(0.8)
    assert np.all(widths[0] > 1.5 * widths[1])
    # A target that lies elsewhere moves the intercept, and nothing else; rows are rounded to a millionth of their norm.
    moved = rows.set_column(2, "y", [np.asarray(rows["y"]) + 1000])
    bounds = BOUNDS | {"y": {"lower": 980, "upper": 1030, "spread": 4}}
    with pytest.warns(PartsketchWarning, match="noise of the promise"):
        far = ps.combine(noisy(tmp_path, moved, epsilon=0.7, bounds=bounds, label="far"))
    np.testing.assert_allclose(far.conf_int(), np.add(model.conf_int(), [[1000], [0], [0]]), atol=1e-3)
    # Near the limit of laws to first order both are close.
    errors = model.standard_errors
    np.testing.assert_allclose(widths[1] / (2 * 1.96 * errors), 1.0, atol=0.35)


def test_what_may_have_passed_by_luck_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise the signal is known: 300 rows at ε = 0.7 are just above the limit of 3, at ε = 1 well above."""
    monkeypatch.setattr(mechanism, "draw_noise", lambda count, epsilon, delta: [0] * count)
    with pytest.warns(PartsketchWarning, match="by luck of its noise"):
        near = ps.combine(noisy(tmp_path, table(300), epsilon=0.7))
    assert near.inferences[0].standard_errors is not None
    assert not ps.combine(noisy(tmp_path, table(300), label="far")).record.warnings


def test_a_share_that_may_be_told_by_luck_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise the minimal loss grows: with 3,000, 4,600 and 6,000 rows it has 4.6, 7.1 and 9.1 deviations."""
    monkeypatch.setattr(mechanism, "draw_noise", lambda count, epsilon, delta: [0] * count)
    fewer, more = (ps.combine(noisy(tmp_path, table(rows), epsilon=20.0, site=str(rows))) for rows in (3000, 6000))
    assert fewer.certificate.relative_excess_loss is None
    assert more.certificate.relative_excess_loss is not None
    assert not fewer.record.warnings + more.record.warnings
    with pytest.warns(PartsketchWarning, match="the share is too small"):
        near = ps.combine(noisy(tmp_path, table(4600), epsilon=20.0))
    assert near.certificate.relative_excess_loss is not None


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda north: replace(north, release="1" * 32), "is in twice"),
        (lambda north: replace(north, site="west"), "hold the same numbers"),
        (lambda north: replace(north, site="west", columns=("(intercept)", "b", "a", "y")), "different columns"),
        (lambda north: ps.sketch(table(500), "y", site="west"), "gaussian sketch"),
        (lambda north: ps.sketch(table(500), "y", ["a"], sketch="triangular", site="west"), "different columns"),
        (lambda north: ps.sketch(table(500), "y", sketch="triangular", site="north"), "is in twice"),
    ],
)
def test_files_that_do_not_go_together_are_refused(north: ps.NoisySummary, other: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ps.combine([north, other(north)])


def test_other_bounds_are_refused(tmp_path: Path, north: ps.NoisySummary) -> None:
    other = noisy(tmp_path, table(500), site="west", bounds={**BOUNDS, "b": (-5, 4)})
    with pytest.raises(InputError, match="different bounds of column 'b'"):
        ps.combine([north, other])


@pytest.mark.parametrize("keywords", [{"alpha": 1.0}, {"method": "stack"}, {"averaging": "inverse_variance"}])
def test_what_noisy_files_do_not_offer_is_refused(north: ps.NoisySummary, keywords: Any) -> None:
    with pytest.raises(InputError, match=f"leave {next(iter(keywords))} out"):
        ps.combine(north, **keywords)


def test_other_commands_refuse_them(tmp_path: Path, north: ps.NoisySummary) -> None:
    north.save(tmp_path / "north.psk")
    for read in (ps.read_summaries, ps.Summary.load, ps.refine):
        with pytest.raises(InputError, match="`combine` alone takes it"):
            read(tmp_path / "north.psk")


@pytest.mark.slow
def test_intervals_cover() -> None:
    """1,000 files, the rows drawn 40 times: intervals of 95% for the truth, and for what privacy cost.

    Standard errors: 0.7% for what privacy cost; for the truth, of which 40 × 3 are independent in the rows, up to 1.5%.
    The noise is drawn with seeds, with the law that test_release.py finds in OpenDP's.
    """
    covered, lost = [], []
    for seed in range(40):
        rows = table(3000, seed)
        source = DataRequest(rows, "y").open(None, True)
        measures = measures_of(source, BOUNDS)
        sums = sum_products(source, measures, LocalEngine(1)).sums
        noise = seeded_noise(25 * 10, 1.0, 1e-6, seed).reshape(25, 10)
        clean = noisy_products(sums, measures.norm, 1.0, 1e-6, [0] * 10)
        gram, moments = clean[:3, :3], clean[:3, 3]
        best = np.linalg.solve(gram, moments)
        unit = np.array([known.spread / known.factor for known in measures.bounds])
        for drawn in noise:
            summary = _summary(noisy_products(sums, measures.norm, 1.0, 1e-6, list(drawn)), measures)
            model = ps.combine(summary)
            low, high = model.conf_int()[1:].T
            covered.append((low < TRUTH) & (high > TRUTH))
            level = (model.level[0] - 5) / unit[2]
            found = np.concatenate([[level], model.coefficients[:, 0] * unit[:2] / unit[2]])
            excess = (found - best) @ gram @ (found - best) * unit[2] ** 2
            ends = model.certificate.interval(0.95)
            lost.append(ends[0] < excess < ends[1])
    assert abs(np.mean(covered) - 0.95) < 0.03
    assert abs(np.mean(lost) - 0.95) < 0.025


def _summary(products: Any, measures: Any) -> ps.NoisySummary:
    from partsketch.summaries.noisy_summary import Promise, noise_of
    from partsketch.summaries.provenance import About

    promise = Promise(1.0, 1e-6, measures.clip, measures.norm, noise_of(1.0, 1e-6, measures.norm, 4))
    about = About(("y",), private=True, rows_dropped=None)
    columns = ("(intercept)", "a", "b", "y")
    return ps.NoisySummary(products, columns, measures.bounds, promise, "north", "", "0" * 32, about)
