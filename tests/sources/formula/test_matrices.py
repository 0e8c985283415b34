"""Columns of formulas are those of formulaic: the same names in the same order, and the same numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from formulaic import model_matrix

from partsketch.sources import open_source
from partsketch.sources.formula.reading import term_texts
from tests.sources.formula.data import ROWS, columns, frame

FRAME = frame()

FORMULAS = [
    "fare ~ log(distance) + C(zone) * night + bs(hour, 4)",
    "log(distance) ~ zone * late",
    "fare ~ zone - 1",
    "fare ~ 0 + zone:k + C(k)",
    "fare ~ poly(distance, 3) + center(distance):zone + scale(`my col`)",
    "fare ~ C(zone, contr.sum) * C(k, contr.helmert)",
    "fare ~ C(zone, contr.treatment('b')) * bs(distance, df=5, include_intercept=True)",
    "fare ~ C(rate) + I(distance**2) + {hour + 1} + np.sqrt(distance) + np.round(distance, 1)",
    "fare ~ hour + I(hour > 3) + C(hour > 3) + late + C(late)",
    "fare ~ C(zone, Treatment(reference='c d')):C(k):distance",
    "fare ~ C(zone):bs(hour, 3):C(k)",
    "fare ~ 2:hour + zone",
    "fare ~ standardize(distance) + C(zone, contr.poly) + C(k, contr.diff)",
    "fare ~ (zone + late) ** 2",
    "fare ~ (hour + late + distance) ^ 3",
    "fare ~ zone / night",
    "fare ~ night %in% zone",
    "fare ~ bs(hour, knots=[5, 12], degree=2)",
    "fare ~ bs(hour, df=6, include_intercept=True) - 1",
    "fare ~ bs(distance, df=5, lower_bound=0.5, upper_bound=5, extrapolation='clip')",
    "fare ~ bs(distance, df=5, lower_bound=0.5, upper_bound=5, extrapolation='extend')",
    "fare ~ bs(distance, df=5, lower_bound=0.5, upper_bound=5, extrapolation='zero')",
    "fare ~ bs(hour, df=0 + 1, degree=1)",
    "fare + night ~ distance",
    "fare ~ poly(hour, 2, raw=True)",
    "fare ~ `my col`:zone + log(`my col`) + Q('my col')",
    "fare ~ C(pickup.dt.month) + {pickup.dt.hour}",
    "fare ~ C(zone, contr.SAS) + C(k, levels=[6, 5, 4, 3])",
    "fare ~ scale(distance, ddof=0) + scale(hour, center=False)",
]


@pytest.mark.parametrize("formula", [text for text in FORMULAS if "0 + 1" not in text])
def test_columns_are_those_of_formulaic(formula: str) -> None:
    source = open_source(FRAME, formula=formula)
    made = columns(source)
    expected = model_matrix(formula, FRAME)
    features = expected.rhs.drop(columns="Intercept", errors="ignore")
    assert list(source.feature_names) == list(features.columns)
    assert list(source.target_names) == list(expected.lhs.columns)
    design = source.encoding.design
    assert design is not None
    assert design.intercept == ("Intercept" in expected.rhs)
    known = np.hstack([features.to_numpy(float), expected.lhs.to_numpy(float)]).T
    # Splines and polynomials differ by the order of a few operations.
    np.testing.assert_allclose(made, known, rtol=1e-11, atol=1e-12)


def test_a_chain_of_comparisons_holds_where_each_of_them_does() -> None:
    """Pandas, and formulaic with it, has no such chains."""
    (made, _) = columns(open_source(FRAME, formula="fare ~ I(1 < distance <= 3)"))
    np.testing.assert_array_equal(made, (FRAME["distance"] > 1) & (FRAME["distance"] <= 3))
    assert 0 < made.sum() < ROWS


def test_powers_beyond_the_number_of_columns_add_nothing() -> None:
    low, high = (sorted(term_texts(f"fare ~ (hour + late) ** {power}")[1]) for power in (2, 10**9))
    assert low == high == ["hour", "hour:late", "late"]


def test_every_other_column_is_a_dot() -> None:
    source = open_source(FRAME, formula="fare ~ .", weights="k")
    names = ["distance", "zone", "night", "my col", "late", "hour", "rate"]
    expected = model_matrix(" + ".join(f"`{name}`" for name in names), FRAME).drop(columns="Intercept")
    assert list(source.feature_names) == list(expected.columns)


@pytest.mark.parametrize("formula", FORMULAS[:4])
def test_blocks_and_kinds_of_storage_change_nothing(formula: str, tmp_path: Path) -> None:
    once = columns(open_source(FRAME, formula=formula), ROWS)
    np.testing.assert_array_equal(columns(open_source(FRAME, formula=formula), 7), once)
    pq.write_table(pa.Table.from_pandas(FRAME), tmp_path / "rows.parquet", row_group_size=50)
    np.testing.assert_array_equal(columns(open_source(tmp_path / "rows.parquet", formula=formula)), once)
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    np.testing.assert_array_equal(columns(open_source(tmp_path / "rows.csv", formula=formula)), once)


def test_parts_of_dates(tmp_path: Path) -> None:
    formula = (
        "fare ~ year(pickup) + quarter(pickup) + C(month(pickup)) + day(pickup) + day_of_year(pickup) + "
        "day_of_week(pickup) + hour(pickup) + minute(pickup) + second(pickup) + days(pickup) + seconds(pickup)"
    )
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    parts = FRAME["pickup"].dt
    seconds = (FRAME["pickup"] - np.datetime64("1970-01-01")) / np.timedelta64(1, "s")
    for data in (FRAME, tmp_path / "rows.csv", pa.Table.from_pandas(FRAME)):
        source = open_source(data, formula=formula)
        made = dict(zip(source.feature_names, columns(source), strict=False))
        for name in ("year", "quarter", "day", "day_of_year", "day_of_week", "hour", "minute", "second"):
            np.testing.assert_array_equal(made[f"{name}(pickup)"], getattr(parts, name), err_msg=name)
        np.testing.assert_array_equal(made["C(month(pickup))[T.3]"], parts.month == 3)
        np.testing.assert_array_equal(made["seconds(pickup)"], seconds)
        np.testing.assert_allclose(made["days(pickup)"], seconds / 86400, rtol=1e-15)
    dates = pa.table({"y": [1.0, 2.0], "on": pa.array([0, 365], pa.date32())})
    np.testing.assert_array_equal(
        columns(open_source(dates, formula="y ~ days(on) + hour(on)"))[:2], [[0, 365], [0, 0]]
    )


def test_levels_of_long_identifiers_are_not_confused() -> None:
    """Doubles cannot tell 10¹⁶ from 10¹⁶ + 1."""
    base = 10**16
    table = pa.table({"y": [1.0, 2.0, 3.0, 4.0], "id": [base, base + 1, base, base + 3]})
    source = open_source(table, formula="y ~ C(id)")
    assert source.feature_names == (f"C(id)[T.{base + 1}]", f"C(id)[T.{base + 3}]")
    np.testing.assert_array_equal(columns(source)[:2], [[0, 1, 0, 0], [0, 0, 0, 1]])


def test_levels_beyond_signed_numbers() -> None:
    table = pa.table({"y": [1.0, 2.0, 3.0], "id": pa.array([2**63, 2**63 + 1, 5], pa.uint64())})
    source = open_source(table, formula="y ~ C(id)")
    assert source.feature_names == (f"C(id)[T.{2**63}]", f"C(id)[T.{2**63 + 1}]")
    np.testing.assert_array_equal(columns(source)[:2], [[1, 0, 0], [0, 1, 0]])


def test_rows_with_missing_values_are_left_out_and_counted() -> None:
    rows = FRAME.assign(distance=FRAME["distance"].where(FRAME["hour"] != 3), zone=FRAME["zone"].where(FRAME["k"] != 4))
    formula = "fare ~ log(distance) + zone + bs(hour, 4)"
    source = open_source(rows, formula=formula, missing="drop")
    kept = rows.dropna()
    expected = model_matrix(formula, kept)
    assert list(source.feature_names) == list(expected.rhs.columns[1:])
    np.testing.assert_allclose(columns(source)[:-1].T, expected.rhs.to_numpy(float)[:, 1:], rtol=1e-11, atol=1e-12)
    assert sum(block.dropped for block in source.read()) == len(rows) - len(kept)


def test_what_an_expression_makes_missing_is_left_out() -> None:
    rows = FRAME.assign(distance=FRAME["distance"].where(FRAME["hour"] != 3, -1.0))
    source = open_source(rows, formula="fare ~ sqrt(distance) + center(hour)", missing="drop")
    kept = rows[rows["distance"] >= 0]
    made = columns(source)
    assert made.shape[1] == len(kept)
    # The mean is that of the rows that are left.
    np.testing.assert_allclose(made[1], kept["hour"] - kept["hour"].mean(), rtol=1e-12, atol=1e-12)
