"""Diagnosis: what it finds is what the rows have, in one pass, and its advice follows from it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import partsketch as ps
from partsketch import InputError, theory
from partsketch.cli import _run
from partsketch.diagnosis.diagnosing import diagnose_source
from partsketch.options import FitOptions
from partsketch.paper.stored_data import stored_data
from partsketch.sources.arrays import array_source


@pytest.fixture(scope="module")
def house() -> Any:
    stored = stored_data("house")
    return pd.DataFrame(stored.X, columns=list(stored.feature_names)).assign(MedHouseVal=stored.y)


def test_house_has_rows_of_extreme_occupancy(house: Any) -> None:
    for count in (5, 8):
        found = ps.diagnose(house, "MedHouseVal", n_partitions=count)
        extreme = house["AveOccup"].nlargest(4).index.tolist()
        named = [row.row for row in found.influential_rows if row.column == "AveOccup"]
        assert set(extreme) <= set(named)
        assert named[0] == int(house["AveOccup"].idxmax())
        assert any("AveOccup" in sentence and "Drop rows" in sentence for sentence in found.advice)
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


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(900, 4)) + 2
    X[700:] *= [1, 1, 1, 6]
    X[123] = [2, 900, 2, 2]
    return X, X @ [1.0, -1.0, 2.0, 0.5] + rng.normal(size=900)


def test_everything_agrees_with_the_rows(rows: Any) -> None:
    X, y = rows
    found = ps.diagnose(np.column_stack([X, y]), "x4", n_partitions=3, sketch_size=20)
    ones = np.column_stack([np.ones(900), X])
    parts = [(ones[start : start + 300], y[start : start + 300]) for start in (0, 300, 600)]
    moments = theory.moments_of(parts)
    np.testing.assert_allclose(found.divergence_matrix, theory.divergence_matrix(moments), rtol=1e-8)
    assert found.divergence_ratio == pytest.approx(theory.divergence(moments) / 5)
    assert found.burg_divergence == pytest.approx(theory.burg_divergence(moments))
    assert found.heterogeneity is not None
    assert found.heterogeneity.p_value == pytest.approx(theory.partition_heterogeneity(moments).p_value)
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


def test_like_partitions_get_no_warnings() -> None:
    rng = np.random.default_rng(2)
    found = ps.diagnose(rng.normal(size=(4000, 5)), "x4", n_partitions=4)
    assert not any(part.stands_apart for part in found.partitions)
    assert found.influential_rows == ()
    assert found.advice == ("The partitions are as alike as random ones: averaging them costs next to nothing.",)


def test_sorted_rows_should_be_shuffled() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(4000, 3))
    X = X[np.argsort(X[:, 0])]
    found = ps.diagnose(np.column_stack([X, X.sum(axis=1) + rng.normal(size=4000)]), "x3", n_partitions=8)
    assert found.shuffled_divergence_ratio is not None
    assert found.shuffled_divergence_ratio < 1.05 < 2 < found.divergence_ratio
    assert any(sentence.startswith("Shuffle the rows") for sentence in found.advice)


def test_too_many_partitions_and_dependent_columns_are_named() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 4))
    X[:, 2] = X[:, 0] - X[:, 1]
    found = ps.diagnose(np.column_stack([X, rng.normal(size=300)]), "x4", n_partitions=20)
    assert any("Drop column 'x2'" in sentence for sentence in found.advice)
    assert any(sentence.startswith("Use fewer partitions") for sentence in found.advice)


def test_unlike_coefficients_are_noticed() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(2000, 3))
    y = X[:, 0] * np.repeat([1.0, 2.0], 1000) + rng.normal(size=2000)
    found = ps.diagnose(np.column_stack([X, y]), "x3", n_partitions=4)
    assert found.heterogeneity is not None
    assert found.heterogeneity.p_value < 1e-6
    assert any("Coefficients differ" in sentence for sentence in found.advice)


class _CountingSource:
    """Counts how often each row is read."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self.reads = np.zeros(source.row_count, dtype=int)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "leaving_finiteness":
            raise AttributeError(name)
        return getattr(self._source, name)

    def read(self, start: int = 0, stop: int | None = None, block_rows: int = 65536) -> Iterator[Any]:
        for block in self._source.read(start, stop, block_rows):
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
            yield from self._source.read(start, stop, block)

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
    assert _run(["diagnose", str(path), "--target", "y", "--partitions", "4"]) == 0
    printed = capsys.readouterr().out
    for word in ("D/d = ", "relative leverage", "excess loss against k", "stack", "123", "•"):
        assert word in printed
    assert _run(["diagnose", str(path), "--target", "y", "--partitions", "4", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert len(values["partitions"]) == 4
    assert _run(["diagnose", str(path), "--target", "z"]) == 2
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


def test_several_targets_and_too_many_partitions_are_refused(rows: Any) -> None:
    X, y = rows
    with pytest.raises(InputError, match="one target"):
        ps.diagnose(np.column_stack([X, y]), ["x3", "x4"])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="n_partitions=1000"):
        ps.diagnose(np.column_stack([X, y]), "x4", n_partitions=1000)
