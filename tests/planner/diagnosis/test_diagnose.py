"""Diagnosis: what it finds is what the rows have, in one pass, and its advice follows from it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import partsketch as ps
from partsketch import InputError, theory
from partsketch.cli import run
from partsketch.fitting.options import FitOptions
from partsketch.planner.diagnosis.api import diagnose_source
from partsketch.sources.base import Source
from partsketch.sources.memory.arrays import array_source
from partsketch.sources.wrapper import SourceWrapper
from partsketch.summaries.partitions import Partitioning


def test_house_has_rows_of_extreme_occupancy(house: Any) -> None:
    for count in (5, 8):
        found = ps.diagnose(house, "MedHouseVal", n_partitions=count)
        extreme = house["AveOccup"].nlargest(4).index.tolist()
        named = [row.row for row in found.influential_rows if row.column == "AveOccup"]
        assert set(extreme) <= set(named)
        assert named[0] == int(house["AveOccup"].idxmax())
        assert any("AveOccup" in sentence and "Drop them" in sentence for sentence in found.advice)
        assert any("Stack" in sentence for sentence in found.advice)


def test_house_agrees_with_the_reference_values(house: Any) -> None:
    # Reference of the mathematics: k = 5, m = 10, no intercept, given order: D/d = 13.5, losses 19.4 ℓ and 1.6 ℓ.
    found = ps.diagnose(house, "MedHouseVal", n_partitions=5, sketch_size=10, fit_intercept=False)
    assert found.divergence_ratio == pytest.approx(13.5, abs=0.05)
    losses = {loss.method: loss.excess for loss in found.losses}
    assert losses["partition"] == pytest.approx(19.4, abs=0.05)
    assert losses["whole"] == pytest.approx(1.6, abs=0.01)
    assert losses["stack"] == pytest.approx(0.19, abs=0.02)
    assert losses["exact"] == 0


def test_everything_agrees_with_the_rows(rows: Any) -> None:
    X, y = rows
    found = ps.diagnose(np.column_stack([X, y]), "x4", n_partitions=3, sketch_size=20)
    ones = np.column_stack([np.ones(900), X])
    parts = [(ones[start : start + 300], y[start : start + 300]) for start in (0, 300, 600)]
    moments = theory.moments_of(parts)
    np.testing.assert_allclose(found.divergence_matrix, theory.divergence_matrix(moments), rtol=1e-8)
    assert found.divergence_ratio == pytest.approx(theory.divergence(moments) / 5)
    assert found.burg_divergence == pytest.approx(theory.burg_divergence(moments))
    numbered: Any = SimpleNamespace(row_numbers=np.arange(900))
    labels = Partitioning(("0", "1", "2"), shuffle_seed=0).assign(numbered)
    random = theory.moments_of([(ones[labels == number], y[labels == number]) for number in range(3)])
    expected = theory.partition_heterogeneity(moments, random)
    assert found.heterogeneity is not None
    assert found.heterogeneity.statistic == pytest.approx(expected.statistic, rel=1e-6)
    assert found.heterogeneity.p_value == pytest.approx(expected.p_value, rel=1e-6)
    loss = theory.pooled_moments(moments).loss
    losses = {one.method: one.excess for one in found.losses}
    assert losses["partition"] == pytest.approx(theory.partition_excess_loss(moments, 20) / loss)
    assert losses["average"] == pytest.approx(theory.unsketched_average_excess_loss(moments) / loss)
    (row,) = [one for one in found.influential_rows if one.row == 123]
    leverage = theory.leverage_scores(parts[0][0])[123]
    relative = np.mean([theory.relative_leverage_scores(ones[[123]], part)[0] for part in moments[1:]])
    assert (row.column, row.value, row.partition) == ("x1", 900, "0")
    assert row.leverage == pytest.approx(leverage)
    assert row.relative_leverage == pytest.approx(relative)
    keep = np.arange(900) != 123
    others = [one.row for one in found.influential_rows if one.row != 123]
    keep[others] = False
    without = theory.moments_of(
        [
            (ones[start : start + 300][keep[start : start + 300]], y[start : start + 300][keep[start : start + 300]])
            for start in (0, 300, 600)
        ]
    )
    assert found.ratio_without_rows == pytest.approx(theory.divergence(without) / 5, rel=1e-6)
    assert [part.stands_apart for part in found.partitions].count(True) >= 1


@pytest.mark.parametrize("weighted", [False, True])
def test_where_columns_lie_and_their_units_change_nothing(rows: Any, weighted: bool) -> None:
    X, y = rows
    # Few enough digits that nothing is lost by moving them.
    X, y = np.round(X * 2**10) / 2**10, np.round(y * 2**10) / 2**10
    weights = np.repeat([1.0, 4.0, 0.25], 300)
    found = []
    for moved in (X, X * [1.0, 2.0**-40, 2.0**30, 1.0] + [2.0**30, 0.0, 0.0, -(2.0**35)]):
        table = pa.table({**{f"x{i}": moved[:, i] for i in range(4)}, "y": y + 2.0**30, "w": weights})
        options: dict[str, Any] = {"weights": "w"} if weighted else {"features": ["x0", "x1", "x2", "x3"]}
        found.append(ps.diagnose(table, "y", n_partitions=3, sketch_size=20, **options))
    near, far = found
    # 45 of 53 bits of a column far away are its location: seven digits of its products with others are left.
    for name in ("divergence_ratio", "shuffled_divergence_ratio", "ratio_without_heavy_rows", "burg_divergence"):
        assert getattr(far, name) == pytest.approx(getattr(near, name), rel=1e-6), name
    for ours, theirs in zip(far.losses, near.losses, strict=True):
        assert ours.excess == pytest.approx(theirs.excess, rel=1e-6)
        assert ours.shuffled == pytest.approx(theirs.shuffled, rel=1e-6)
    assert [row.row for row in far.influential_rows] == [row.row for row in near.influential_rows]
    assert far.influential_rows[0].relative_leverage == pytest.approx(near.influential_rows[0].relative_leverage)


class _CountingSource(SourceWrapper):
    """Counts how often each row is read."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.reads = np.zeros(source.row_count or 0, dtype=int)

    def leaving_finiteness(self) -> Source:
        return self

    def read(self, start: int = 0, stop: int | None = None, block_rows: int = 65536) -> Iterator[Any]:
        for block in self.source.read(start, stop, block_rows):
            self.reads[block.row_numbers] += 1
            yield block


