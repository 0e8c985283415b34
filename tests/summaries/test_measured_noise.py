"""Noise that is measured in the pass of a sketch: the number itself, how it is kept, and files that forge it."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import partsketch as ps
from partsketch import InputError, Summary
from partsketch.engines.checkpoint_file import from_bytes, to_bytes
from partsketch.engines.local import LocalEngine
from partsketch.sketches.accumulator import Columns, Stream
from partsketch.sketches.base import SketchSpecification, get_sketch, sketch_kinds
from partsketch.sketches.orthogonal import orthogonal_rows
from partsketch.summaries.measured import is_cheap_beside, may_be_noise
from partsketch.summaries.merge import PieceFold
from partsketch.summaries.provenance import Noise, Part
from partsketch.summaries.tasks import Piece, TaskResult
from partsketch.summaries.waiting_room import WaitingRoom

ROWS = 300
_STREAM, _COLUMNS = Stream(), Columns(2, 1, True)


def table(rows: int = ROWS, **more: Any) -> pa.Table:
    """Two features of which one is far from zero, a third that is twice the first, two targets and weights."""
    draw = np.random.default_rng(1)
    a, b, noise, other = draw.normal(size=(4, rows))
    columns = {"a": a, "far": 1e9 + b, "y": a + b + noise, "z": a - 3 * other, "w": np.exp(b)}
    return pa.table({**columns, "twice": 2 * a, **more})


def left(data: pa.Table, target: str, features: list[str], weights: NDArray[np.float64] | None = None) -> float:
    """The residual sum of squares by NumPy, of columns from which their means were taken off."""
    X = np.column_stack([data[name].to_numpy() - data[name].to_numpy().mean() for name in features])
    root = np.ones(len(X)) if weights is None else np.sqrt(weights)
    X, y = np.column_stack([np.ones(len(X)), X]) * root[:, None], data[target].to_numpy() * root
    away = y - X @ np.linalg.lstsq(X, y)[0]
    return float(away @ away)


ASKED: dict[str, Any] = {"sketch_size": 40, "random_state": 3, "site": "here", "noise": "measured"}


@pytest.mark.parametrize("kind", sketch_kinds())
def test_the_noise_is_what_exact_least_squares_leaves(kind: str) -> None:
    data = table()
    summary = ps.sketch(data, ["y", "z"], ["a", "far"], sketch=kind, **ASKED)
    without = ps.sketch(data, ["y", "z"], ["a", "far"], sketch=kind, **{**ASKED, "noise": "estimated"})
    assert without.about.noise == ()
    # Nothing else of the sketch changes.
    assert summary.matrix.tobytes() == without.matrix.tobytes()
    assert [one.target for one in summary.about.noise] == ["y", "z"]
    for one in summary.about.noise:
        assert one.freedom == ROWS - 3
        assert one.residual_sum == pytest.approx(left(data, one.target, ["a", "far"]), rel=1e-9)
    assert Summary.from_bytes(summary.to_bytes()) == summary


def test_weights_and_columns_that_depend_on_others() -> None:
    data = table()
    weights = data["w"].to_numpy()
    summary = ps.sketch(data, "y", ["a", "far", "twice"], weights="w", **ASKED)
    (noise,) = summary.about.noise
    # Twice a column tells nothing more, so one column less is free.
    assert noise.freedom == ROWS - 3
    assert noise.residual_sum == pytest.approx(left(data, "y", ["a", "far"], weights), rel=1e-9)


def test_noise_is_measured_where_it_costs_no_more_than_the_sketch() -> None:
    known = {kind: is_cheap_beside(SketchSpecification(kind, 40, 0), 10) for kind in sketch_kinds()}
    assert {kind for kind, cheap in known.items() if cheap} == {"gaussian", "orthogonal"}
    # Sums of products of ten columns take more than three rows of a sketch.
    assert not is_cheap_beside(SketchSpecification("gaussian", 3, 0), 10)
    assert is_cheap_beside(SketchSpecification("orthogonal", 3, 0), 10)
    given = {**ASKED, "noise": "auto"}
    assert ps.sketch(table(), "y", ["a"], **given).about.noise
    assert not ps.sketch(table(), "y", ["a"], sketch="srht", **given).about.noise
    assert not ps.sketch(table(), None, ["a", "y"], **given).about.noise
    private = ps.sketch(table(), "y", ["a"], sketch_size=40, private=True)
    assert private.about.noise == ()
    assert b'"noise"' not in private.to_bytes()


def test_a_perfect_fit_has_no_noise_to_tell() -> None:
    data = table()
    data = data.append_column("exact", pa.array(2 * data["a"].to_numpy() + 1))
    assert ps.sketch(data, "exact", ["a"], **ASKED).about.noise == ()
    # Where nothing is known of its law a sketch cannot speak against rounding.
    assert ps.sketch(data, "exact", ["a"], sketch="sparse_sign", **ASKED).about.noise == ()
    assert ps.sketch(data.slice(0, 3), "y", ["a", "far"], **{**ASKED, "sketch_size": 2}).about.noise == ()


@pytest.mark.parametrize("by", [{}, {"n_partitions": 3, "partition_by": "shuffle"}])
def test_the_same_bits_however_rows_are_read(by: dict[str, Any]) -> None:
    draw = np.random.default_rng(0)
    # Two segments and a half.
    data = draw.normal(size=(160_000, 3)) @ np.triu(np.ones((3, 3)))
    asked = {"target": "x2", "sketch_size": 12, "random_state": 5, **by}
    found = [
        ps.sketch(data, engine=LocalEngine(threads=threads, block_rows=rows), **asked)
        for threads, rows in ((1, 32768), (2, 7001))
    ]
    first, second = (one if isinstance(one, tuple) else (one,) for one in found)
    assert all(one.about.noise for one in first)
    assert [one.to_bytes() for one in first] == [one.to_bytes() for one in second]


def _measured_piece(segment: int) -> Piece:
    draw = np.random.default_rng(segment)
    sums = get_sketch("triangular").accumulator(SketchSpecification("triangular"), _STREAM, _COLUMNS)
    sums.add(np.vstack([np.ones(8), draw.normal(size=(3, 8))])[:4].copy(), np.arange(8))
    ends = np.array([[-1.0], [1.0]])
    beside = Piece(0, segment, (sums.finish(),), 8, 8.0, ends, centre=np.array([0.0, 0.5, 0.0, 0.0]))
    return Piece(0, segment, (draw.normal(size=(5, 4)),), 8, 8.0, ends, beside=beside)


def test_sums_beside_a_sketch_are_kept_parked_and_merged() -> None:
    given = [_measured_piece(segment) for segment in range(16)]
    kept = from_bytes(to_bytes("fit", [0], TaskResult((given[0],), 0, 8)), "fit")
    assert kept is not None
    (piece,) = kept[1].pieces
    assert piece.beside is not None
    assert given[0].beside is not None
    assert piece.beside.matrices[0].tobytes() == given[0].beside.matrices[0].tobytes()
    assert piece.beside.centre is not None
    assert piece.beside.centre[1] == 0.5
    assert piece.matrices[0].tobytes() == given[0].matrices[0].tobytes()
    assert piece.centre is None
    wholes = []
    for room in (None, WaitingRoom(most_bytes=1)):
        fold = PieceFold(get_sketch("gaussian"), room=room)
        for number in (*range(1, 16), 0):
            fold.add(given[number])
        whole = fold.take(0)
        assert whole is not None
        assert whole.beside is not None
        wholes.append(whole)
    assert room is not None
    assert room.most_parked > 0
    assert wholes[0].beside is not None
    assert wholes[1].beside is not None
    assert wholes[0].beside.matrices[0].tobytes() == wholes[1].beside.matrices[0].tobytes()
    assert wholes[0].matrices[0].tobytes() == wholes[1].matrices[0].tobytes()
    assert wholes[0].beside.row_count == 16 * 8


Header = dict[str, Any]


def _forged(change: Callable[[Header], None], summary: Summary, version: int | None = None) -> bytes:
    data = summary.to_bytes()
    found, length = struct.unpack("<II", data[8:16])
    header = json.loads(data[16 : 16 + length])
    change(header)
    text = json.dumps(header).encode()
    start = b"PSKETCH\n" + struct.pack("<II", found if version is None else version, len(text))
    content = start + text + data[16 + length : -32]
    return content + hashlib.sha256(content).digest()


def _noise(**changes: Any) -> Callable[[Header], None]:
    return lambda header: header["noise"][0].update(changes)


def _scaled(factor: float) -> Callable[[Header], None]:
    return lambda header: header["noise"][0].update(residual_sum=factor * header["noise"][0]["residual_sum"])


def _private(header: Header) -> None:
    header.update(private=True, rows_dropped=None)
    header["parts"][0].update(seed=None, start=None, stop=None, contiguous=False)


FORGED: dict[str, tuple[Callable[[Header], None], str]] = {
    "negative": (_noise(residual_sum=-1.0), "'residual_sum' in its noise has a wrong type or value"),
    "zero": (_noise(residual_sum=0.0), "'residual_sum' in its noise has a wrong type or value"),
    "no number": (_noise(residual_sum="1"), "'residual_sum' in its noise has a wrong type or value"),
    "beyond doubles": (_noise(residual_sum=10**400), "'residual_sum' in its noise has a wrong type or value"),
    "freedom with a point": (_noise(freedom=298.0), "'freedom' in its noise has a wrong type or value"),
    "no freedom": (_noise(freedom=0), "'freedom' in its noise has a wrong type or value"),
    "too much freedom": (_noise(freedom=ROWS), "'freedom' of its noise is not"),
    "too little freedom": (_noise(freedom=ROWS - 3), "'freedom' of its noise is not"),
    "another rank": (_noise(freedom=ROWS - 1), "cannot be one of rows with the noise"),
    "another target": (_noise(target="a"), "'noise' is not that of its targets"),
    "no targets": (lambda header: header.update(targets=[]), "'noise' is not that of its targets"),
    "two of one": (lambda header: header.update(noise=2 * header["noise"]), "'noise' is not that of its targets"),
    "none": (lambda header: header.update(noise=[]), "'noise' in its header has a wrong type or value"),
    "a key more": (_noise(variance=1.0), "its noise has an unknown 'variance'"),
    "private": (_private, "which private files must not"),
    "twelve times less": (_scaled(1 / 12), "cannot be one of rows with the noise"),
    "twelve times more": (_scaled(12.0), "cannot be one of rows with the noise"),
    "left out": (lambda header: header.pop("noise"), "measured noise with version 5"),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_noise_is_refused(name: str) -> None:
    change, sentence = FORGED[name]
    summary = ps.sketch(table(), "y", ["a"], **ASKED)
    with pytest.raises(InputError, match=sentence):
        Summary.from_bytes(_forged(change, summary))


def test_targets_of_the_same_rows_have_the_same_freedom() -> None:
    """The second target is not looked at by the rank of its sketch: the first has told it."""
    summary = ps.sketch(table(), ["y", "z"], ["a", "far"], **ASKED)

    def one_less(header: Header) -> None:
        header["noise"][1]["freedom"] += 1

    with pytest.raises(InputError, match="noise with different 'freedom'"):
        Summary.from_bytes(_forged(one_less, summary))


def test_versions_parts_and_exact_files() -> None:
    summary = ps.sketch(table(), "y", ["a"], **ASKED)
    plain = ps.sketch(table(), "y", ["a"], **{**ASKED, "noise": "estimated"})
    assert struct.unpack("<I", summary.to_bytes()[8:12]) == (5,)
    assert struct.unpack("<I", plain.to_bytes()[8:12]) == (1,)
    far = ps.sketch(table(), "y", ["far"], **ASKED)
    assert far.low is not None
    assert Summary.from_bytes(far.to_bytes()).about.noise == far.about.noise
    for version in (1, 2):
        with pytest.raises(InputError, match="measured noise with version 5"):
            Summary.from_bytes(_forged(lambda header: None, summary, version))
    with pytest.raises(InputError, match="measured noise with version 5"):
        Summary.from_bytes(_forged(lambda header: None, plain, 5))
    one, other = ps.sketch(table(), "y", ["a"], n_partitions=2, **ASKED)
    both = one.stack(other)
    assert one.about.noise
    assert both.about.noise == ()
    with pytest.raises(InputError, match="several parts"):
        replace(both, about=replace(both.about, targets=("y",), noise=one.about.noise)).to_bytes()
    exact = ps.sketch(table(), "y", ["a"], sketch="triangular")
    with pytest.raises(InputError, match="exact ones need not"):
        replace(exact, about=replace(exact.about, noise=summary.about.noise)).to_bytes()


@pytest.mark.parametrize("kind", ["gaussian", "orthogonal"])
def test_a_sketch_shows_its_noise_by_the_law_that_is_claimed(kind: str) -> None:
    """With a tenth on either side a fifth of 200 honest sketches is refused: 40, give or take 5.7."""
    draw = np.random.default_rng(4)
    X = np.column_stack([np.ones(60), draw.normal(size=(60, 2))])
    rows = np.column_stack([X, X.sum(axis=1) + draw.normal(size=60)])
    away = rows[:, -1] - X @ np.linalg.lstsq(X, rows[:, -1])[0]
    noise = Noise("y", float(away @ away), 57)
    part = Part(site="", stream=0, start=0, stop=60, size=12, seed=0)

    def sketched(size: int, seed: int) -> Summary:
        if kind == "gaussian":
            matrix = draw.normal(size=(size, 60)) @ rows / np.sqrt(size)
        else:
            matrix = orthogonal_rows(rows, size, 60, seed)
        return Summary(matrix, ("(intercept)", "a", "b", "y"), kind, (part,), 60, 60.0)

    def may_be(summary: Summary, factor: float, chance: float) -> bool:
        forged = replace(noise, residual_sum=factor * noise.residual_sum)
        return may_be_noise(summary, [forged], get_sketch(kind), chance)

    refused = sum(not may_be(sketched(12, seed), 1.0, 0.1) for seed in range(200))
    assert abs(refused - 40) < 4 * 5.7
    # With no more rows than columns nothing shows; an orthogonal sketch of all rows tells the sum itself.
    assert may_be(sketched(3, 0), 1e-6, 1e-12)
    if kind == "orthogonal":
        assert may_be(sketched(60, 0), 1.0, 1e-12)
        assert not may_be(sketched(60, 0), 1.00001, 1e-12)


def test_what_cannot_be_measured_is_refused() -> None:
    for more, sentence in (
        ({"private": True, "random_state": None}, "does not go with private files"),
        ({"sketch": "triangular", "sketch_size": None}, "goes with sketches"),
        ({"noise": "known"}, "noise is 'known'"),
    ):
        with pytest.raises(InputError, match=sentence):
            ps.sketch(table(), "y", ["a"], **{**ASKED, **more})
    with pytest.raises(InputError, match="that of a target"):
        ps.sketch(table(), None, ["a", "y"], **ASKED)
