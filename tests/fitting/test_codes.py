"""Fits with text columns of many levels: the same numbers as with indicators written out, whatever the rows are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import partsketch as ps
from partsketch import LocalEngine
from partsketch.sources import open_source
from partsketch.summaries.coded_feeder import CodedFeeder
from partsketch.summaries.tasks import SummaryRequest

ROWS, LEVELS = 3000, 24


def table(case: str = "plain") -> pa.Table:
    generator = np.random.default_rng(11)
    zone, hour = generator.integers(0, LEVELS, ROWS), generator.integers(0, 20, ROWS)
    x: Any = generator.normal(size=ROWS)
    if case == "rare reference":
        zone = np.where(zone == 0, 1, zone)
        zone[17] = 0
    elif case == "sorted":
        zone = np.sort(zone)
    elif case == "identifier":
        x = 1e16 + 2.0 * generator.integers(0, 10**6, ROWS)
    elif case == "zero":
        x = np.zeros(ROWS)
    elif case == "said by levels":
        x = 1.0 * zone
    spread = max(float(x.std()), 1e-3)
    y = (x - x.mean()) / spread + np.sin(zone) + generator.normal(size=ROWS)
    names = {"zone": [f"z{number:02}" for number in zone], "hour": [f"h{number:02}" for number in hour]}
    return pa.table({"y": y, "x": x, **names, "w": generator.random(ROWS)})


def errors_of(model: ps.Model) -> Any:
    errors = model.inferences[0].standard_errors
    assert errors is not None
    return errors


def written_out(rows: pa.Table) -> pa.Table:
    """The same columns, with an indicator for every level but the first."""
    columns: dict[str, Any] = {"y": rows["y"], "w": rows["w"], "x": rows["x"]}
    for name in ("zone", "hour"):
        texts = np.array(rows[name].to_pylist())
        columns |= {f"{name}={level}": (texts == level).astype(float) for level in np.unique(texts)[1:]}
    return pa.table(columns)


@pytest.mark.filterwarnings("ignore::partsketch.PartsketchWarning")
@pytest.mark.parametrize("case", ["plain", "rare reference", "sorted", "identifier", "zero", "said by levels"])
@pytest.mark.parametrize("weights", [None, "w"])
def test_same_as_written_out(case: str, weights: str | None) -> None:
    rows = table(case)
    asked = {"weights": weights} if weights else {"features": ["x", "zone", "hour"]}
    coded = ps.fit(rows, "y", encode=True, method="exact", **asked)
    others = written_out(rows)
    dense = ps.fit(others if weights else others.drop_columns("w"), "y", method="exact", weights=weights)
    assert coded.feature_names == dense.feature_names
    assert coded.record.rank == dense.record.rank
    errors = errors_of(dense)
    scale = np.where(errors > 0, errors, 1.0)
    # Both are exact but for rounding of well-conditioned sums in doubles: far below any standard error.
    assert np.abs((coded.coefficients - dense.coefficients)[:, 0] / scale[1:]).max() < 1e-9
    np.testing.assert_allclose(errors_of(coded), errors, rtol=1e-9)


def test_a_formula_with_products_of_levels() -> None:
    rows = table()
    coded = ps.fit(rows, "y ~ x * C(zone) + C(hour)")
    wide = written_out(rows).drop_columns("w")
    for name in [name for name in wide.column_names if name.startswith("zone=")]:
        wide = wide.append_column(f"x:{name}", pa.array(np.asarray(wide[name]) * np.asarray(wide["x"])))
    dense = ps.fit(wide, "y")
    renamed = [
        name.replace("C(zone)[T.", "zone=").replace("C(hour)[T.", "hour=").replace("]", "")
        for name in coded.feature_names
    ]
    order = [dense.feature_names.index(name) for name in renamed]
    np.testing.assert_allclose(coded.coefficients, dense.coefficients[order], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("partition_by", ["order", "shuffle"])
def test_bits_do_not_depend_on_blocks_or_threads(partition_by: str) -> None:
    models = [
        ps.fit(
            table(), "y", ["x", "zone", "hour"], encode=True, method="average", n_partitions=2, random_state=1,
            partition_by=partition_by, engine=LocalEngine(threads=threads, block_rows=rows),
        )
        for threads, rows in ((1, 7), (2, 100_000))
    ]  # fmt: skip
    np.testing.assert_array_equal(models[0].coefficients, models[1].coefficients)
    np.testing.assert_array_equal(errors_of(models[0]), errors_of(models[1]))


def test_codes_are_used_where_they_pay_off() -> None:
    def feeder(features: list[str]) -> Any:
        source = open_source(table(), target="y", features=features, encode=True)
        from partsketch.sketches.base import SketchSpecification
        from partsketch.summaries.partitions import single_partition

        request = SummaryRequest(SketchSpecification("triangular"), single_partition(ROWS), True)
        return source.codes, isinstance(request.feeder(source, 0, 0), CodedFeeder)

    assert feeder(["x"]) == ((0, 0), False)
    assert feeder(["x", "zone", "hour"]) == ((42, 2), True)
    source = open_source(table(), formula="y ~ x * C(zone) + poly(x, 2):C(hour)")
    # 23 indicators, 23 times x, and 20 levels times two columns.
    assert source.codes == (23 + 23 + 40, 1 + 1 + 2)
    assert source.codes.pay_off


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_named(value: float) -> None:
    rows = table()
    x = rows["x"].to_numpy().copy()
    x[1234] = value
    rows = rows.set_column(1, "x", pa.array(x))
    with pytest.raises(ps.InputError, match=r"Column 'x' has an? (missing|infinite) value in row 1234"):
        ps.fit(rows, "y", ["x", "zone"], encode=True)
