"""Every random stream is what its description says, bit for bit where only signs and places are drawn.

Whoever changes these numbers changes every fit that anybody has recorded by its seed.
"""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest

from partsketch.sketches.base import SketchSpecification
from partsketch.sketches.random import PURPOSES
from partsketch.sketches.srht import srht_sampled_rows, srht_signs
from partsketch.sources import DenseBlock
from partsketch.summaries.partitions import Partitioning
from partsketch.summaries.provenance import site_seed
from tests.fitting.fits import quiet
from tests.sketches import plain_random as plain
from tests.sketches.drawing import FloatArray, matrix_of, sketched

#: Both halves of a seed count.
SEED = 2**63 + 98_765_432_101
STREAM = 6


def test_purposes_have_the_numbers_they_always_had() -> None:
    assert tuple(sorted(PURPOSES, key=lambda name: PURPOSES[name])) == plain.PURPOSES
    assert sorted(PURPOSES.values()) == list(range(9))


@pytest.mark.parametrize("count", [2, 3, 64])
def test_shuffled_partitions(count: int) -> None:
    rows = np.array([0, 1, 2, 3, 65_535, 65_536, 2**32 - 1, 2**32, 2**40 + 7, *range(100, 180)])
    block = DenseBlock(rows, np.zeros((rows.size, 1)), np.zeros((rows.size, 1)))
    names = tuple(str(i) for i in range(count))
    expected = [plain.shuffled_partition(SEED, int(row), count) for row in rows]
    assert Partitioning(names, shuffle_seed=SEED).assign(block).tolist() == expected


def test_signs_of_the_hadamard_transform() -> None:
    key = plain.key_of(SEED, "srht")
    expected = [1 - 2 * (plain.shared_word(key, STREAM, row) % 2) for row in range(61)]
    assert srht_signs(61, SEED, STREAM).tolist() == expected


@pytest.mark.parametrize(
    ("rows", "size"), [(20, 8), (20, 30), (20, 32), (1, 1), (16, 7), (64, 60), (1000, 3), (70_000, 40)]
)
def test_rows_of_the_hadamard_matrix(rows: int, size: int) -> None:
    padded = 1
    while padded < rows:
        padded *= 2
    assert srht_sampled_rows(rows, size, SEED, STREAM).tolist() == plain.hadamard_rows(SEED, STREAM, size, padded)


@pytest.mark.parametrize("held", ["dense", "sparse", "tile"])
@pytest.mark.parametrize(("kind", "size", "sparsity"), [
    ("gaussian", 9, None), ("srht", 20, None), ("srht", 1, None), ("count_sketch", 11, None), ("sparse_sign", 12, 8),
    ("sparse_sign", 12, 3), ("sparse_sign", 5, 5), ("sparse_sign", 9, 1), ("row_sample", 10, None),
])  # fmt: skip
def test_sketches_of_the_identity(kind: str, size: int, sparsity: int | None, held: str) -> None:
    """1e-12 where normals are made by polynomials; the others have one division by a square root each."""
    rows = list(range(37))
    expected = {
        "gaussian": lambda: plain.gaussian(size, SEED, STREAM, rows),
        "srht": lambda: plain.srht(size, SEED, STREAM, rows, 64),
        "count_sketch": lambda: plain.count_sketch(size, SEED, STREAM, rows),
        "sparse_sign": lambda: plain.sparse_sign(size, SEED, STREAM, rows, sparsity or 8),
        "row_sample": lambda: plain.row_sample(size, SEED, STREAM, rows),
    }[kind]()
    specification = SketchSpecification(kind, size, SEED, sparsity)
    # The last column of what is sketched is a target, the first of the result the ones: both are zero or known.
    A = np.concatenate([np.eye(37), np.zeros((37, 1))], axis=1)
    got = sketched(A, specification, held, stream=STREAM)
    np.testing.assert_allclose(got[:, 1:-1], expected, rtol=1e-12 if kind == "gaussian" else 3e-16, atol=1e-15)
    np.testing.assert_allclose(got[:, 0], expected.sum(axis=1), atol=1e-12)


