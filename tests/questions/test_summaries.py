"""Summaries are made once, kept in one file, and hold what the rows hold."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import partsketch as ps
from partsketch.summaries.collection_file import from_bytes, to_bytes
from tests.questions.data import clustered_rows

ROWS = clustered_rows()
COLUMNS = ["a", "b", "c", "y"]


def summarised(rows: pd.DataFrame = ROWS, **keywords: object) -> ps.Summaries:
    return ps.summarise(rows, COLUMNS, **{"partition_by": "g", **keywords})  # type: ignore[arg-type]


def test_names_columns_and_counts() -> None:
    summaries = summarised()
    assert len(summaries) == 9
    assert summaries.names == tuple(str(number) for number in range(9))
    assert summaries.columns == ("a", "b", "c", "y")
    assert summaries.row_counts == tuple(np.bincount(ROWS["g"]).tolist())
    assert "9 partitions, 1,200 rows" in repr(summaries)


def test_one_file_holds_all_partitions(tmp_path: Path) -> None:
    summaries = summarised(ROWS.assign(c=ROWS["c"] + 1e9))
    path = tmp_path / "rows.psk"
    summaries.save(path)
    assert ps.read_summaries(path) == summaries
    assert ps.read_summaries(str(tmp_path / "*.psk")) == summaries
    assert pickle.loads(pickle.dumps(summaries)) == summaries
    # Coefficients of a combination do not depend on the front.
    combined = ps.combine(path, "y", ["a", "b", "c"])
    np.testing.assert_allclose(combined.coefficients, summaries.fit("y").coefficients, rtol=1e-9)


def test_a_file_of_one_partition_is_a_sketch_file(tmp_path: Path) -> None:
    path = tmp_path / "all.psk"
    summaries = ps.summarise(ROWS, COLUMNS)
    summaries.save(path)
    assert ps.Summary.load(path) == summaries.factors[0]
    assert ps.read_summaries(path) == summaries


def test_damaged_files_are_refused() -> None:
    data = to_bytes(summarised().factors)
    for place in (9, 20, 400, len(data) // 2, len(data) - 1):
        broken = bytearray(data)
        broken[place] ^= 1
        with pytest.raises(ps.InputError):
            from_bytes(bytes(broken))
    for size in (12, 30, 1000, len(data) - 1):
        with pytest.raises(ps.InputError, match=r"cut short|its size|not a"):
            from_bytes(data[:size])
    with pytest.raises(ps.InputError, match="not what its index says"):
        from_bytes(data + b"x")


def test_select_is_a_summary_of_fewer_columns_and_partitions() -> None:
    few = summarised().select(partitions=["1", "4"], columns=["c", "y"])
    again = ps.summarise(ROWS[ROWS["g"].isin([1, 4])], ["c", "y"], partition_by="g")
    assert few.names == ("1", "4")
    assert few.columns == ("c", "y")
    for one, other in zip(few.factors, again.factors, strict=True):
        np.testing.assert_allclose(one.matrix, other.matrix, rtol=1e-10, atol=1e-10)
    with pytest.raises(ps.InputError, match="no partition 'x'"):
        few.select(partitions=["x"])
    with pytest.raises(ps.InputError, match="1 is not the name of a partition, which is a text"):
        few.select(partitions=[1])  # type: ignore[list-item]
    with pytest.raises(ps.InputError, match="no column 'a'"):
        few.select(columns=["a"])
    with pytest.raises(ps.InputError, match="name at least one"):
        few.select(columns=[])


def test_rows_that_are_added_later() -> None:
    first, second = ROWS[:700], ROWS[700:].assign(g=ROWS["g"][700:] + 2)
    grown = summarised(first).add(second, partition_by="g")
    both = pd.concat([first, second])
    whole = summarised(both)
    assert dict(zip(grown.names, grown.row_counts, strict=True)) == dict(
        zip(whole.names, whole.row_counts, strict=True)
    )
    np.testing.assert_allclose(
        grown.fit("y", vcov="CRV1").standard_errors, whole.fit("y", vcov="CRV1").standard_errors, rtol=1e-10
    )
    with pytest.raises(ps.InputError, match="in already"):
        grown.add(second, partition_by="g", label="batch 1")


def test_sites_are_joined_and_rows_do_not_count_twice(tmp_path: Path) -> None:
    north, south = summarised(ROWS[:600], site="north"), summarised(ROWS[600:], site="south")
    north.save(tmp_path / "north.psk")
    south.save(tmp_path / "south.psk")
    both = ps.read_summaries([tmp_path / "north.psk", tmp_path / "south.psk"])
    assert len(both) == 18
    assert both.names[0] == "north 0"
    np.testing.assert_allclose(both.fit("y").coefficients, summarised().fit("y").coefficients, rtol=1e-11)
    np.testing.assert_allclose(north.add(south).fit("y").coefficients, both.fit("y").coefficients, rtol=1e-13)
    with pytest.raises(ps.InputError, match=r"twice|same rows"):
        ps.read_summaries([tmp_path / "north.psk", tmp_path / "north.psk"])
    with pytest.raises(ps.InputError, match="different columns"):
        north.add(ps.summarise(ROWS, ["a", "y"], partition_by="g", site="west"))


def test_partitions_of_one_name_become_one() -> None:
    both = summarised(ROWS[:600], site="north").add(summarised(ROWS[600:], site="south"))
    one, whole = both.together(), summarised()
    assert one.row_counts == whole.row_counts
    assert both.fit("y", vcov="CRV1").record.warnings[0].startswith("Partitions of the same name (9, such as '0')")
    assert both.fit("y").record.warnings == one.fit("y", vcov="CRV1").record.warnings == ()
    for vcov in ("CRV1", "CRV3"):
        np.testing.assert_allclose(
            one.fit("y", vcov=vcov).standard_errors, whole.fit("y", vcov=vcov).standard_errors, rtol=1e-10
        )
    apart = ps.summarise(ROWS[:600], COLUMNS, site="north").add(ps.summarise(ROWS[600:], COLUMNS, site="south"))
    assert len(apart.together()) == 2, "partitions without a name are not the same"


@pytest.mark.parametrize("columns", range(2, 16))
def test_exact_sums_of_groups_of_any_width(columns: int) -> None:
    """Lines with twice the digits of 10 columns are as long as plain lines of 14."""
    rng = np.random.default_rng(columns)
    values = rng.normal(size=(300, columns))
    values[:, -1] = values[:, 0] + 1e-9 * values[:, -1]
    names = [f"x{number}" for number in range(columns)]
    frame = pd.DataFrame(values, columns=names).assign(g=np.arange(300) % 3)
    summaries = ps.summarise(frame, names, partition_by="g")
    for group, factor in enumerate(summaries.factors):
        # The smallest singular value tells whether digits of the difference were kept.
        rows = np.column_stack([np.ones(100), values[group::3]])
        expected = np.linalg.svd(rows, compute_uv=False)
        np.testing.assert_allclose(np.linalg.svd(factor.matrix, compute_uv=False), expected, rtol=1e-5)


def test_groups_that_hold_equal_rows_are_no_copies(tmp_path: Path) -> None:
    rows = pd.DataFrame({"x": [1.0, 1.0, 2.0, 5.0], "y": [3.0, 3.0, 4.0, 1.0], "g": [0, 1, 2, 2]})
    ps.summarise(rows, partition_by="g").save(tmp_path / "few.psk")
    assert len(ps.read_summaries(tmp_path / "few.psk")) == 3


def test_shuffled_partitions_and_text_columns() -> None:
    rows = ROWS.assign(kind=np.where(ROWS["a"] > 0, "hot", "cold"))
    summaries = ps.summarise(rows, ["kind", "a", "y"], partition_by="shuffle", n_partitions=5, encode=True)
    assert len(summaries) == 5
    assert summaries.columns == ("kind=hot", "a", "y")
    model = summaries.fit("y", ["kind"])
    assert model.feature_names == ("kind=hot",)
    assert model.predict(rows).shape == (1200,)


def test_a_formula_names_the_columns() -> None:
    summaries = ps.summarise(ROWS, formula="y ~ a + c")
    assert summaries.columns == ("a", "c", "y")
    assert summaries.fit().target_names == ("y",)
    with pytest.raises(ps.InputError, match="not both"):
        ps.summarise(ROWS, ["a"], formula="y ~ a")
    with pytest.raises(ps.InputError, match="add it to that formula and summarise again"):
        summaries.fit("y ~ exp(a)")
    with pytest.raises(ps.InputError, match="summarise again with a formula that has it"):
        ps.summarise(ROWS, ["y", "a"]).fit("y ~ log(a)")
    with pytest.raises(
        ps.InputError, match=r"behind which a fit to rows absorbs a column: summarise with partition_by"
    ):
        ps.summarise(ROWS, ["y", "a"]).fit("y ~ a | b")


def test_terms_of_a_formula_are_columns_of_summaries() -> None:
    summaries = ps.summarise(ROWS, formula="y ~ exp(a) + c + exp(a):c")
    assert summaries.columns == ("exp(a)", "c", "exp(a):c", "y")
    model = summaries.fit("y ~ exp(a):c + exp(a)")
    assert model.feature_names == ("exp(a)", "exp(a):c")
    known = np.column_stack([np.ones(len(ROWS)), np.exp(ROWS["a"]), np.exp(ROWS["a"]) * ROWS["c"]])
    expected = np.linalg.lstsq(known, ROWS["y"].to_numpy(), rcond=None)[0]
    # Twelve digits: the condition of these columns is about ten.
    np.testing.assert_allclose([*model.intercept, *model.coefficients[:, 0]], expected, rtol=1e-12)
    np.testing.assert_allclose(model.predict(ROWS), known @ expected, rtol=1e-11)
    with pytest.raises(ps.InputError, match="one target"):
        summaries.fit("y + c ~ exp(a)")


def test_many_rows_without_a_target_that_lie_in_columns() -> None:
    """Whole tiles of doubles are summed where they lie, and there is no target to look at."""
    columns = {name: np.random.default_rng(number).normal(size=20_000) for number, name in enumerate("ab")}
    factor = ps.summarise(pa.table(columns)).factors[0]
    values = np.column_stack([np.ones(20_000), *columns.values()])
    np.testing.assert_allclose(factor.matrix.T @ factor.matrix, values.T @ values, rtol=1e-10, atol=1e-8)


def test_random_sketches_are_refused() -> None:
    sketch = ps.sketch(ROWS[COLUMNS], "y", random_state=0)
    with pytest.raises(ps.InputError, match="exact summaries"):
        ps.read_summaries(sketch)


def test_a_formula_without_columns_is_refused() -> None:
    with pytest.raises(ps.InputError, match="nothing to summarise"):
        ps.summarise(clustered_rows(), formula="~ 1")
