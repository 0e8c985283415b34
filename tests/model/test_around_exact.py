"""Intervals and tests for the answer of exact least squares: they cover it, whatever the data."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.typing import NDArray
from scipy.stats import f as f_law

import partsketch as ps
from partsketch.cli import run
from partsketch.theory import (
    CoefficientCovariance,
    RowSample,
    confidence_intervals,
    partition_covariance_around_exact,
    sampled_covariance_around_exact,
    stacked_covariance_around_exact,
    stacked_fit,
    whole_covariance_around_exact,
)
from partsketch.theory.sketch_moments import moments_of_parts
from tests.theory.designs import read_all

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Iterable[tuple[Array, CoefficientCovariance, Array]]]
COLUMNS = 4


def fitted(X: Array, y: Array) -> Array:
    return np.asarray(np.linalg.lstsq(X, y, rcond=None)[0], dtype=np.float64)


def odd_rows(rows: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Rows that no noise model fits: squared terms, noise without a variance, and one huge row."""
    X = rng.normal(size=(rows, COLUMNS))
    X[:, 1], X[0] = X[:, 0] ** 2, 50 * X[0]
    y = X @ np.arange(1.0, COLUMNS + 1) + rng.standard_t(2, size=rows) + X[:, 2] ** 2
    return X, y, fitted(X, y)


def whole_draw(kind: str, sketches: int, size: int, rows: int) -> Draw:
    X, y, answer = odd_rows(rows, np.random.default_rng(3))

    def one(rng: np.random.Generator) -> Array:
        sketch = rng.normal(size=(size, rows)) / np.sqrt(size)
        if kind == "orthogonal":
            sketch = np.linalg.qr(sketch.T)[0].T * np.sqrt(rows / size)
        return np.asarray(sketch @ np.column_stack([X, y]))

    def draw(rng: np.random.Generator, draws: int) -> Iterable[tuple[Array, CoefficientCovariance, Array]]:
        for made in read_all([[one(rng) for _ in range(sketches)] for _ in range(draws)]):
            fits = np.mean([part.solution for part in made], axis=0)
            yield fits, whole_covariance_around_exact(made, rows, kind), answer

    return draw


def partitions(design: str, rng: np.random.Generator) -> list[Array]:
    """Six partitions that differ in nothing, in size, in scale, in noise or in coefficients."""
    tables = []
    for number in range(6):
        rows = (100, 100, 100, 100, 100, 1500)[number] if design == "sizes" else 200
        X = rng.normal(size=(rows, COLUMNS)) * ((1, 3, 1, 1, 0.3, 1)[number] if design == "scales" else 1)
        slopes = np.arange(1.0, COLUMNS + 1) + (rng.normal(size=COLUMNS) if design == "coefficients" else 0)
        noise = (0.2, 0.5, 1, 1, 2, 4)[number] if design == "noise" else 1
        tables.append(np.column_stack([X, X @ slopes + noise * rng.normal(size=rows)]))
    return tables


def partition_draw(design: str, method: str, size: int) -> Draw:
    fixed = partitions(design, np.random.default_rng(4))

    counts = [len(table) for table in fixed]

    def one(rng: np.random.Generator) -> tuple[Array, list[Array]]:
        # Stacked fits are judged given the rows, averaged ones over their noise too.
        tables = fixed if method == "stack" else partitions(design, rng)
        rows = np.vstack(tables)
        sketches = [rng.normal(size=(size, len(table))) / np.sqrt(size) @ table for table in tables]
        return fitted(rows[:, :-1], rows[:, -1]), sketches

    def draw(rng: np.random.Generator, draws: int) -> Iterable[tuple[Array, CoefficientCovariance, Array]]:
        answers, sketches = zip(*(one(rng) for _ in range(draws)), strict=True)
        for answer, made in zip(answers, read_all(sketches), strict=True):
            if method == "partition":
                moments = moments_of_parts(made, counts, "gaussian")
                yield moments.coefficients.mean(axis=0), partition_covariance_around_exact(moments), answer
            else:
                fit = stacked_fit(made, counts, weights=None if method == "stack" else size / np.array(counts))
                yield fit.solution, stacked_covariance_around_exact(fit), answer

    return draw


