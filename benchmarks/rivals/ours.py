"""partsketch, through its public front and, for the bare sketch, one step below it."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from benchmarks.problem import TARGET, Arrays, FloatArray


def fit_estimator(arrays: Arrays, route: str = "auto") -> FloatArray:
    """SketchedRegression("exact", route=route).fit(X, y)."""
    from partsketch import SketchedRegression

    model = SketchedRegression("exact", route=route).fit(arrays.X, arrays.y)
    return np.concatenate([[model.intercept_], model.coef_])


def as_one_array(arrays: Arrays) -> Arrays:
    """Put the target beside the features, as partsketch.fit expects it of an array."""
    return Arrays(np.column_stack([arrays.X, arrays.y]), arrays.y)


def fit_function(arrays: Arrays) -> FloatArray:
    """partsketch.fit(array, target=last column, method="exact")."""
    import partsketch

    model = partsketch.fit(arrays.X, target=f"x{arrays.X.shape[1] - 1}", method="exact")
    return np.concatenate([model.intercept, model.coefficients[:, 0]])


def fit_parquet(path: Path) -> FloatArray:
    """partsketch.fit(path, target=..., method="exact")."""
    import partsketch

    model = partsketch.fit(str(path), target=TARGET, method="exact")
    return np.concatenate([model.intercept, model.coefficients[:, 0]])


def fit_sketched(arrays: Arrays, kind: str, partitions: int, size: int) -> FloatArray:
    """SketchedRegression("partition") with a kind of sketch."""
    from partsketch import SketchedRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small sketches rightly warn
        model = SketchedRegression(
            "partition", n_partitions=partitions, sketch=kind, sketch_size=size, random_state=0
        ).fit(arrays.X, arrays.y)
    return np.concatenate([[model.intercept_], model.coef_])


def sketch_estimator(arrays: Arrays, size: int, partitions: int) -> FloatArray:
    """SketchedRegression("partition"): sketches X and y, solves, averages."""
    from partsketch import SketchedRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # m = d + 2 rightly warns of heavy tails
        model = SketchedRegression(
            "partition", n_partitions=partitions, sketch_size=size, fit_intercept=False, random_state=0
        ).fit(arrays.X, arrays.y)
    return model.summaries_[0].matrix[:, :-1] if partitions == 1 else np.zeros((0, 0))


def sketch_bare(arrays: Arrays, size: int, kind: str = "gaussian") -> FloatArray:
    """One sketch of X alone through source, engine and merge: what the other contestants compute."""
    from partsketch import LocalEngine
    from partsketch.engines.gather import gather
    from partsketch.sketches.base import SketchSpecification
    from partsketch.sources.memory.arrays import array_source
    from partsketch.summaries.partitions import single_partition
    from partsketch.summaries.tasks import SummaryRequest

    rows = len(arrays.X)
    request = SummaryRequest(SketchSpecification(kind, size, 0), single_partition(rows), False, 1, rows)
    return gather(array_source(arrays.X, None), request, LocalEngine()).summaries[0].matrix
