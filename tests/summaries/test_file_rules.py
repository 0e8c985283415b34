"""Every rule of docs/sketch-format.md: a file that breaks it, and the sentence that refuses it."""

from __future__ import annotations

import hashlib
import json
import struct
import time
import warnings
from collections.abc import Callable
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partsketch as ps
from partsketch import InputError, Summary
from partsketch.sketches.base import sketch_kinds
from partsketch.summaries.provenance import Part, find_overlap

Header = dict[str, Any]


@cache
def _file(kind: str) -> tuple[str, int, bytes]:
    """Return header, version and numbers of a valid file."""
    draw = np.random.default_rng(1)
    a, b, y = draw.normal(size=(3, 60))
    columns = {"a": a, "far": 1e9 + b, "y": a + b + y, "kind": ["u", "v", "w"] * 20, "w": np.exp(y)}
    columns["gap"] = np.where(np.arange(60) < 6, np.nan, a)
    table = pa.table(columns)
    some: dict[str, Any] = {"sketch_size": 12, "random_state": 3, "site": "here", "noise": "estimated"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "gaussian":
            summary = ps.sketch(table, "y", ["a"], **some)
        elif kind == "dropped":
            summary = ps.sketch(table, "y", ["gap"], missing="drop", **some)
        elif kind == "two parts":
            first, second = ps.sketch(table, "y", ["a"], n_partitions=2, **some)
            summary = first.stack(second)
        elif kind == "private":
            summary = ps.sketch(table, "y", ["a"], private=True, round_rows=20, sketch_size=12)
        elif kind == "private weights":
            summary = ps.sketch(table, "y", ["a"], weights="w", private=True, round_rows=20, sketch_size=12)
        elif kind in ("orthogonal", "row_sample", "srht", "sparse_sign", "count_sketch"):
            summary = ps.sketch(table, "y", ["a"], sketch=kind, **some)
        elif kind == "encoded":
            summary = ps.sketch(table, "y", ["a", "kind"], encode=True, **some)
        elif kind == "weighted":
            summary = ps.sketch(table, "y", ["a"], weights="w", sketch="triangular")
        elif kind == "centred":
            summary = ps.sketch(table, "y", ["far"], sketch="triangular")
        else:
            assert kind == "triangular"
            summary = ps.sketch(table, "y", ["a"], sketch="triangular")
    data = summary.to_bytes()
    version, length = struct.unpack("<II", data[8:16])
    return data[16 : 16 + length].decode(), version, data[16 + length : -32]


def _sealed(header: Header, version: int, body: bytes) -> bytes:
    text = json.dumps(header).encode()
    data = b"PSKETCH\n" + struct.pack("<II", version, len(text)) + text + body
    return data + hashlib.sha256(data).digest()


KINDS = ["gaussian", "dropped", "two parts", "private", "encoded", "weighted", "sparse_sign", "centred", "triangular"]
KINDS += ["private weights", "orthogonal", "row_sample", "srht", "count_sketch"]


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_keep_the_rules_are_read(kind: str) -> None:
    text, version, body = _file(kind)
    summary = Summary.from_bytes(_sealed(json.loads(text), version, body))
    assert Summary.from_bytes(summary.to_bytes()) == summary
    assert version == (2 if kind in ("centred", "triangular", "weighted") else 1)


def _counts(rows: int, **more: Any) -> Callable[[Header], None]:
    """Forge the number of rows, and all that depends on it."""

    def forge(header: Header) -> None:
        header.update(row_count=rows, weight_sum=float(rows), **more)
        header["parts"][0]["stop"] = rows

    return forge


def _set(**changes: Any) -> Callable[[Header], None]:
    return lambda header: header.update(changes)


def _part(number: int = 0, **changes: Any) -> Callable[[Header], None]:
    return lambda header: header["parts"][number].update(changes)


def _both(first: Callable[[Header], None], second: Callable[[Header], None]) -> Callable[[Header], None]:
    def forge(header: Header) -> None:
        first(header)
        second(header)

    return forge


#: The rule in words, a file that keeps it, how it is broken, what the sentence says.
RULES: list[tuple[str, str, Callable[[Header], None], str]] = [
    ("the intercept comes first", "gaussian", _set(columns=["a", "(intercept)", "y"]),
     "'(intercept)' is not its first column"),
    ("the intercept is no target", "gaussian", _set(targets=["(intercept)"]), "'targets' are not distinct names"),
    ("column names are distinct", "gaussian", _set(columns=["(intercept)", "y", "y"]), "a column name is repeated"),
    ("targets are columns", "gaussian", _set(targets=["z"]), "'targets' are not distinct names among its columns"),
    ("unweighted, the weight sum is the row count", "gaussian", _set(weight_sum=61.0),
     "'weight_sum' is not 'row_count', yet rows have no weights"),
    ("weights are said to be there", "weighted", _set(weighted=False), "'weight_sum' is not 'row_count'"),
    ("there are rows", "gaussian", _counts(0), "'row_count' in its header has a wrong type or value"),
    ("counts are multiples of what they are rounded to", "private", _set(row_count=50, weight_sum=50.0),
     "'row_count' is not a multiple of 'rounded_to'"),
    ("only private counts are rounded", "gaussian", _set(rounded_to=20), "'row_count' is rounded, yet no part is"),
    ("only private counts are rounded, also of several parts", "two parts", _set(rounded_to=20), "no part is private"),
    ("sparsity is told for sparse_sign", "sparse_sign", _part(sparsity=None), "'sparsity' goes with the kind"),
    ("sparsity is told for no other kind", "gaussian", _part(sparsity=3), "'sparsity' goes with the kind"),
    ("sparsity is at most the size", "sparse_sign", _part(sparsity=13), "'sparsity' is larger than the size"),
    ("exact files have no seed", "triangular", _part(seed="5"), "an exact summary has no seed"),
    ("random files that are not private have one", "gaussian", _part(seed=None), "yet tells no seed"),
    ("private files have no seed", "private", _part(seed="5"), "it is private, yet tells a seed or row numbers"),
    ("private files have no row numbers", "private", _part(start=0, stop=60), "yet tells a seed or row numbers"),
    ("private files tell no dropped rows", "private", _set(rows_dropped=0), "yet tells how many rows were dropped"),
    ("exact files are not private", "triangular", _set(private=True), "an exact summary cannot be private"),
    ("only kinds that can be private are", "sparse_sign", _set(private=True), "'sparse_sign' cannot be private"),
    ("parts have different seeds or streams", "two parts", _part(1, stream=0),
     "two of its parts have the same seed and stream"),
    ("parts hold different rows", "two parts", _part(1, start=20, stop=60), "two of its parts hold the same rows"),
    ("parts of a label are of one batch", "two parts", _part(1, batch="ab" * 16), "parts hold the same rows"),
    ("sizes add up", "two parts", _part(size=11), "the sizes of its parts do not add up to 'sketch_rows'"),
    ("the size of one part is that of the file", "triangular", _part(size=2), "do not add up to 'sketch_rows'"),
    ("a part has rows", "two parts", _both(_part(size=0), _part(1, size=24)), "'size' in its part has a wrong"),
    ("ranges go forward", "gaussian", _part(start=61), "a part's 'start' and 'stop' are no range of rows"),
    ("ranges have two ends", "gaussian", _part(start=None), "a part's 'start' and 'stop' are no range of rows"),
    ("contiguous rows have a range", "private", _part(contiguous=True), "'contiguous', yet tells no range"),
    ("rows fit into their ranges", "gaussian", _part(stop=59), "'row_count' is larger than the ranges of its parts"),
    ("rows fit into their ranges, of several parts", "two parts", _part(1, stop=59), "larger than the ranges"),
    ("rows and dropped rows are the range", "gaussian", _part(stop=61), "are not all rows of the range of its part"),
    ("dropped rows are counted", "dropped", _set(rows_dropped=5), "are not all rows of the range of its part"),
    ("levels have columns", "encoded", _set(levels=[["kind", ["u", "v", "x"]]]), "'levels' has a level without a"),
    ("levels are distinct", "encoded", _set(levels=[["kind", ["v", "v", "w"]]]), "'levels' are not distinct"),
    ("there is a level", "encoded", _set(levels=[["kind", []]]), "'levels' are not distinct, at least one"),
    ("a column is encoded once", "encoded", _set(levels=[["kind", ["u", "v", "w"]]] * 2), "names a column twice"),
    ("what is encoded is no column", "encoded", _set(levels=[["a", ["u"]]]), "'levels' names a column twice, or one"),
    ("nothing is dropped where nothing is encoded", "gaussian", _set(drop_first=False), "yet nothing is encoded"),
    ("the first level is a column where it is not dropped", "encoded", _set(drop_first=False), "a level without a"),
    ("a centre has a number per column", "centred", _set(centre=[0.0, 1.0]), "'centre' has not one number per column"),
    ("nothing is taken off the ones", "centred", _set(centre=[1.0, 1.0, 0.0]), "or off the ones"),
    ("nothing is taken off without ones", "centred", _set(columns=["b", "far", "y"]), "without a column of ones"),
    ("a centre makes version 2", "gaussian", _set(centre=[0.0, 0.0, 0.0]), "a centre goes with format version 2"),
    ("exact ones are the rows", "triangular", _counts(60_000), "its column of ones is not that of 60000 rows"),
    ("exact ones are the rows, one more", "triangular", _counts(61), "its column of ones is not that of 61 rows"),
    ("exact ones are the rows, also with a centre", "centred", _counts(61), "its column of ones is not that of 61"),
    ("exact ones are the weights", "weighted", _set(weight_sum=61.0), "its column of ones is not that of 60 rows"),
    ("Gaussian ones may be the rows", "gaussian", _counts(60_000), "its column of ones is not that of 60000 rows"),
    ("Gaussian ones may be the rows, also rounded", "private", _set(row_count=60_000, weight_sum=6e4), "60000 rows"),
    ("Gaussian ones may be the weights, also rounded", "private weights", _set(weight_sum=1e6), "is not that of 60"),
    ("orthogonal ones may be the rows", "orthogonal", _counts(60_000), "its column of ones is not that of 60000 rows"),
    ("Hadamard ones may be the rows", "srht", _counts(10**12), "its column of ones is not that of 1000000000000 rows"),
    ("scattered ones may be the rows", "sparse_sign", _counts(600_000), "column of ones is not that of 600000 rows"),
    ("counted ones may be the rows", "count_sketch", _counts(600_000), "column of ones is not that of 600000 rows"),
    ("ones of a uniform sample are the rows", "row_sample", _counts(61), "its column of ones is not that of 61 rows"),
    ("a centre is numbers", "centred", _set(centre=[0.0, "1", 0.0]), "'centre' in its header has a wrong type"),
    ("parts have no other keys", "gaussian", _part(more=1), "its part has an unknown 'more'"),
    ("levels are names", "encoded", _set(levels=[["kind", ["u", "v", "w\x1b"]]]), "'levels' in its header has a wrong"),
    ("seeds have no zeros in front", "gaussian", _part(seed="07"), "'seed' in its part has a wrong type or value"),
    ("no part of a private file has a seed", "two parts", _both(_set(private=True, rows_dropped=None), _part(
        seed=None, start=None, stop=None, contiguous=False)), "it is private, yet tells a seed or row numbers"),
    ("kinds are known", "gaussian", _set(kind="cubist"), "does not know the sketch 'cubist'"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "kind", "forge", "words"), RULES, ids=[rule for rule, *_ in RULES])
def test_a_file_that_breaks_a_rule_is_refused(
    rule: str, kind: str, forge: Callable[[Header], None], words: str
) -> None:
    text, version, body = _file(kind)
    header = json.loads(text)
    forge(header)
    with pytest.raises(InputError) as raised:
        Summary.from_bytes(_sealed(header, version, body), "site.psk")
    sentence = str(raised.value)
    assert sentence.startswith("site.psk is damaged or not a valid sketch file: ")
    assert words in sentence
    assert sentence.endswith(".")


def test_the_second_matrix_is_rounding() -> None:
    text, version, body = _file("centred")
    numbers = np.frombuffer(body, dtype="<f8").copy()
    numbers[numbers.size // 2 + 1] = 1e-3
    with pytest.raises(InputError, match="its second matrix is more than the rounding of the first"):
        Summary.from_bytes(_sealed(json.loads(text), version, numbers.tobytes()))


def test_the_header_has_no_byte_order_mark() -> None:
    text, version, body = _file("gaussian")
    header = b"\xef\xbb\xbf" + text.encode()
    data = b"PSKETCH\n" + struct.pack("<II", version, len(header)) + header + body
    with pytest.raises(InputError, match="its header is not JSON in UTF-8"):
        Summary.from_bytes(data + hashlib.sha256(data).digest())


def test_private_files_have_no_centre() -> None:
    text, _, body = _file("private")
    header = {**json.loads(text), "centre": [0.0, 0.0, 0.0]}
    with pytest.raises(InputError, match="it is private, yet tells a centre"):
        Summary.from_bytes(_sealed(header, 2, body + bytes(len(body))))


@pytest.mark.parametrize("kind", sketch_kinds(exact=False))
def test_honest_files_of_every_kind_and_size_are_read(kind: str) -> None:
    """No sketch that chance may give is taken for a forgery: sizes from 2 to 200, weighted and not."""
    draw = np.random.default_rng(2)
    table = pa.table({"a": draw.normal(size=3000), "y": draw.normal(size=3000), "w": draw.exponential(size=3000)})
    for seed, size in enumerate([2, 3, 20, 200] * 3):
        weights = "w" if seed % 2 else None
        summary = ps.sketch(table, "y", sketch=kind, sketch_size=size, random_state=seed, weights=weights)
        assert Summary.from_bytes(summary.to_bytes()) == summary


parts = st.builds(
    lambda site, stream, span, contiguous, cut: Part(
        site, stream, None if span is None else min(span), None if span is None else max(span), 1, None,
        contiguous and span is not None, "", cut,
    ),
    st.sampled_from(["a", "b"]),
    st.integers(0, 2),
    st.none() | st.tuples(st.integers(0, 12), st.integers(0, 12)),
    st.booleans(),
    st.sampled_from(["", "", "", "x"]),
)  # fmt: skip


def _overlap(first: Part, second: Part) -> bool:
    """The meaning, for one pair."""
    same = (first.site, first.label) == (second.site, second.label)
    return same and (first.cut != second.cut or first.range_overlaps(second))


@given(st.lists(parts, max_size=7))
def test_parts_with_the_same_rows_are_found_among_many(made: list[Part]) -> None:
    pairs = [(i, j) for i, j in combinations(range(len(made)), 2) if _overlap(made[i], made[j])]
    found = find_overlap(list(enumerate(made)))
    assert (found is not None) == bool(pairs)
    if found is not None:
        assert tuple(sorted((found[0][0], found[1][0]))) in pairs


def _wide(columns: int, **changes: Any) -> bytes:
    header = json.loads(_file("gaussian")[0])
    names = ["(intercept)", *(f"column {i}" for i in range(columns - 1))]
    part = {**header["parts"][0], "size": 1, "site": "wide", **changes.pop("part", {})}
    header |= {"columns": names, "targets": [], "sketch_rows": 1, "parts": [part], **changes}
    return _sealed(header, 1, np.ones((1, columns)).tobytes())


def _many(site: str, seed: str) -> bytes:
    header = json.loads(_file("gaussian")[0])
    part = {**header["parts"][0], "site": site, "size": 1, "seed": seed}
    made = [{**part, "stream": i, "start": i, "stop": i + 1, "partition": str(i)} for i in range(4096)]
    header |= {"columns": ["a", "b"], "targets": ["b"], "sketch_rows": 4096, "parts": made, "row_count": 4096}
    header["weight_sum"] = 4096.0
    return _sealed(header, 1, np.random.default_rng(int(seed)).normal(size=(4096, 2)).tobytes())


def _seconds(work: Callable[[], object]) -> float:
    """Return the seconds of processor that some work takes: other processes are not in the way of these."""
    started = time.process_time()
    work()
    return time.process_time() - started


def test_a_file_of_a_megabyte_is_read_within_a_second(tmp_path: Path) -> None:
    """65,536 columns of one row, and 4096 parts; also when they are combined, or refused for their sizes."""
    wide = _wide(2**16)
    assert len(wide) > 1_500_000
    assert _seconds(lambda: Summary.from_bytes(wide)) < 1
    (tmp_path / "wide.psk").write_bytes(wide)

    def combine_wide() -> None:
        with pytest.raises(InputError, match="65535 columns to estimate"):
            ps.combine(tmp_path / "wide.psk", "column 7")

    assert _seconds(combine_wide) < 1
    for i in range(4):
        (tmp_path / f"many-{i}.psk").write_bytes(_many(f"site {i}", str(i)))
    assert (tmp_path / "many-0.psk").stat().st_size > 800_000
    assert _seconds(lambda: Summary.load(tmp_path / "many-0.psk")) < 1
    # Four files of almost a megabyte, all pairs of whose 16,384 parts must be told apart.
    assert _seconds(lambda: ps.combine(str(tmp_path / "many-*.psk"), method="stack")) < 4