def sampled_draw(samples: int, size: int) -> Draw:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(1000, COLUMNS))
    table = np.column_stack([X, X.sum(axis=1) + rng.normal(size=1000) * (1 + np.abs(X[:, 0]))])
    answer = fitted(X, table[:, -1])

    def draw(rng: np.random.Generator, draws: int) -> Iterable[tuple[Array, CoefficientCovariance, Array]]:
        for _ in range(draws):
            drawn = [table[rng.permutation(1000)[:size]] for _ in range(samples)]
            fits = [np.linalg.lstsq(rows[:, :-1], rows[:, -1], rcond=None)[0] for rows in drawn]
            known = [
                RowSample(rows * np.sqrt(1000 / size), np.full(size, size / 1000), np.zeros(size), COLUMNS)
                for rows in drawn
            ]
            yield np.mean(fits, axis=0), sampled_covariance_around_exact(known), answer

    return draw


def covered(draw: Draw, draws: int, shrink: float = 1.0) -> tuple[float, float]:
    """Return how often 95% intervals hold a coefficient, and 95% ellipsoids all of them."""
    rng = np.random.default_rng(6)
    inside, together = 0, 0
    for fit, known, answer in draw(rng, draws):
        known = CoefficientCovariance(known.matrix * shrink, known.degrees_of_freedom, known.noise_variance)
        ends = confidence_intervals(fit, known)
        inside += int(np.sum((ends[:, 0] <= answer) & (answer <= ends[:, 1])))
        statistic = (fit - answer) @ np.linalg.solve(known.matrix, fit - answer) / COLUMNS
        together += bool(statistic <= f_law.ppf(0.95, COLUMNS, known.degrees_of_freedom))
    return inside / (draws * COLUMNS), together / draws


# A share of 0.95 among 400 draws has a standard error of 1.1 points if the coefficients of a draw went all together,
# among 250, of partitions, which take longer, 1.4. Below, a bound is about three such errors. Above, stacked sketches
# of unlike partitions are on the safe side: what an estimate of unlikeness says below zero is taken for zero, the more
# so the fewer rows a sketch has.
CASES = {
    "whole, one sketch, m = d + 4": (whole_draw("gaussian", 1, 8, 200), 0.03),
    "whole, three sketches": (whole_draw("gaussian", 3, 10, 200), 0.03),
    "orthogonal, m = n/2": (whole_draw("orthogonal", 1, 30, 60), 0.03),
    "orthogonal, two of m = 5n/6": (whole_draw("orthogonal", 2, 50, 60), 0.03),
    "stack, alike": (partition_draw("alike", "stack", 10), 0.03),
    "stack, fewer rows than columns": (partition_draw("alike", "stack", 3), 0.05),
    "stack, sizes": (partition_draw("sizes", "stack", 10), 0.05),
    "stack, noise": (partition_draw("noise", "stack", 10), 0.05),
    "stack, coefficients": (partition_draw("coefficients", "stack", 10), 0.03),
    "weighted stack, sizes": (partition_draw("sizes", "weighted", 10), 0.04),
    "partition, alike": (partition_draw("alike", "partition", 10), 0.03),
    "partition, scales": (partition_draw("scales", "partition", 10), 0.03),
    "row samples": (sampled_draw(1, 150), 0.03),
    "row samples, most rows": (sampled_draw(1, 800), 0.03),
}


@pytest.mark.parametrize("case", CASES)
def test_intervals_cover_exact_least_squares(case: str) -> None:
    draw, more = CASES[case]
    for share in covered(draw, 400 if case.startswith(("whole", "orthogonal", "row")) else 250):
        assert 0.915 < share < 0.95 + more, share


def test_the_simulation_sees_errors_that_are_too_small() -> None:
    # Standard errors of 0.8 times their size cover 88% of the coefficients.
    assert max(covered(whole_draw("gaussian", 1, 20, 200), 250, shrink=0.64)) < 0.915


