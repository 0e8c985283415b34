"""An attack: is a planted row in? Exact files and sketches tell; files with a promise tell no more than it allows."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import partsketch as ps
from partsketch.engines.local import LocalEngine
from partsketch.fitting.data_request import DataRequest
from partsketch.sites.noisy.bounds import measures_of
from partsketch.sites.noisy.mechanism import SENSITIVITY, draw_noise, noisy_products
from partsketch.sites.noisy.products import sum_products
from partsketch.summaries.noisy_summary import BESIDE_DIAGONAL, ON_DIAGONAL, unit_of_steps
from partsketch.theory.gaussian_mechanism import gaussian_scale
from tests.sites.noisy.files import BOUNDS, seeded_noise, table

FloatArray = NDArray[np.float64]

EPSILON, FILES = 1.0, 2000
#: The diagonal and what is above it: the numbers of a file.
UPPER = np.triu_indices(4)
#: As far from the others as bounds and clipping leave it; what it is in a file without bounds is another matter.
OUTLIER = {"a": 50 + 10 * math.sqrt(1.1**2 * 3 - 1), "b": 0.0, "y": 30.0}


def rows(with_outlier: bool, values: dict[str, float] = OUTLIER) -> pa.Table:
    before = table(300)
    return pa.concat_tables([before, pa.table({k: [v] for k, v in values.items()})]) if with_outlier else before


def gram(values: pa.Table) -> np.ndarray:
    matrix = np.column_stack([np.ones(len(values)), *(values[name].to_numpy() for name in ("a", "b", "y"))])
    return np.asarray(matrix.T @ matrix)


def test_an_exact_file_tells() -> None:
    """Whoever knows the other rows sees it without doubt: the sums of both tables differ by far more than rounding."""
    known = [gram(rows(False)), gram(rows(True))]
    for truth in (False, True):
        matrix = ps.sketch(rows(truth), "y", sketch="triangular").matrix
        away = [np.abs(matrix.T @ matrix - candidate).max() for candidate in known]
        assert int(np.argmin(away)) == truth
        assert min(away) < 1e-6 * max(away)


def test_a_sketch_tells_of_a_row_of_high_leverage() -> None:
    """The likelihood ratio of 60 rows of a secret sketch is right in 60 of 60 files, half of them with the row."""
    far = {"a": 2e4, "b": 0.0, "y": 2e3}
    known = [gram(rows(False, far)), gram(rows(True, far))]
    roots = [np.linalg.cholesky(candidate) for candidate in known]
    logs = [2 * np.log(np.diagonal(root)).sum() for root in roots]
    right = 0
    for number in range(60):
        truth = bool(number % 2)
        matrix = ps.sketch(rows(truth, far), "y", private=True, sketch_size=60).matrix
        inside = [float(np.sum(np.linalg.solve(root, matrix.T) ** 2)) for root in roots]
        likelihoods = [-60 * (square + log) / 2 for square, log in zip(inside, logs, strict=True)]
        right += (likelihoods[1] > likelihoods[0]) == truth
    assert right == 60


def whole_numbers() -> tuple[list[list[list[int]]], float]:
    """Return the sums of both tables, in whole steps, and the norm of their rows."""
    sums = []
    for truth in (False, True):
        source = DataRequest(rows(truth), "y").open(None, True)
        measures = measures_of(source, BOUNDS)
        sums.append(sum_products(source, measures, LocalEngine(1)).sums)
    return sums, measures.norm


def scores_of(delta: float, share: int = 1) -> tuple[FloatArray, FloatArray]:
    """Return log-likelihood ratios of files without the row and of files with it, `FILES` of each, ε = `EPSILON`.

    They are those of somebody who knows both tables and the law that the promise takes, and sees the numbers of the
    files. With a `share` of 2 the noise is half of that law, and drawn with seeds.
    """
    sums, norm = whole_numbers()
    weights = np.where(np.eye(4, dtype=bool), ON_DIAGONAL, BESIDE_DIAGONAL)[UPPER]
    clean = [noisy_products(known, norm, EPSILON, delta, [0] * 10)[UPPER] * weights for known in sums]
    deviation = gaussian_scale(EPSILON, delta) * SENSITIVITY * unit_of_steps(norm, 4) ** 2
    direction, middle = clean[1] - clean[0], (clean[1] + clean[0]) / 2
    # The row is as far from the others as a row can be: the sensitivity is not only a bound.
    assert 0.99 * deviation < np.linalg.norm(direction) * gaussian_scale(EPSILON, delta) <= deviation * (1 + 1e-12)
    found = []
    for seed, known in enumerate(sums):
        count = FILES * 10
        drawn = draw_noise(count, EPSILON, delta) if share == 1 else seeded_noise(count, EPSILON, delta, seed) // share
        noise = np.reshape(np.array(drawn, dtype=object), (FILES, 10))
        files = np.stack([noisy_products(known, norm, EPSILON, delta, list(line))[UPPER] for line in noise])
        found.append((files * weights - middle) @ direction / deviation**2)
    return found[0], found[1]


def told_too_much(without: FloatArray, within: FloatArray, delta: float) -> bool:
    """Whether more files are flagged than e^ε times the false alarms, and δ, allow, by more than chance explains.

    Of all tests the one that flags likelihood ratios above e^ε comes closest to the bound, for either question: whether
    the row is in, and whether it is not. With less noise than promised it is one that flags smaller ratios. Chance
    exceeds 5.5 standard errors once in eight million of these six.
    """
    odds = math.exp(EPSILON)
    pairs = [
        pair
        for limit in (EPSILON, EPSILON / 2, EPSILON / 4)
        for pair in ((within > limit, without > limit), (without < -limit, within < -limit))
    ]
    for flagged, other in pairs:
        error = math.sqrt((flagged.var() + odds**2 * other.var() + (1 + odds**2) / FILES) / FILES)
        if flagged.mean() - odds * other.mean() > delta + 5.5 * error:
            return True
    return False


@pytest.mark.parametrize("delta", [1e-6, 0.01])
def test_a_file_with_a_promise_tells_no_more_than_it_allows(delta: float) -> None:
    """The best test there is, on 2,000 files with the row and 2,000 without."""
    without, within = scores_of(delta)
    assert not told_too_much(without, within, delta)
    # And it is the best test: its means are as far apart as the law says, to six standard errors.
    power = 1 / gaussian_scale(EPSILON, delta) ** 2
    assert within.mean() - without.mean() == pytest.approx(power, abs=6 * math.sqrt(2 * power / FILES))


def test_the_same_attack_sees_through_half_of_the_noise() -> None:
    """With δ = 0.01 half of the noise flags 15% more than e^ε times the false alarms: seven standard errors."""
    assert told_too_much(*scores_of(0.01, share=2), 0.01)
