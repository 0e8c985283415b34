"""Files with a promise, made of drawn rows by the code of the product; only the noise is drawn here.

Noise is normal and rounded to whole numbers, of the size that the promise takes, and thousands of times quicker than
OpenDP's; that OpenDP's has this law is tested in tests/sites/noisy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks.privacy.designs import Design
from benchmarks.problem import FloatArray
from partsketch.engines.local import LocalEngine
from partsketch.fitting.data_request import DataRequest
from partsketch.model.model import Model
from partsketch.sites.noisy.bounds import Measures, measures_of
from partsketch.sites.noisy.combine import combine_noisy
from partsketch.sites.noisy.mechanism import SENSITIVITY, noisy_products
from partsketch.sites.noisy.products import sum_products
from partsketch.summaries.noisy_summary import NoisySummary, Promise, noise_of
from partsketch.summaries.provenance import About
from partsketch.summaries.tasks import INTERCEPT
from partsketch.theory.gaussian_mechanism import gaussian_scale

DELTA = 1e-6


@dataclass(frozen=True, eq=False)
class Rows:
    """One table as a site measures it.

    Attributes
    ----------
    truth
        The true coefficients, the intercept first.
    sums
        Of products in whole steps.
    clean
        The same in the measure of the rows, without noise.
    unit, centre
        What columns but the ones are divided by, after `centre` was taken off.
    plain
        Sums of products of the rows as they are, the target last.
    """

    truth: FloatArray
    measures: Measures
    sums: list[list[int]]
    clean: FloatArray
    unit: FloatArray
    centre: FloatArray
    plain: FloatArray

    @property
    def columns(self) -> int:
        """Columns but the target, the ones counted."""
        return len(self.truth)

    def files(self, rng: np.random.Generator, epsilon: float, count: int) -> Iterator[Model]:
        """Yield what `combine` makes of so many files."""
        size, places = self.columns + 1, (self.columns + 1) * (self.columns + 2) // 2
        deviation = gaussian_scale(epsilon, DELTA) * SENSITIVITY
        promise = Promise(
            epsilon, DELTA, self.measures.clip, self.measures.norm, noise_of(epsilon, DELTA, self.measures.norm, size)
        )
        names = (INTERCEPT, *(f"x{number}" for number in range(self.columns - 1)), "y")
        about = About(("y",), private=True, rows_dropped=None)
        for drawn in np.rint(deviation * rng.normal(size=(count, places))):
            noise = [int(value) for value in drawn]
            products = noisy_products(self.sums, self.measures.norm, epsilon, DELTA, noise)
            summary = NoisySummary(products, names, self.measures.bounds, promise, "site", "", "0" * 32, about)
            yield combine_noisy([("file", summary)], []).model

    def excess(self, model: Model) -> tuple[float, float]:
        """Return what a model loses on the rows as they were clipped, and that as a share of the minimal loss."""
        square = float(self.unit[-1]) ** 2
        slopes = model.coefficients[:, 0] * self.unit[:-1] / self.unit[-1]
        at_centre = (model.level[0] - self.centre[-1]) / self.unit[-1]
        away = np.append(at_centre, slopes) - self.best
        lost = float(away @ self.clean[:-1, :-1] @ away)
        return lost * square, lost / self.minimal_loss

    @property
    def best(self) -> FloatArray:
        """Least squares on the rows as they were clipped, without noise."""
        return np.asarray(np.linalg.solve(self.clean[:-1, :-1], self.clean[:-1, -1]))

    @property
    def minimal_loss(self) -> float:
        """What it leaves."""
        return float(self.clean[-1, -1] - self.clean[:-1, -1] @ self.best)


def rows_of(design: Design, rng: np.random.Generator, count: int, columns: int) -> Rows:
    """Draw a table, and sum its products as a site does."""
    x, y, truth = design.draw(rng, count, columns)
    table = pa.table({**{f"x{number}": column for number, column in enumerate(x.T)}, "y": y})
    source = DataRequest(table, "y").open(None, True)
    measures = measures_of(source, design.bounds(columns))
    sums = sum_products(source, measures, LocalEngine(1)).sums
    places = (columns + 1) * (columns + 2) // 2
    whole = np.column_stack([np.ones(count), x, y])
    return Rows(
        truth,
        measures,
        sums,
        noisy_products(sums, measures.norm, 1.0, DELTA, [0] * places),
        np.array([known.spread / known.factor for known in measures.bounds]),
        np.array([known.centre for known in measures.bounds]),
        whole.T @ whole,
    )
