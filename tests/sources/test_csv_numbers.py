"""Plain numbers in CSV files: the doubles closest to what is written, or a line that is left to the other parser."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partsketch.sources.files import csv_chunks
from partsketch.sources.files.csv_numbers import PADDING, may_be_plain, plain_batch
from partsketch.sources.files.paths import find_files


def read(lines: Sequence[str], columns: Sequence[str] = ("x",), names: Sequence[str] = ("x",)) -> pa.RecordBatch | None:
    text = ("\n".join(lines) + "\n").encode()
    return plain_batch(memoryview(bytearray(text + b"9" * PADDING))[: len(text)], ",", columns, names)


def doubles(lines: Sequence[str]) -> list[str]:
    batch = read(lines)
    assert batch is not None
    return [value.hex() for value in batch.column(0).to_pylist()]


_PLAIN = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    # Digits with a point anywhere, and a power of ten.
    st.builds(
        lambda sign, digits, point, power: f"{sign}{digits[:point] or '0'}.{digits[point:] or '0'}{power}",
        st.sampled_from(["", "-"]),
        st.text("0123456789", min_size=1, max_size=18),
        st.integers(0, 18),
        st.one_of(st.just(""), st.integers(-270, 270).map(lambda power: f"e{power}")),
    ),
    st.integers(-(10**19) + 1, 10**19 - 1).map(str),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(_PLAIN, min_size=20, max_size=60))
def test_a_number_is_the_closest_double(lines: list[str]) -> None:
    # At the ends of what doubles hold lines are left to the other parser.
    kept = [line for line in lines if float(line) == 0 or 1e-270 < abs(float(line)) < 1e280]
    assert doubles(kept) == [float(line).hex() for line in kept]


def test_what_lies_half_way_between_two_doubles_ends_in_a_zero() -> None:
    halves = [2**53 + 1, 2**53 + 3, 2**54 + 2, 2**54 + 6, 2**60 + 2**7, 2**60 + 3 * 2**7, 2**63 + 2**10, 2**62 + 2**9]
    lines = [str(number + near) for number in halves for near in (-1, 0, 1)]
    # The same with a few decimals, where products with powers of five are still exact.
    lines += [f"{number // 2}.5" for number in halves] + [f"{number // 4}.25" for number in halves]
    lines += [f"{number}e{power}" for number in (9007199254740993, 900719925474099250) for power in (0, 1, 2, 3, 22)]
    lines = [line for line in lines if len(line.replace(".", "").split("e")[0]) <= 19]
    assert doubles(lines) == [float(line).hex() for line in lines]


def test_what_is_rounded_up_to_a_power_of_two_is_that_power() -> None:
    lines = [str(2**power - 1) for power in range(54, 64)] + ["0.9999999999999999999", "-0.4999999999999999999"]
    assert [float(line) for line in lines[-2:]] == [1.0, -0.5]
    assert doubles(lines) == [float(line).hex() for line in lines]


def test_zeros_in_front_are_no_digits() -> None:
    lines = ["0.00000000000000000000001234567890123456789", "-0.000123456789012345678", "0.0", "-0", "00000.5"]
    assert doubles(lines) == [float(line).hex() for line in lines]


@pytest.mark.parametrize(
    "line",
    [
        *("", " 1", "1 ", "+1", "1.", ".5", "-", "1e", "1e+", "nan", "inf", "NA", '"1"', "1\r2", "1,2", "0x10", "1_0"),
        *("12345678901234567890", "0.12345678901234567890", "1e300", "1e-320", "1e99999", "1\x00", "\uff11"),
    ],
)
def test_everything_else_is_left_to_the_other_parser(line: str) -> None:
    assert read(["1.5", line, "2.5"]) is None


def test_columns_are_found_by_their_names() -> None:
    lines = ["1.5,some text,-2e3,7\r", "2.5,,4,8\r"]
    batch = read(lines, ("a", "b", "c", "d"), ("c", "a"))
    assert batch is not None
    assert batch.to_pydict() == {"c": [-2000.0, 4.0], "a": [1.5, 2.5]}
    assert read(lines, ("a", "b", "c", "d"), ("c", "e")) is None
    assert read(lines, ("a", "b", "a", "d"), ("a",)) is None
    # Quotes hold a separator together, in columns that nobody wants as well.
    assert read(['1.5,"a,3",4'], ("a", "b", "c", "d"), ("a", "d")) is None
    assert read(["1.5,a,3"], ("a", "b", "c", "d"), ("c", "a")) is None


def test_separators_that_numbers_have_are_not_plain() -> None:
    assert may_be_plain(",", ".")
    assert may_be_plain("\t", ".")
    assert not may_be_plain(";", ",")
    assert not any(may_be_plain(sign, ".") for sign in "e-1.")


def test_chunks_of_plain_numbers_lie_between_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_chunks, "CHUNK_BYTES", 400)
    monkeypatch.setattr(csv_chunks, "FIRST_CHUNKS", 1)
    made: list[bool] = []

    def watched(*given: object) -> pa.RecordBatch | None:
        batch = plain_batch(*given)  # type: ignore[arg-type]
        made.append(batch is not None)
        return batch

    monkeypatch.setattr(csv_chunks, "plain_batch", watched)
    numbers = np.random.default_rng(5).normal(size=300)
    lines = [f"{number!r},{row}" for row, number in enumerate(numbers.tolist())]
    lines[100], lines[200] = '"0.25",100', ",200"
    path = tmp_path / "rows.csv"
    path.write_text("x,row\n" + "\n".join(lines))
    types = {"row": pa.float64(), "x": pa.float64()}
    table = pa.Table.from_batches(csv_chunks.csv_batches(find_files(str(path)), 0, types, ["row", "x"]))
    assert True in made
    assert False in made
    assert table.column("row").to_pylist() == list(range(300))
    numbers[100], numbers[200] = 0.25, np.nan
    assert np.array_equal(table.column("x").to_numpy(), numbers, equal_nan=True)


def test_a_mark_at_the_beginning_of_a_chunk_stays_in_its_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_chunks, "CHUNK_BYTES", 64)
    path = tmp_path / "rows.csv"
    path.write_text("x\n" + "\ufeff1\n" * 60, encoding="utf-8")
    batches = csv_chunks.csv_batches(find_files(str(path)), 0, {"x": pa.string()}, ["x"])
    assert pa.Table.from_batches(batches).column("x").to_pylist() == ["\ufeff1"] * 60
