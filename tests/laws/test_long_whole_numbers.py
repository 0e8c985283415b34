"""Whole numbers beyond 2⁵³ are not all doubles: where their rounding is felt, a fit says so and names the column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import partsketch as ps
from tests.judge import judge
from tests.laws.tables import METHODS, assert_exact, options_of

ROWS = 300
_DRAW = np.random.default_rng(4)
STEPS, Z = _DRAW.integers(0, 3000, ROWS), _DRAW.standard_normal(ROWS)
Y = STEPS / 1000 + Z + _DRAW.standard_normal(ROWS)


def stored(columns: dict[str, Any], storage: str, folder: Path) -> Any:
    table = pa.table(columns)
    if storage == "parquet":
        pq.write_table(table, folder / "rows.parquet")
    elif storage == "csv":
        table.to_pandas().to_csv(folder / "rows.csv", index=False)
    elif storage == "array":
        return np.column_stack([np.asarray(column, dtype=object) for column in columns.values()]).astype(np.float64)
    else:
        return pd.DataFrame(columns)
    return str(folder / f"rows.{storage}")


def warnings_of(data: Any, **options: Any) -> list[str]:
    target: Any = -1 if isinstance(data, np.ndarray) else "y"
    with pytest.warns(ps.PartsketchWarning) as caught:
        ps.fit(data, target, **options)
    return [str(one.message) for one in caught]


@pytest.mark.parametrize("storage", ["frame", "parquet", "csv", "array"])
def test_a_column_whose_rounding_is_felt_is_named(storage: str, tmp_path: Path) -> None:
    data = stored({"id": STEPS + 2**62, "z": Z, "y": Y}, storage, tmp_path)
    told = [text for text in warnings_of(data, method="exact") if "where doubles are 1024 apart" in text]
    # The spread is 866, of which a power of two is taken; half a step is rounded off at most.
    assert len(told) == 1
    assert "0.5 of its spread" in told[0]
    assert ("'id'" in told[0]) or storage == "array"


@pytest.mark.parametrize("method", METHODS)
def test_every_method_says_so(method: str) -> None:
    data = pd.DataFrame({"id": STEPS + 10**17, "z": Z, "y": Y})
    assert any("Column 'id' lies near 1e+17" in text for text in warnings_of(data, **options_of(method)))


def test_so_does_a_target() -> None:
    data = pd.DataFrame({"z": Z, "y": STEPS + 2**62})
    assert any("Target 'y' lies near 4.61e+18" in text for text in warnings_of(data, method="exact"))


def test_without_an_intercept_two_such_columns_are_named() -> None:
    """One alone is rounded by 10⁻¹⁶ of its size; two are told apart by what is rounded off."""
    data = pd.DataFrame({"a": STEPS + 10**16, "b": 2**62 - 7 * STEPS[::-1], "y": Y})
    told = warnings_of(data, method="exact", fit_intercept=False)
    assert [name for name in "ab" if any(f"Column '{name}' lies near" in text for text in told)] == ["a", "b"]


@pytest.mark.filterwarnings("error::partsketch.PartsketchWarning")
def test_nothing_is_said_where_it_is_not_felt() -> None:
    """Numbers as long as possible but far apart, time stamps over years, and whole numbers that are all doubles."""
    hashes = np.random.default_rng(5).integers(0, 2**63, ROWS)
    stamps = 1_700_000_000_000_000_000 + STEPS * 10**14
    for column in (hashes, stamps, STEPS + 2**52):
        ps.fit(pd.DataFrame({"id": column, "z": Z, "y": Y}), "y", method="exact")


def test_what_the_warning_advises_gives_the_exact_fit() -> None:
    """The judge takes the whole numbers as they are; rounded to doubles they explain less."""
    whole = STEPS + 2**62
    shifted = np.column_stack([whole - whole.min(), Z])
    assert_exact(ps.SketchedRegression("exact").fit(shifted, Y).model_, shifted, Y)
    rounded = judge(np.column_stack([whole.astype(np.float64), Z]), Y)
    assert rounded.loss > judge(shifted, Y).loss * 21 / 20


def test_of_a_constant_it_is_not_known_whether_rounding_made_it_one() -> None:
    rng = np.random.default_rng(1)
    data = {"one": np.full(60, 1.7e18), "x": rng.normal(size=60), "y": rng.normal(size=60)}
    (told,) = [text for text in warnings_of(data, method="exact") if "lies near" in text]
    assert "became the same" in told
    assert "of its spread" not in told
