"""Fit a real data set with sketches of its partitions, and exactly, and see what the sketch costs.

The data set ships with scikit-learn: 442 diabetes patients, ten measurements, disease progression after a year.
"""

from __future__ import annotations

import time

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_diabetes

import partsketch as ps

METHODS = {
    "exact": "least squares on all rows",
    "average": "exact fits of 4 partitions, averaged",
    "partition": "fits on a sketch of each partition, averaged",
    "stack": "one fit on the same sketches, stacked",
    "whole": "fits on 4 sketches of all rows, averaged",
}


def main() -> None:
    data = load_diabetes()
    X, y = data.data, data.target
    # Loads the compiled kernels, so that the times below are of the fits alone.
    for method in ("exact", "partition"):
        ps.SketchedRegression(method, n_partitions=4, random_state=1).fit(X, y)
    models, seconds = {}, {}
    for method in METHODS:
        started = time.perf_counter()
        models[method] = ps.SketchedRegression(method, n_partitions=4, random_state=1).fit(X, y)
        seconds[method] = time.perf_counter() - started

    exact, sketched = models["exact"], models["partition"]
    coefficients = Table(title=f"Diabetes: {X.shape[0]} rows, 4 sketches of {sketched.sketch_size_} rows")
    coefficients.add_column("coefficient")
    coefficients.add_column("partition sketch", justify="right")
    coefficients.add_column("exact", justify="right")
    coefficients.add_row("(intercept)", f"{sketched.intercept_:.1f}", f"{exact.intercept_:.1f}")
    for name, sketched_value, exact_value in zip(data.feature_names, sketched.coef_, exact.coef_, strict=True):
        coefficients.add_row(name, f"{sketched_value:.1f}", f"{exact_value:.1f}")

    losses = Table(title="What each method loses against exact least squares, and its time")
    for heading in ("method", "what it does"):
        losses.add_column(heading)
    for heading in ("excess loss", "of the minimal loss", "milliseconds"):
        losses.add_column(heading, justify="right")
    minimal = float(np.sum((y - exact.predict(X)) ** 2))
    for method, model in models.items():
        excess = float(np.sum((model.predict(X) - exact.predict(X)) ** 2))
        milliseconds = f"{1000 * seconds[method]:.1f}"
        losses.add_row(method, METHODS[method], f"{excess:,.0f}", f"{excess / minimal:.2%}", milliseconds)

    console = Console(width=120, highlight=False)
    console.print(coefficients)
    console.print(losses)
    if seconds["exact"] <= seconds["partition"]:
        console.print(
            "Exact least squares was quicker than the sketch, as on most data that one machine can read. Sketch when\n"
            "rows may not leave their partitions, or when one small sketch has to serve many regressions."
        )


if __name__ == "__main__":
    main()
