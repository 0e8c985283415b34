"""`partsketch.apply_sketch`: the product of a sketching matrix with data, as an array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.engines.base import using_engine
from partsketch.fitting.data_request import DataRequest
from partsketch.sites.options import SketchOptions
from partsketch.sites.sketch import sketch_source
from partsketch.sketches.base import get_sketch, usual_size


def apply_sketch(
    X: Any,
    kind: str = "gaussian",
    sketch_size: int | None = None,
    random_state: Any = None,
    *,
    features: list[str] | None = None,
    engine: Any = "local",
) -> NDArray[np.float64]:
    """Multiply data with a random sketching matrix: S @ X, without S ever being in memory.

    Parameters
    ----------
    X
        An array, a SciPy sparse matrix, a data frame, paths of files, or whatever else `partsketch.fit` takes. It is
        read in blocks.
    kind
        Kind of sketch: "gaussian", "orthogonal", "srht", "sparse_sign", "count_sketch", "row_sample",
        "leverage_sample", or one of another package.
    sketch_size
        The number m of rows of S; None takes four per column of X.
    random_state
        Seed. S depends on it, on the kind, on m and on the numbers of the rows alone; so the same seed gives the same S
        for other columns of the same rows. (Those of "orthogonal" and "leverage_sample" depend on X too.)
    features
        Names of the columns; None takes all that are numbers.
    engine
        As in `partsketch.fit`.

    Returns
    -------
    array of shape (m, columns)
        The sketch, scaled so that SᵀS is the identity in the mean.

    Examples
    --------
    >>> import numpy as np, partsketch as ps
    >>> X = np.random.default_rng(0).standard_normal((1000, 3))
    >>> Z = ps.apply_sketch(X, "count_sketch", sketch_size=50, random_state=1)
    >>> Z.shape
    (50, 3)
    >>> S = ps.apply_sketch(np.eye(1000), "count_sketch", sketch_size=50, random_state=1)
    >>> bool(np.allclose(S @ X, Z))
    True
    """
    get_sketch(kind, exact=False, asked_as="kind")
    request = DataRequest(X, None, features)
    with using_engine(engine, X) as runner:
        source = request.open(None, False, runner)
        size = usual_size(len(source.feature_names)) if sketch_size is None else sketch_size
        options = SketchOptions.made_of(random_state, sketch=kind, sketch_size=size, fit_intercept=False)
        (summary,) = sketch_source(source, options, runner).summaries
    return np.array(summary.matrix)