@pytest.mark.parametrize("partition_by", ["order", "shuffle"])
def test_rows_are_read_once(rows: Any, partition_by: str) -> None:
    X, y = rows
    source = _CountingSource(array_source(X, y, None, None, ["y"]))
    options = FitOptions("average", 3, partition_by, "spread", "gaussian", None, True, 0)
    diagnose_source(source, options)
    assert (source.reads == 1).all()


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32),
    block=st.integers(7, 400),
    count=st.integers(1, 5),
    heavy=st.lists(st.integers(0, 399), max_size=6, unique=True),
)
def test_every_row_of_large_leverage_is_found_whatever_the_blocks(
    seed: int, block: int, count: int, heavy: list[int]
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 3))
    X[heavy, rng.integers(0, 3, len(heavy))] *= 200
    y = rng.normal(size=400)
    source = array_source(X, y, None, None, ["y"])

    class Blocks(_CountingSource):
        def read(self, start: int = 0, stop: int | None = None, block_rows: int = 0) -> Iterator[Any]:
            yield from self.source.read(start, stop, block)

    options = FitOptions("average", count, "order", "spread", "gaussian", None, False, 0)
    found = diagnose_source(Blocks(source), options)
    expected = set()
    size, extra = divmod(400, count)
    for i in range(count):
        start, stop = (size * j + min(j, extra) for j in (i, i + 1))
        leverage = theory.leverage_scores(X[start:stop])
        expected |= {start + int(r) for r in np.flatnonzero(leverage >= max(0.1, 9 / (stop - start)) * (1 + 1e-9))}
    assert expected <= {row.row for row in found.influential_rows}


