"""What the estimators estimate, and how far off they are on average: explicit fits against the exact formulas.

Every simulation repeats fits through the public interface with the seeds 0, 1, 2, …; the data are fixed. A mean over B
fits is compared with its expectation to within four standard errors, s/√B with s the standard deviation of the draws.
Sketches have at least ten rows more than columns, so that the loss has a finite variance.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
from numpy.typing import NDArray

from partsketch import LocalEngine, PartsketchWarning, SketchedRegression
from partsketch.engines.base import Engine, Outcomes, TaskOutcome
from partsketch.sources import Source
from partsketch.summaries.summarise import summarise_rows
from partsketch.summaries.tasks import PassRequest, Task

FloatArray = NDArray[np.float64]

pytestmark = pytest.mark.usefixtures("few_draws")


class InThisThread(Engine):
    """The smallest engine there is: thousands of small fits need no pool of threads."""

    name = "in this thread"

    def run(
        self, source: Source, request: PassRequest, tasks: Sequence[Task], deadline: float | None = None
    ) -> Outcomes:
        for number, task in enumerate(tasks):
            yield TaskOutcome((number,), summarise_rows(source, request, task, 50_000))


ENGINE = InThisThread()


@dataclass
class Design:
    """Rows cut into k consecutive partitions, with the intercept as the first column if there is one."""

    X: FloatArray
    y: FloatArray
    k: int
    intercept: bool = False

    @property
    def full(self) -> FloatArray:
        return np.column_stack([np.ones(len(self.X)), self.X]) if self.intercept else self.X

    def parts(self) -> list[tuple[FloatArray, FloatArray]]:
        cuts = np.array_split(np.arange(len(self.X)), self.k)
        return [(self.full[cut], self.y[cut]) for cut in cuts]

    def model(self, method: str, seed: int, size: int, engine: object = ENGINE) -> SketchedRegression:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PartsketchWarning)
            return SketchedRegression(
                method,
                n_partitions=self.k,
                sketch_size=size,
                fit_intercept=self.intercept,
                random_state=seed,
                engine=engine,
            ).fit(self.X, self.y)

    def fit(self, method: str, seed: int, size: int) -> FloatArray:
        return self.coefficients(self.model(method, seed, size))

    def coefficients(self, model: SketchedRegression) -> FloatArray:
        return np.array([model.intercept_, *model.coef_] if self.intercept else model.coef_, dtype=np.float64)

    @cached_property
    def best(self) -> FloatArray:
        return inverse(self.full, self.intercept) @ self.full.T @ self.y

    def excess(self, coefficients: FloatArray) -> float:
        return float(np.sum((self.full @ (coefficients - self.best)) ** 2))


def inverse(X: FloatArray, intercept: bool) -> FloatArray:
    """The generalised inverse of XᵀX that belongs to least norm, the intercept not counted in the norm."""
    if not intercept:
        return np.asarray(np.linalg.pinv(X.T @ X, rcond=1e-10, hermitian=True))
    pseudo = np.linalg.pinv(X.T @ X, rcond=1e-10, hermitian=True)
    # Project along the null space: N (N without its first row)⁺ takes out what adds norm and no fit.
    null = np.linalg.svd(X, full_matrices=False)[2][np.linalg.matrix_rank(X) :].T
    projection = np.eye(X.shape[1])
    projection[:, 1:] -= null @ np.linalg.pinv(null[1:])
    return np.asarray(projection @ pseudo @ projection.T)


def loss(X: FloatArray, y: FloatArray) -> float:
    return float(np.sum((y - X @ (np.linalg.pinv(X, rcond=1e-10) @ y)) ** 2))


def partition_excess(design: Design, size: int) -> float:
    """Σ w_i² tr(G G_i⁻) ℓ_i / (m − r_i − 1) + ‖X(ᾱ − a*)‖² with w_i = 1/k."""
    gram = design.full.T @ design.full
    total = 0.0
    average = np.zeros(design.full.shape[1])
    for X, y in design.parts():
        root = inverse(X, design.intercept)
        rank = int(np.linalg.matrix_rank(X))
        total += float(np.trace(gram @ root)) * loss(X, y) / (size - rank - 1) / design.k**2
        average += root @ X.T @ y / design.k
    return total + design.excess(average)


def whole_excess(design: Design, size: int) -> float:
    """ℓ r / (k (m − r − 1))."""
    rank = int(np.linalg.matrix_rank(design.full))
    return loss(design.full, design.y) * rank / (size - rank - 1) / design.k


def alike(intercept: bool = False) -> Design:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(403, 4))
    return Design(X, X @ [1.0, -1.0, 2.0, 0.5] + generator.normal(size=403), k=4, intercept=intercept)


def unlike() -> Design:
    """Partitions of other scales and shapes, and a target that is not linear: no noise model at all."""
    generator = np.random.default_rng(1)
    X = generator.normal(size=(300, 3)) * np.repeat([1.0, 3.0, 0.3], 100)[:, None]
    X[:100, 1] += 2 * X[:100, 0]
    return Design(X, np.abs(X[:, 0]) + X[:, 1] ** 2, k=3)


def singular(intercept: bool = False) -> Design:
    """Sparse columns: some are zero in some partitions, so that the ranks are 5, 4 and 3 of 5."""
    generator = np.random.default_rng(2)
    X = generator.normal(size=(240, 5))
    X[80:160, 4] = 0.0
    X[160:, 3] = 0.0
    X[160:, 2] = X[160:, 1]
    return Design(X, X.sum(axis=1) + generator.normal(size=240), k=3, intercept=intercept)


DESIGNS = {
    "alike": alike(),
    "alike with intercept": alike(intercept=True),
    "unlike": unlike(),
    "singular": singular(),
    "singular with intercept": singular(intercept=True),
}


def assert_mean(draws: FloatArray, expected: float, slack: float = 0.0) -> None:
    error = draws.std(ddof=1) / np.sqrt(len(draws))
    assert abs(draws.mean() - expected) < 4 * error + slack


def assert_independent(draws: FloatArray) -> None:
    """Errors of two partitions' coefficients, and of following seeds, are uncorrelated: the standard error is 1/√B."""
    correlations = np.array(np.corrcoef(draws.T))
    allowed = 4.5 / np.sqrt(len(draws))
    assert np.abs(correlations[np.triu_indices(draws.shape[1], 1)]).max() < allowed
    assert abs(np.array(np.corrcoef(draws[1:, 0], draws[:-1, 0]))[0, 1]) < allowed