@pytest.mark.parametrize("columns", [3, 20])
def test_sampling_by_leverage(columns: int) -> None:
    """Below and above the sixteen directions that rows are projected on."""
    draw = np.random.default_rng(columns)
    A = draw.standard_t(2, size=(150, columns))
    specification = SketchSpecification("leverage_sample", 12, SEED)
    got = sketched(A, specification, stream=STREAM)
    design = np.column_stack([np.ones(150), A[:, :-1]])
    expected = plain.leverage_sample(12, SEED, STREAM, design) @ np.column_stack([design, A[:, -1]])
    # Scores go through a singular value decomposition: a few roundings of numbers near one.
    np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_rows_of_many_words_and_far_away_rows() -> None:
    rows = [3, 2**32 - 2, 2**32 + 5, 2**40 + 1]
    A = np.concatenate([np.eye(4), np.zeros((4, 1))], axis=1)
    for kind, expected in (
        ("gaussian", plain.gaussian(6, SEED, STREAM, rows)),
        ("count_sketch", plain.count_sketch(6, SEED, STREAM, rows)),
        ("sparse_sign", plain.sparse_sign(6, SEED, STREAM, rows, 6)),
    ):
        specification = SketchSpecification(kind, 6, SEED)
        got = sketched(A, specification, stream=STREAM, row_numbers=np.array(rows))
        np.testing.assert_allclose(got[:, 1:-1], expected, rtol=1e-12, atol=1e-15)


def problem() -> tuple[FloatArray, FloatArray, FloatArray]:
    draw = np.random.default_rng(4)
    X = draw.normal(size=(90, 2))
    return X, X.sum(axis=1) + draw.normal(size=90), draw.uniform(0.5, 2.0, 90)


@pytest.mark.parametrize("kind", ["gaussian", "srht", "count_sketch", "sparse_sign", "row_sample"])
@pytest.mark.parametrize("method", ["partition", "whole"])
def test_which_stream_and_which_row_numbers_a_fit_uses(kind: str, method: str) -> None:
    """Partitions are streams, sketches of the whole are streams; rows are numbered through, positions by partition."""
    X, y, weights = problem()
    model = quiet(method, n_partitions=3, sketch=kind, sketch_size=16, random_state=SEED)(X, y, weights)
    A = np.column_stack([np.ones(90), X, y]) * np.sqrt(weights)[:, None]
    for number, summary in enumerate(model.summaries_):
        first, count = (30 * number, 30) if method == "partition" else (0, 90)
        rows = list(range(first, first + count))
        if kind == "srht":
            S = plain.srht(16, SEED, number, list(range(count)), 32 if count == 30 else 128)
        elif kind == "sparse_sign":
            S = plain.sparse_sign(16, SEED, number, rows, 8)
        else:
            S = getattr(plain, kind)(16, SEED, number, rows)
        np.testing.assert_allclose(summary.matrix, S @ A[rows], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("method", ["partition", "whole"])
def test_orthogonal_sketches_are_drawn_from_the_factor(method: str) -> None:
    """From the factor with a positive diagonal; the numbers agree but for the rounding of the factor."""
    X, y, weights = problem()
    asked = {"n_partitions": 3, "random_state": SEED}
    model = quiet(method, sketch="orthogonal", sketch_size=16, **asked)(X, y, weights)
    A = np.column_stack([np.ones(90), X, y]) * np.sqrt(weights)[:, None]
    for number, summary in enumerate(model.summaries_):
        first, count = (30 * number, 30) if method == "partition" else (0, 90)
        factor = np.linalg.cholesky(A[first : first + count].T @ A[first : first + count]).T
        expected = plain.orthogonal(16, SEED, number, factor, count)
        np.testing.assert_allclose(summary.matrix, expected, rtol=1e-9, atol=1e-9)


def test_matrix_of_is_the_sketch_of_the_identity() -> None:
    got = matrix_of(SketchSpecification("gaussian", 5, 3), 7)
    np.testing.assert_allclose(got, plain.gaussian(5, 3, 0, list(range(7))), rtol=1e-12)


def test_seeds_of_sites() -> None:
    for seed, site, label in ((7, "north", ""), (2**64 - 1, "", "monday"), (0, "å", "b")):
        text = json.dumps(["partsketch site seed", seed, site, label]).encode()
        assert site_seed(seed, site, label) == int.from_bytes(hashlib.sha256(text).digest()[:8], "little")
    assert site_seed(7, "", "") == 7
