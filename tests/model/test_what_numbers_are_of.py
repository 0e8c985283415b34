"""R² and intervals say what they are of."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import partsketch as ps

_RNG = np.random.default_rng(0)
ROWS = pd.DataFrame({"a": _RNG.normal(size=100) + 3, "t": _RNG.choice(list("xyz"), 100)})
ROWS["y"] = 10 + ROWS["a"] + _RNG.normal(size=100)


def _plain(text: object) -> str:
    return " ".join(str(text).split())


def test_without_an_intercept_r_squared_is_around_zero_and_says_so(tmp_path: Path) -> None:
    # The same fit twice: 0.44 of the variation around the mean, 0.99 of that around zero.
    around_zero, around_mean = ps.fit(ROWS, "y ~ a + C(t) - 1"), ps.fit(ROWS, "y ~ a + C(t)")
    residuals = ROWS["y"].to_numpy() - around_mean.predict(ROWS).ravel()
    squares = residuals @ residuals
    assert around_zero.r_squared[0] == pytest.approx(1 - squares / (ROWS["y"] ** 2).sum(), rel=1e-12)
    assert around_mean.r_squared[0] == pytest.approx(1 - squares / (len(ROWS) * ROWS["y"].var(ddof=0)), rel=1e-12)
    assert "R-squared around zero: 0.99" in _plain(around_zero.summary())
    assert "R-squared: 0.4" in _plain(around_mean.summary())
    table = _plain(ps.table([around_zero, around_mean]))
    assert f"R² {around_zero.r_squared[0]:.4f} around zero {around_mean.r_squared[0]:.4f}" in table
    summaries = ps.summarise(ROWS[["a", "y"]], n_partitions=2, partition_by="order")
    assert "R-squared around zero" in _plain(summaries.fit("y", ["a"], intercept=False).summary())
    assert "R-squared within" in _plain(summaries.fit("y", ["a"], intercept="partition").summary())
    around_zero.report(tmp_path / "page.html")
    assert "R² around zero" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore::partsketch.PartsketchWarning")
def test_intervals_of_aliased_columns_are_not_for_the_true_coefficients() -> None:
    # y = 3x: least norm gives 1.5 and 0.75, and their intervals leave 3 and 0 out.
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({"x": rng.normal(size=200), "z": rng.normal(size=200)})
    rows = rows.assign(twice=2 * rows["x"], nothing=0.0, same=5.0, y=3 * rows["x"] + rng.normal(size=200))
    _, high = ps.fit(rows, "y", ["x", "z", "twice"]).conf_int()[1]
    assert high < 3
    told = "do not tell the coefficients of 'x' and 'twice' apart"
    assert told in _plain(ps.fit(rows, "y", ["x", "z", "twice"]).summary())
    assert "apart" not in _plain(ps.fit(rows, "y", ["x", "z", "nothing", "same"]).summary())
    dummies = rows.assign(even=np.arange(200) % 2, odd=(np.arange(200) + 1) % 2)
    assert "of the intercept, 'even' and 'odd' apart" in _plain(ps.fit(dummies, "y", ["z", "even", "odd"]).summary())


def test_a_test_of_aliased_columns_says_that_it_is_of_the_least_norm() -> None:
    x, z, e = np.random.default_rng(0).normal(size=(3, 200))
    rows = np.column_stack([x, z, z, x + z + e])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ps.fit(rows, target="x3", method="exact")
    # Whether x2 is x1, or differs from it by less than its digits, is not known.
    assert model.certificate.sentence.endswith("loses nothing beyond what rounding hides of aliased columns.")
    with pytest.warns(ps.PartsketchWarning, match="coefficients of 'x1' and 'x2' apart, and the test is on 'x1'"):
        model.test("x1 = 1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.test("x0 = 1")


def test_a_loss_below_what_sketches_show_is_no_negative_share(tmp_path: Path) -> None:
    """The estimate is unbiased, so it may be below zero; what is lost is not."""
    rng = np.random.default_rng(3)
    sites = [
        pd.DataFrame(rng.normal(size=(count, 3)), columns=list("abc")).assign(site=site)
        for site, count in enumerate((100, 100, 100, 100, 100, 2000))
    ]
    rows = pd.concat(sites).assign(y=lambda t: t.a + t.b + t.c + rng.normal(size=2500))
    asked: dict[str, Any] = {"method": "partition", "partition_by": "site", "sketch_size": 20}
    fits = (ps.fit(rows, "y", list("abc"), random_state=seed, **asked) for seed in range(100))
    model = next(fit for fit in fits if (fit.certificate.relative_excess_loss or 0) < 0)
    assert "Excess loss: less than the sketches can show (estimated)" in _plain(model.summary())
    model.report(tmp_path / "page.html")
    assert "less than the sketches can show (estimated)" in (tmp_path / "page.html").read_text(encoding="utf-8")