@pytest.mark.parametrize("name", DESIGNS)
def test_partition_sketch_is_unbiased_and_as_far_off_as_predicted(name: str) -> None:
    """B = 120 fits, m = 20: mean coefficients against ᾱ, mean excess loss against the formula; and independence."""
    design, size = DESIGNS[name], 20
    models = [design.model("partition", seed, size) for seed in range(120)]
    assert_independent(np.array([model.partition_coef_[:, 0] for model in models]))
    fits = np.array([design.coefficients(model) for model in models])
    average = np.mean([inverse(X, design.intercept) @ X.T @ y for X, y in design.parts()], axis=0)
    for draws, expected in zip(fits.T, average, strict=True):
        assert_mean(draws, expected)
    expected = partition_excess(design, size)
    draws = np.array([design.excess(fit) for fit in fits])
    assert_mean(draws, expected)
    # The test has teeth: the mean is known to an eighth or better.
    assert draws.std(ddof=1) / np.sqrt(len(draws)) < 0.125 * expected


@pytest.mark.parametrize("name", ["alike", "singular"])
def test_whole_sketch_is_as_far_off_as_predicted(name: str) -> None:
    """B = 120 fits, m = 20."""
    design, size = DESIGNS[name], 20
    draws = np.array([design.excess(design.fit("whole", seed, size)) for seed in range(120)])
    assert_mean(draws, whole_excess(design, size))


def test_stacked_sketch_is_as_far_off_as_predicted() -> None:
    """B = 120 fits, Σm = 80: ℓ r/(Σm − r − 1) is approximate, and a few per cent low; 5% are allowed for that."""
    design = DESIGNS["alike"]
    draws = np.array([design.excess(design.fit("stack", seed, 20)) for seed in range(120)])
    rank = 4
    expected = loss(design.full, design.y) * rank / (80 - rank - 1)
    assert_mean(draws, expected, slack=0.05 * expected)


@pytest.mark.parametrize("name", DESIGNS)
def test_average_is_the_average_of_the_exact_fits(name: str) -> None:
    design = DESIGNS[name]
    average = np.mean([inverse(X, design.intercept) @ X.T @ y for X, y in design.parts()], axis=0)
    np.testing.assert_allclose(design.fit("average", 0, 20), average, rtol=0, atol=1e-10)


def test_an_engine_of_ones_own_gives_the_same_bits() -> None:
    for method in ("exact", "average", "partition", "stack", "whole"):
        own, local = (DESIGNS["unlike"].model(method, 7, 20, engine) for engine in (ENGINE, LocalEngine(2, 17)))
        assert own.summaries_ == local.summaries_
        assert own.coef_.tobytes() == local.coef_.tobytes()


def test_larger_sketches_approach_the_exact_fit() -> None:
    """ℓ r/(m − r − 1) at m = 20,000 is a five-thousandth of the loss; ten times that would be a fault."""
    design = DESIGNS["alike"]
    assert design.excess(design.fit("whole", 0, 20_000)) < 10 * whole_excess(design, 20_000)