def test_intervals_of_a_fitted_model_cover_through_all_layers() -> None:
    # 300 fits of 5 coefficients, t₂ noise and a column at a million: as above, now with units, centre and intercept.
    rng = np.random.default_rng(8)
    X, y, _ = odd_rows(150, rng)
    X[:, 3] += 1e6
    exact = ps.SketchedRegression("exact").fit(X, y)
    answer = np.append(exact.intercept_, exact.coef_)
    inside, rejected = 0, 0
    for seed in range(300):
        model = ps.SketchedRegression("whole", n_partitions=2, sketch_size=12, random_state=seed).fit(X, y).model_
        ends = model.conf_int(of="exact")
        inside += int(np.sum((ends[:, 0] <= answer) & (answer <= ends[:, 1])))
        stated = f"x0 = {answer[1]!r}, x2 - {answer[3]!r} = 0".replace("np.float64(", "").replace(")", "")
        rejected += model.test(stated, of="exact").p_value < 0.05
    assert abs(inside / 1500 - 0.95) < 0.04
    assert abs(rejected / 300 - 0.05) < 0.05


def test_what_is_exact_has_no_width_and_nothing_to_test() -> None:
    rng = np.random.default_rng(9)
    X = rng.normal(size=(90, 2))
    y = X @ [1.0, 2.0] + rng.normal(size=90)
    judge = sm.OLS(y, sm.add_constant(X)).fit()
    for method in ("exact", "average"):
        model = ps.SketchedRegression(method, n_partitions=3).fit(X, y).model_
        ends = model.conf_int(of="exact")
        np.testing.assert_allclose(ends, np.column_stack([judge.params] * 2), rtol=1e-9, atol=1e-12)
        assert "no width" in str(model.summary(of="exact"))
        with pytest.raises(ps.InputError, match=r"are known, there is nothing to test: the left sides are \S+\.$"):
            model.test("x0 = 1", of="exact")
    assert "not this average" in str(model.summary(of="exact"))


def test_tests_of_the_truth_are_those_of_statsmodels() -> None:
    rng = np.random.default_rng(10)
    X = rng.normal(size=(60, 3))
    y = X @ [1.0, 2.0, 3.0] + rng.normal(size=60)
    judge = sm.OLS(y, sm.add_constant(X)).fit().f_test("x1 = 1, x2 = 2*x1, x3 + const = 3")
    test = ps.SketchedRegression("exact").fit(X, y).model_.test("x0 = 1, x1 = 2*x0, x2 + (intercept) = 3")
    np.testing.assert_allclose(test.statistic, judge.fvalue, rtol=1e-9)
    np.testing.assert_allclose(test.p_value, judge.pvalue, rtol=1e-9)
    assert test.df == (judge.df_num, judge.df_denom)
    assert "of the true coefficients" in str(test)


def test_what_cannot_be_said_of_the_exact_fit_is_said() -> None:
    rng = np.random.default_rng(11)
    X = rng.normal(size=(3000, 2))
    y = np.where(np.arange(3000) < 1500, 4.0, -4.0) * X[:, 1] + rng.normal(size=3000)
    unlike = ps.SketchedRegression("partition", n_partitions=2, sketch_size=30, random_state=0).fit(X, y)
    with pytest.raises(ps.InputError, match=r"partitions do not share coefficients .* use method='stack'"):
        unlike.conf_int(of="exact")
    assert "partitions do not share coefficients" in str(unlike.summary(of="exact"))
    ridge = ps.SketchedRegression("whole", alpha=1.0, random_state=0).fit(X, y)
    with pytest.raises(ps.InputError, match="says nothing of exact least squares"):
        ridge.conf_int(of="exact")
    with pytest.raises(ps.InputError, match="of is 'all': choose 'truth' or 'exact'"):
        ridge.conf_int(of="all")
    with pytest.raises(ps.InputError, match="kind='spread' goes with of='truth'"):
        unlike.conf_int(kind="spread", of="exact")


