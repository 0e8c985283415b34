"""The random numbers: published answers of Philox, accuracy of the normals, their law, and their independence."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

from partsketch.sketches.random import (
    derive_key,
    fill_normals,
    negative_logs,
    philox_words,
    random_words,
    sine_cosine,
)

FloatArray = NDArray[np.float64]
WordArray = NDArray[np.uint64]

_MASK = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


def philox(counter: tuple[WordArray, ...], key: tuple[int, int]) -> tuple[WordArray, ...]:
    """Philox4x32-10 written down from the paper of Salmon et al., for arrays."""
    x0, x1, x2, x3 = counter
    key0, key1 = key
    for _ in range(10):
        first = x0 * np.uint64(0xD2511F53)
        second = x2 * np.uint64(0xCD9E8D57)
        x0, x1, x2, x3 = (
            (second >> _SHIFT) ^ x1 ^ np.uint64(key0),
            second & _MASK,
            (first >> _SHIFT) ^ x3 ^ np.uint64(key1),
            first & _MASK,
        )
        key0, key1 = (key0 + 0x9E3779B9) & 0xFFFFFFFF, (key1 + 0xBB67AE85) & 0xFFFFFFFF
    return x0, x1, x2, x3


def normals(seed: int, stream: int, rows: NDArray[np.int64], columns: int, first_column: int = 0) -> FloatArray:
    out = np.empty((columns, rows.size))
    fill_normals(derive_key(seed, "gaussian"), stream, rows, 1.0, out, first_column)
    return out


#: Known answers of Random123's kat_vectors for philox4x32 with ten rounds: counter, key, output.
PUBLISHED = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "answer"), PUBLISHED)
def test_philox_gives_the_published_answers(
    counter: tuple[int, ...], key: tuple[int, int], answer: tuple[int, ...]
) -> None:
    words = philox_words(*(np.uint64(word) for word in counter), *(np.uint64(word) for word in key))
    assert tuple(int(word) for word in words) == answer


def test_normals_are_box_muller_of_philox_words() -> None:
    """Recomputed with NumPy's log, sin and cos from an independent Philox.

    Numbers reach 6.7, and the logarithm and the sine are good to a relative 1e-13.
    """
    seed, stream = 2**63 + 12345, 7
    rows = np.concatenate([np.arange(20_000), 2**32 - 5 + np.arange(10), 2**40 + np.arange(1000)])
    ours = normals(seed, stream, rows, columns=12, first_column=8)
    low, high = seed & 0xFFFFFFFF, seed >> 32
    zero = np.zeros(1, np.uint64)
    key_words = philox((zero, zero, zero, zero), (low, high))
    key = (int(key_words[0][0]), int(key_words[1][0]))
    wide = rows.astype(np.uint64)
    for group in range(3):
        counter = (
            wide & _MASK,
            wide >> _SHIFT,
            np.full(rows.size, 2 + group, np.uint64),
            np.full(rows.size, stream, np.uint64),
        )
        words = [(word.astype(np.float64) + 0.5) / 2.0**32 for word in philox(counter, key)]
        for half in (0, 1):
            radius = np.sqrt(-2.0 * np.log(words[2 * half]))
            angle = 2.0 * np.pi * words[2 * half + 1]
            expected = [radius * np.cos(angle), radius * np.sin(angle)]
            np.testing.assert_allclose(
                ours[4 * group + 2 * half : 4 * group + 2 * half + 2], expected, rtol=0.0, atol=1e-12
            )


def _telling_words() -> list[int]:
    """Ends, powers of two and their neighbours, quadrant borders, and 2,000 words spread evenly and by magnitude."""
    words = {0, 1, 2**32 - 1, 2**32 - 2}
    for power in range(32):
        words |= {2**power - 1, 2**power, min(2**power + 1, 2**32 - 1)}
        words |= {int(2 ** (power + 0.5)) - 1, int(2 ** (power + 0.5)), int(2 ** (power + 0.5)) + 1}
    for eighth in range(8):
        words |= {(eighth * 2**29 - 1) % 2**32, eighth * 2**29, eighth * 2**29 + 1}
    words |= set(np.linspace(0, 2**32 - 1, 1000).astype(int).tolist())
    words |= set(np.geomspace(1, 2**32 - 1, 1000).astype(int).tolist())
    return sorted(words)


def test_logarithm_and_sine_are_good_to_1e_13() -> None:
    words = _telling_words()
    exact = np.array(words, dtype=np.float64) + 0.5
    logs = np.array([negative_logs(np.uint64(word), np.uint64(7))[0] for word in words])
    # log1p near one, where log((word + 1/2)/2³²) is small and its relative error matters.
    reference = np.where(
        exact > 2.0**31, -np.log1p((exact - 2.0**32) / 2.0**32), np.log(2.0) * 32 - np.log(np.maximum(exact, 0.5))
    )
    np.testing.assert_allclose(logs, reference, rtol=1e-13)
    assert logs.min() > 0.0
    pairs = np.array([sine_cosine(np.uint64(word)) for word in words])
    # Reduced in whole numbers, so that the reference does not lose digits to 2π.
    quarters = np.array([(word + 2**29) >> 30 for word in words])
    rest = (exact - quarters * 2.0**30) * (2.0 * np.pi / 2.0**32)
    turn = quarters % 4
    sine = np.choose(turn, [np.sin(rest), np.cos(rest), -np.sin(rest), -np.cos(rest)])
    cosine = np.choose(turn, [np.cos(rest), -np.sin(rest), -np.cos(rest), np.sin(rest)])
    np.testing.assert_allclose(pairs[:, 0], sine, rtol=2e-13, atol=0.0)
    np.testing.assert_allclose(pairs[:, 1], cosine, rtol=2e-13, atol=0.0)


def test_pinned_normals() -> None:
    """Changing these numbers changes every fit that anybody has recorded by its seed: do not."""
    out = normals(20240607, 5, np.array([0, 1, 2**40 + 3]), 8)
    expected = [
        ["0x1.79fad354881d5p-1", "-0x1.002d9baf9ddb8p-1", "-0x1.72e75e0a89e3fp+0"],
        ["0x1.11d2149f233fdp+0", "0x1.1fbb415be5b1bp-4", "-0x1.8aa33940d8410p-1"],
        ["0x1.e1562ddc227ebp-4", "-0x1.fa1b5692c4a62p-1", "-0x1.44d3f11a629b5p+0"],
        ["-0x1.8dbb8e2620250p-1", "0x1.59a66de2ffa57p-2", "-0x1.c6786f4e59933p-1"],
        ["0x1.ad4710cb4dc75p-4", "-0x1.4275719505796p+1", "-0x1.15f3aaad1f6cep-3"],
        ["-0x1.b2b99a01d5895p+0", "-0x1.f5f3dfbd4c7d3p+0", "0x1.fc995fb04c395p-2"],
        ["0x1.49f948b4131e4p-3", "-0x1.4f213d0c49a0dp+0", "0x1.310b9e9d9e474p-4"],
        ["0x1.e5fcd9ac16ffap-1", "-0x1.2bad1c5e12c94p+0", "-0x1.eb64569b51036p-1"],
    ]
    assert [[value.hex() for value in row] for row in out.tolist()] == expected
    words = random_words(derive_key(0, "shuffle"), 0, np.arange(3))
    assert words.tolist() == [14105575358141838131, 2522076633290192738, 14345215664545203101]


def test_a_number_depends_on_its_place_alone() -> None:
    rows = np.arange(1000)
    everything = normals(3, 2, rows, 16)
    for first_column, first_row in [(4, 0), (8, 17), (12, 999)]:
        part = normals(3, 2, rows[first_row:], 4, first_column)
        assert np.array_equal(part, everything[first_column : first_column + 4, first_row:])
    backwards = normals(3, 2, rows[::-1].copy(), 16)
    assert np.array_equal(backwards[:, ::-1], everything)


def test_law_of_the_normals() -> None:
    """Moments and Kolmogorov–Smirnov on N = 2²² numbers.

    Standard errors of mean, variance, skewness and kurtosis of normal samples are 1, √2, √6, √24 over √N; five of them
    are allowed. The Kolmogorov bound 2.23/√N is exceeded with probability 1e-4.
    """
    sample = normals(1, 0, np.arange(2**19), 8).ravel()
    size = sample.size
    assert abs(sample.mean()) < 5 / np.sqrt(size)
    assert abs(sample.var() - 1) < 5 * np.sqrt(2 / size)
    assert abs((sample**3).mean()) < 5 * np.sqrt(15 / size)
    assert abs((sample**4).mean() - 3) < 5 * np.sqrt(96 / size)
    theirs = special.ndtr(np.sort(sample))
    steps = np.arange(size + 1) / size
    assert max((theirs - steps[:-1]).max(), (steps[1:] - theirs).max()) < 2.23 / np.sqrt(size)
    # The tails reach as far as they should: the largest of N is near 5.1, and 32-bit words end at 6.7.
    assert 4.6 < np.abs(sample).max() < 6.8


def _assert_uncorrelated(samples: list[FloatArray]) -> None:
    """Every pair, plain and squared: correlations of N pairs have standard error 1/√N; six are allowed."""
    for first, second in combinations(samples, 2):
        size = first.size
        for power in (1, 2):
            correlation = np.corrcoef(first**power, second**power)[0, 1]
            assert abs(correlation) < 6 / np.sqrt(size)


def test_sketch_rows_are_independent() -> None:
    """N = 2¹⁷ data rows, 12 sketch rows: all 66 pairs, those made by one counter included."""
    _assert_uncorrelated(list(normals(5, 0, np.arange(2**17), 12)))


def test_data_rows_are_independent() -> None:
    """N = 2¹⁷ pairs at lags 1, 2, 3, 8 and 65536 between data rows."""
    sample = normals(5, 0, np.arange(2**18), 4)[1]
    for lag in (1, 2, 3, 8, 65536):
        _assert_uncorrelated([sample[: 2**17], sample[lag : lag + 2**17]])


def test_streams_seeds_and_far_rows_are_independent() -> None:
    """N = 2¹⁹ numbers from each of: other streams, other seeds (also in the high word), rows beyond 2³²."""
    rows = np.arange(2**17)
    samples = [normals(0, stream, rows, 4).ravel() for stream in (0, 1, 2, 1000)]
    samples += [normals(seed, 0, rows, 4).ravel() for seed in (1, 2, 2**32, 2**63)]
    samples += [normals(0, 0, rows + 2**32, 4).ravel()]
    _assert_uncorrelated(samples)


def test_purposes_have_numbers_of_their_own() -> None:
    keys = {
        tuple(int(word) for word in derive_key(seed, purpose))
        for seed in range(100)
        for purpose in ("gaussian", "shuffle", "a kind of somebody else", "another")
    }
    assert len(keys) == 400


def test_a_name_that_is_not_on_the_list_has_numbers_that_stay() -> None:
    """A known answer: CRC-32 of the name and one evaluation of Philox; a sketch file stands for these numbers."""
    assert [int(word) for word in derive_key(1, "signs")] == [3543770720, 1972155931]
