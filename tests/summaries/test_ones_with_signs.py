"""Files of kinds that add rows with random signs: their column of ones tells how many rows there are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import partsketch as ps
from partsketch.common.errors import InputError
from partsketch.common.sign_sums import SignSums, may_be_ones, most_in_one_place
from partsketch.sketches.accumulator import Columns, Stream, dense_rows
from partsketch.sketches.base import SketchSpecification, get_sketch
from partsketch.summaries.file import load

KINDS = ["srht", "sparse_sign", "count_sketch"]


def _sum_of_ones(kind: str, rows: int, size: int, seed: int) -> float:
    """Return the sum of squares of sketched ones."""
    specification = SketchSpecification(kind, size, seed)
    accumulator = get_sketch(kind).accumulator(specification, Stream(0, 0, rows), Columns(1, 0, False))
    accumulator.add_rows(dense_rows(np.ones((rows, 1))))
    return float(np.sum(accumulator.finish() ** 2))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rows", "size"), [(1, 1), (3, 2), (40, 8), (300, 8), (600, 30), (5000, 84)])
def test_honest_sums_are_refused_no_more_often_than_the_bound_says(kind: str, rows: int, size: int) -> None:
    # 400 draws: a law that holds refuses 4 of them on average at most, more than 14 in 4e-5 of all runs.
    law = get_sketch(kind).sign_sums(size, min(8, size) if kind == "sparse_sign" else None, rows, rows)
    assert law is not None
    refused = sum(not may_be_ones(_sum_of_ones(kind, rows, size, seed), rows, law, 0.01) for seed in range(400))
    assert refused <= 14
    # A chi-square law of twenty times as many degrees of freedom is wrong where there are enough rows, and seen to be.
    if rows == 5000:
        wrong = SignSums(law.share / 20, law.arguments, law.spread)
        assert sum(not may_be_ones(_sum_of_ones(kind, rows, size, seed), rows, wrong, 0.01) for seed in range(400)) > 14


def test_fullest_place_is_seldom_fuller() -> None:
    # 2,000 draws of 50 places: at a risk of 1% 20 on average at most, more than 45 in 1e-6 of all runs.
    rng = np.random.default_rng(0)
    for rows in (20, 500, 20_000):
        most = most_in_one_place(rows, 1 / 50, 50, 0.01)
        assert np.sum(rng.multinomial(rows, [1 / 50] * 50, size=2000).max(axis=1) > most) <= 45
        assert most < rows


@pytest.mark.parametrize("kind", KINDS)
def test_a_forged_count_is_refused(kind: str, tmp_path: Path) -> None:
    values = np.random.default_rng(1).normal(size=(4000, 3))
    honest = ps.sketch(values, site="a", sketch=kind, sketch_size=60, random_state=2)
    path = tmp_path / "a.psk"
    honest.save(path)
    assert load(path) == honest
    for factor in (20, 1000, 10**9):
        count = 4000 * factor
        part = replace(honest.parts[0], stop=count)
        for parts in ((part,), (replace(part, start=None, stop=None, contiguous=False),)):
            if kind == "srht" and parts[0].stop is None:
                continue  # how many positions it has is not told
            # Whoever writes a file by other means is refused when it is read: tests/summaries/test_file_rules.py.
            with pytest.raises(InputError, match=f"column of ones is not that of {count} rows"):
                replace(honest, row_count=count, weight_sum=float(count), parts=parts).save(path)
    few = replace(honest.parts[0], stop=400)
    with pytest.raises(InputError, match="column of ones is not that of 400 rows"):
        replace(honest, row_count=400, weight_sum=400.0, parts=(few,)).save(path)


@pytest.mark.parametrize("kind", KINDS)
def test_partitions_and_dropped_rows_are_honest(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=(3000, 3))
    values[rng.random(3000) < 0.4, 1] = np.nan
    for by in ("order", "shuffle"):
        many = ps.sketch(
            values,
            site="a",
            sketch=kind,
            sketch_size=16,
            n_partitions=7,
            partition_by=by,
            missing="drop",
            random_state=5,
        )
        for number, summary in enumerate(many):
            summary.save(tmp_path / f"{by}-{number}.psk")
            assert load(tmp_path / f"{by}-{number}.psk") == summary