def test_the_same_whatever_the_threads(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(200_000, 4))
    results = []
    for threads in (1, 2):
        monkeypatch.setattr("partsketch.engines.local.usable_cores", lambda threads=threads: threads)
        results.append(ps.diagnose(table, "x3", n_partitions=2))
    assert results[0] == results[1]


def test_the_same_whatever_the_threads_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers read neighbouring tasks of a file in one go, as many as suit their number; what is seen must not tell."""
    rng = np.random.default_rng(0)
    table = pa.table({name: rng.normal(size=400_000) for name in ("a", "b", "y")})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=50_000)
    results = []
    for threads in (1, 3):
        monkeypatch.setattr("partsketch.engines.local.usable_cores", lambda threads=threads: threads)
        results.append(ps.diagnose(str(tmp_path / "rows.parquet"), "y", n_partitions=2))
    assert results[0] == results[1]


def test_command_prints_tables_plot_and_json(rows: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X, y = rows
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({**{f"x{i}": X[:, i] for i in range(4)}, "y": y}), path)
    assert run(["diagnose", str(path), "--target", "y", "--partitions", "4"]) == 0
    printed = capsys.readouterr().out
    for word in ("D/d = ", "relative leverage", "excess loss against k", "stack", "123", "•"):
        assert word in printed
    assert run(["diagnose", str(path), "--target", "y", "--partitions", "4", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert len(values["partitions"]) == 4
    assert run(["diagnose", str(path), "--target", "z"]) == 2
    assert capsys.readouterr().err.startswith("Error: ")


def test_weights_by_column_and_by_label(rows: Any) -> None:
    X, y = rows
    weights = np.repeat([1.0, 2.0, 3.0], 300)
    table = pa.table(
        {**{f"x{i}": X[:, i] for i in range(4)}, "y": y, "w": weights, "site": np.repeat(["a", "b", "c"], 300)}
    )
    found = ps.diagnose(table, "y", partition_by="site", weights="w")
    assert [part.name for part in found.partitions] == ["a", "b", "c"]
    root = np.sqrt(weights)[:, None]
    ones = np.column_stack([np.ones(900), X]) * root
    grams = [ones[start : start + 300].T @ ones[start : start + 300] for start in (0, 300, 600)]
    assert found.divergence_ratio == pytest.approx(theory.divergence(grams) / 5, rel=1e-6)
    assert found.influential_rows[0].value == pytest.approx(900)


@pytest.mark.parametrize("unit", [1e18, 1e100, 1e-200])
def test_leverages_are_the_same_in_any_unit_of_dependent_columns(unit: float) -> None:
    a, b, noise = np.random.default_rng(0).normal(size=(3, 200))
    near, far = (
        ps.diagnose(pa.table({"a": a * size, "again": a * size, "b": b, "y": 3 * a + b + noise}), "y")
        for size in (1.0, unit)
    )
    assert near.influential_rows
    assert [row.row for row in far.influential_rows] == [row.row for row in near.influential_rows]
    # Orthogonal factors of the same columns: a few thousand roundings.
    for one, other in zip(near.influential_rows, far.influential_rows, strict=True):
        assert other.leverage == pytest.approx(one.leverage, rel=1e-12)
        assert other.relative_leverage == pytest.approx(one.relative_leverage, rel=1e-12)
    assert far.ratio_without_rows == pytest.approx(near.ratio_without_rows, rel=1e-9)


def test_values_whose_squares_overflow_are_said_to_be_too_large() -> None:
    signs = np.where(np.arange(400) % 2, 1.0, -1.0)
    rows = {"a": 1e308 * signs, "b": np.arange(400.0), "y": np.arange(400.0) ** 2}
    with pytest.raises(InputError, match="Values are too large: their squares overflow"):
        ps.diagnose(pa.table(rows), "y")


def test_several_targets_and_too_many_partitions_are_refused(rows: Any) -> None:
    X, y = rows
    with pytest.raises(InputError, match="one target"):
        ps.diagnose(np.column_stack([X, y]), ["x3", "x4"])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="n_partitions=1000"):
        ps.diagnose(np.column_stack([X, y]), "x4", n_partitions=1000)
