"""CSV files in chunks: what pyarrow reads of the whole file, wherever the chunks end, and the same words for faults."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv

import partsketch as ps
from partsketch.common.errors import InputError
from partsketch.sources.files import csv_chunks, csv_stream
from partsketch.sources.files.paths import find_files


def in_chunks(path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch) -> pa.Table:
    monkeypatch.setattr(csv_chunks, "CHUNK_BYTES", chunk)
    types = {"name": pa.string(), "x": pa.float64()}
    batches = list(csv_chunks.csv_batches(find_files(str(path)), 0, types, ["name", "x"]))
    return pa.Table.from_batches(batches)


def as_a_whole(path: Path) -> pa.Table:
    types = {"name": pa.string(), "x": pa.float64()}
    return csv.read_csv(
        path,
        csv.ReadOptions(use_threads=False, block_size=1 << 24),
        csv.ParseOptions(newlines_in_values=True),
        csv.ConvertOptions(column_types=types, strings_can_be_null=True),
    )


_VALUES = st.sampled_from(["a", "", '"b"', '"c,d"', '"e\nf"', '"g""h"', '"\n"', 'i"j', "k\u00e9", '"l\r\nm"'])


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(_VALUES, min_size=1, max_size=60),
    end=st.sampled_from(["\n", "\r\n"]),
    blank=st.booleans(),
    closed=st.booleans(),
    chunk=st.integers(2, 200),
)
def test_chunks_give_what_the_whole_file_gives(
    tmp_path_factory: pytest.TempPathFactory, values: list[str], end: str, blank: bool, closed: bool, chunk: int
) -> None:
    path = tmp_path_factory.mktemp("csv") / "rows.csv"
    lines = [f"{value},{number}.25" for number, value in enumerate(values)]
    text = end.join(["name,x", *lines[:30], *([""] * 9 if blank else []), *lines[30:]]) + (end if closed else "")
    path.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        found = in_chunks(path, chunk, patch)
    expected = as_a_whole(path)
    assert found.column("x").to_pylist() == expected.column("x").to_pylist()
    assert found.column("name").to_pylist() == expected.column("name").to_pylist()


def test_files_are_cut_indeed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("name,x\n" + "".join(f'"{i}\n",{i}\n' for i in range(200)))
    seen: list[Any] = []
    chunks = csv_chunks.cut_at_lines

    def watched(stream: Any, separator: int, spare: list[bytearray]) -> Iterator[Any]:
        for chunk in chunks(stream, separator, spare):
            seen.append(chunk)
            yield chunk

    monkeypatch.setattr(csv_chunks, "cut_at_lines", watched)
    assert in_chunks(path, 256, monkeypatch).num_rows == 200
    assert len(seen) > 5
    assert all(bytes(chunk).endswith(b"\n") and not bytes(chunk).endswith(b'"\n",') for chunk in seen)


def test_no_line_is_cut_within_quotes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow would notice most such cuts, and the file would be read again, plainly and slowly."""
    monkeypatch.setattr(csv_chunks, "CHUNK_BYTES", 8)
    rows = [b'"a""b\nc",1\n', b'"""\n""",2\n', b'"d\n""e",3\n', b'f""g,4\n', b'h,"""i\n"\n'] * 3
    chunks = [bytes(chunk) for chunk in csv_chunks.cut_at_lines(io.BytesIO(b"".join(rows)), ord(","), [])]
    assert b"".join(chunks) == b"".join(rows)
    ends = {sum(map(len, rows[:number])) for number in range(len(rows) + 1)}
    assert {sum(map(len, chunks[:number])) for number in range(len(chunks) + 1)} <= ends
    assert len(chunks) > 5


def test_rows_before_a_fault_come_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("name,x\n" + "".join(f"a,{i}\n" for i in range(400)))
    parsed = csv_chunks.parsed_chunks

    def broken(*arguments: Any) -> Iterator[Any]:
        for number, batch in enumerate(parsed(*arguments)):
            if number == 3:
                raise pa.ArrowInvalid("broken")
            yield batch

    monkeypatch.setattr(csv_chunks, "parsed_chunks", broken)
    # The plain way reads in blocks, too, and the fourth chunk begins within one of them.
    monkeypatch.setattr(csv_stream, "BLOCK_BYTES", 700)
    assert in_chunks(path, 500, monkeypatch).column("x").to_pylist() == [float(i) for i in range(400)]


@pytest.mark.parametrize(
    ("line", "words"), [("1,2,3\n", "line 1502"), ("text,2\n", "Column 'x' has the text 'text' in row 1500")]
)
def test_faults_are_told_with_their_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, words: str) -> None:
    monkeypatch.setattr(csv_chunks, "CHUNK_BYTES", 1000)
    # Types are guessed from the first block.
    monkeypatch.setattr(csv_stream, "BLOCK_BYTES", 4000)
    path = tmp_path / "rows.csv"
    good = [f"{i / 7},{i % 5}\n" for i in range(3000)]
    path.write_text("x,y\n" + "".join([*good[:1500], line, *good[1500:]]))
    with pytest.raises(InputError, match=words):
        ps.fit(path, "y", method="exact")


def test_quotes_that_never_end_are_left_to_the_plain_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_chunks, "CHUNK_BYTES", 1000)
    monkeypatch.setattr(csv_chunks, "_LONGEST_LINE", 4000)
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n" + "".join(f"{i},1\n" for i in range(500)) + '"' + "".join(f"{i},1\n" for i in range(5000)))
    with pytest.raises(InputError):
        ps.fit(path, "y", method="exact")


def test_chunks_do_not_change_a_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=(4000, 3))
    path = tmp_path / "rows.csv"
    np.savetxt(path, values, delimiter=",", header="a,b,y", comments="", fmt="%.17g")
    plain = ps.fit(path, "y", method="exact")
    for chunk in (500, 7777):
        monkeypatch.setattr(csv_chunks, "CHUNK_BYTES", chunk)
        assert np.array_equal(ps.fit(path, "y", method="exact").coefficients, plain.coefficients)
