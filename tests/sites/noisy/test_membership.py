"""An attack: is a planted row in? Exact files and sketches tell; files with a promise tell no more than it allows."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom, norm

import partsketch as ps
from partsketch.engines.local import LocalEngine
from partsketch.fitting.data_request import DataRequest
from partsketch.sites.noisy.bounds import measures_of
from partsketch.sites.noisy.mechanism import SENSITIVITY, draw_noise
from partsketch.sites.noisy.products import sum_products
from partsketch.summaries.noisy_summary import BESIDE_DIAGONAL, ON_DIAGONAL
from partsketch.theory.gaussian_mechanism import gaussian_scale
from tests.sites.noisy.files import BOUNDS, table

EPSILON, DELTA, FILES = 1.0, 1e-6, 2000
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


@pytest.mark.slow
def test_a_file_with_a_promise_tells_no_more_than_it_allows() -> None:
    """The best test there is, the likelihood ratio, on 2,000 files, at every threshold.

    Of the files with the row it may flag at most e^ε times the share of those without, and δ; a one-sided binomial
    bound at 1e-6 leaves room for chance. That it is the best test is seen from its power: the distance of its means.
    """
    sums = []
    for truth in (False, True):
        source = DataRequest(rows(truth), "y").open(None, True)
        found = sum_products(source, measures_of(source, BOUNDS), LocalEngine(1)).sums
        weights = [(i, j, ON_DIAGONAL if i == j else BESIDE_DIAGONAL) for i in range(4) for j in range(i, 4)]
        sums.append([weight * found[i][j] for i, j, weight in weights])
    direction = np.array([after - before for before, after in zip(*sums, strict=True)], dtype=np.float64)
    length = float(np.linalg.norm(direction))
    assert 0.99 * SENSITIVITY < length <= SENSITIVITY
    noise = np.array(draw_noise(FILES * 10, EPSILON, DELTA), dtype=np.float64).reshape(FILES, 10)
    # Along the direction of the row, from where the table without it is; this is monotone in the likelihood ratio.
    scores = noise @ direction / length / length
    without, within = scores[: FILES // 2], scores[FILES // 2 :] + 1.0
    scale = gaussian_scale(EPSILON, DELTA)
    # Means are 1 apart, each known to σ/√1000: five standard errors of the difference.
    assert within.mean() - without.mean() == pytest.approx(1.0, abs=5 * scale * math.sqrt(2 / 1000))
    for threshold in np.quantile(scores, np.linspace(0.02, 0.98, 25)):
        for flagged, other in ((within > threshold, without > threshold), (without <= threshold, within <= threshold)):
            most = _upper(int(other.sum()), len(other))
            allowed = min(1.0, math.exp(EPSILON) * most + DELTA)
            assert binom.sf(int(flagged.sum()) - 1, len(flagged), allowed) > 1e-6
    # With a seventh of the noise, as a wrong sensitivity would leave, the same test sees through.
    weak = norm.sf(norm.isf(0.05) - 7 / scale)
    assert weak > math.exp(EPSILON) * 0.05


def _upper(count: int, files: int) -> float:
    """An upper bound at 1e-6 for a share of which so many were seen."""
    from scipy.stats import beta

    return float(beta.ppf(1 - 1e-6, count + 1, files - count)) if count < files else 1.0