def test_an_average_without_a_certificate_says_nothing_of_the_exact_fit() -> None:
    """Twenty sampled rows show too little for a certificate, so nothing was tested; one partition needs no test."""
    rng = np.random.default_rng(17)
    X = rng.normal(size=(600, 3))
    y = X.sum(axis=1) + rng.normal(size=600)
    asked: dict[str, Any] = {"sketch": "row_sample", "sketch_size": 20, "random_state": 1}
    with pytest.warns(ps.PartsketchWarning):
        several = ps.SketchedRegression("partition", n_partitions=3, **asked).fit(X, y)
    single = ps.SketchedRegression("partition", n_partitions=1, sketch_size=20, random_state=1).fit(X, y)
    assert several.certificate_.kind == "unavailable"
    with pytest.raises(ps.InputError, match="was not tested, for the fit has no certificate"):
        several.model_.conf_int(of="exact")
    assert np.all(np.ptp(single.model_.conf_int(of="exact"), axis=1) > 0)


def test_sketches_that_hold_all_rows_leave_no_width() -> None:
    rng = np.random.default_rng(12)
    X = rng.normal(size=(64, 2))
    y = X @ [1.0, 2.0] + rng.normal(size=64)
    model = ps.SketchedRegression("whole", n_partitions=1, sketch="srht", sketch_size=64, random_state=0).fit(X, y)
    exact = ps.SketchedRegression("exact").fit(X, y)
    np.testing.assert_allclose(model.conf_int(of="exact"), exact.conf_int(of="exact"), rtol=1e-9, atol=1e-12)


def test_tables_files_and_commands_say_what_intervals_are_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(13)
    x = rng.normal(size=300)
    pq.write_table(pa.table({"x": x, "y": 2 * x + rng.normal(size=300)}), tmp_path / "rows.parquet")
    common = ["fit", str(tmp_path / "rows.parquet"), "-t", "y", "--method", "whole", "--seed", "1", "--no-compare"]
    said: dict[str, Any] = {}
    for of, words in (("truth", "the true coefficients"), ("exact", "the coefficients of exact least squares")):
        assert run([*common, "--summary", "--intervals-of", of, "--model", str(tmp_path / "model.json")]) == 0
        assert f"95% intervals are for {words}." in capsys.readouterr().out
        assert run([*common, "--summary", "--intervals-of", of, "--json"]) == 0
        said[of] = json.loads(capsys.readouterr().out)["summary"]
        assert said[of]["intervals_of"] == of
    again = ps.load(tmp_path / "model.json")
    rows = [[row["lower"], row["upper"]] for row in said["exact"]["coefficients"]]
    assert np.array_equal(again.conf_int(of="exact"), rows)
    assert said["truth"]["coefficients"] != said["exact"]["coefficients"]
    assert again.test("x = 2", of="exact").df == (1, 8 * ((again.record.sketch_size or 0) - 2))


@pytest.mark.parametrize("partitions", [1, 3])
def test_averages_of_columns_that_nearly_determine_one_another(partitions: int) -> None:
    """The sum of squared factors has no digits left, or no inverse: the factors have them."""
    rng = np.random.default_rng(8)
    plain = [np.column_stack([rng.normal(size=(20, 2)), rng.normal(size=20)]) for _ in range(partitions)]
    # A power of two: the change of columns is exact but for the last of 53 - 30 digits, 1e-7.
    gap = 2.0**-30
    near = [np.column_stack([rows[:, 0], rows[:, 0] + gap * rows[:, 1], rows[:, 2]]) for rows in plain]
    # b x + c (x + gap z) has the slopes b + c of x and gap c of z.
    back = np.array([[1, -1 / gap], [0, 1 / gap]])
    of_plain, of_near = (
        partition_covariance_around_exact(moments_of_parts(parts, [200] * partitions, "gaussian"))
        for parts in read_all([plain, near])
    )
    expected = back @ of_plain.matrix @ back.T
    np.testing.assert_allclose(of_near.matrix, expected, rtol=1e-6)
