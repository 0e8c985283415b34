"""Intervals of coefficients where noise is about as large as what the rows tell: by inverted tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from partsketch.common.special import chdtrc
from partsketch.model.kept_intervals import LEVELS, KeptIntervals
from partsketch.sites.noisy.doubts import is_close
from partsketch.theory.noisy_products import NoisyFit
from partsketch.theory.noisy_tests import noisy_tests

if TYPE_CHECKING:
    from partsketch.sites.noisy.judgement import NoisyRegression

FloatArray = NDArray[np.float64]

#: Ends of more coefficients would take minutes; that an interval has no ends is known without work.
_MOST_COLUMNS = 64


def inverted_intervals(
    regression: NoisyRegression, name: str, fit: NoisyFit, coefficients: FloatArray
) -> KeptIntervals | None:
    """Return intervals of the true coefficients, where noise is close to what the features tell; else None."""
    if not is_close(fit):
        return None
    pooled = regression.pooled
    matrix = regression.transformation(name, around_centre=False)
    # Lines of one length: columns have units of any size.
    lengths = np.linalg.norm(matrix, axis=1)
    tests = noisy_tests(
        pooled.products,
        regression.lines,
        regression.target_line(name),
        pooled.deviation,
        matrix / lengths[:, None],
        regression.noise_variance(fit),
    )
    limit = tests.at_infinity
    if len(matrix) > _MOST_COLUMNS and chdtrc(1, limit) < 1 - LEVELS[0]:
        return None
    shift = np.zeros(len(matrix))
    if regression.with_ones:
        shift[0] = pooled.centre[regression.places([name])[0] - 1]
    found = tests.intervals(LEVELS) * lengths[:, None] + shift[:, None]
    unbounded = ~np.isfinite(found)
    p_values = np.ones(len(matrix))
    if chdtrc(1, limit) < 1 - LEVELS[0]:
        # What is not rejected at infinity leaves no value out: zero is no exception.
        p_values = np.asarray(chdtrc(1, np.minimum(tests.statistics(-shift / lengths), limit)))
    return KeptIntervals(
        p_values, LEVELS, np.where(unbounded, coefficients[:, None], found), unbounded.astype(np.float64)
    )
