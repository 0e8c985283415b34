"""Traces of products of pairs of matrices: as if they were all written out."""

from __future__ import annotations

import numpy as np
import pytest

from partsketch.theory.gram_pairs import GramPairs


@pytest.mark.parametrize("count", [1, 3, 6, 7, 40], ids="{} matrices".format)
@pytest.mark.parametrize("near_zero", [False, True])
def test_as_written_out(count: int, near_zero: bool) -> None:
    """Of 3 × 3 matrices T has rank 6 at most: more than six of them are solved in another way."""
    generator = np.random.default_rng(count)
    roots = generator.normal(size=(count, 5, 3))
    grams = roots.transpose(0, 2, 1) @ roots
    written = np.array([[np.trace(first @ second) for second in grams] for first in grams])
    diagonal = generator.uniform(1.0, 3.0, count) * np.where(np.arange(count) % 5 == 4, -1.0, 1.0)
    if near_zero:
        diagonal[0] = 1e-9
    pairs, vector = GramPairs(grams), generator.normal(size=count)
    np.testing.assert_allclose(pairs.times(vector), written @ vector, rtol=1e-12, atol=1e-12 * written.max())
    np.testing.assert_allclose(pairs.diagonal, np.diagonal(written), rtol=1e-13)
    solution = pairs.solve(diagonal, vector)
    # The residual of a backward stable solver; Woodbury's loses as many digits as the diagonal spans, here half of one.
    size = np.linalg.norm(written, 2) * np.linalg.norm(solution) + np.linalg.norm(vector)
    assert np.linalg.norm((written + np.diag(diagonal)) @ solution - vector) < 1e-12 * size
