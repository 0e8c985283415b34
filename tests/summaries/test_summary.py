"""The summary: merges that are right, merges that are refused, immutability, and a file that is exact or refused."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partsketch import InputError, LocalEngine, Summary
from partsketch.fitting.fit import Fit, fit_source
from partsketch.fitting.options import FitOptions
from partsketch.sources import array_source
from partsketch.summaries.provenance import About, Part
from partsketch.summaries.stack import stack_all

COLUMNS = ("(intercept)", "x0", "x1", "y")


def options(method: str, k: int = 4, **other: Any) -> FitOptions:
    values: dict[str, Any] = {
        "method": method, "n_partitions": k, "partition_by": "order", "remainder": "spread", "sketch": "gaussian",
        "sketch_size": 12, "fit_intercept": True, "seed": 1, **other,
    }  # fmt: skip
    return FitOptions(**values)


def fitted(method: str, rows: int = 200, k: int = 4, **other: Any) -> Fit:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(rows, 2))
    y = X @ [1.0, -2.0] + generator.normal(size=rows)
    return fit_source(array_source(X, y), options(method, k, **other), LocalEngine(1))


def sketch(start: int, stop: int, *, stream: int = 0, seed: int = 1, site: str = "", size: int = 5) -> Summary:
    """A made-up Gaussian summary; its values tell where it comes from."""
    matrix = np.random.default_rng([start, stop, stream, seed]).normal(size=(size, 4))
    rows = stop - start
    return Summary(matrix, COLUMNS, "gaussian", (Part(site, stream, start, stop, size, seed),), rows, float(rows))


def exact(start: int, stop: int, *, stream: int = 0, site: str = "") -> Summary:
    matrix = np.triu(np.random.default_rng([start, stop]).normal(size=(4, 4)))
    rows = stop - start
    matrix[0, 0] = rows**0.5
    return Summary(matrix, COLUMNS, "triangular", (Part(site, stream, start, stop, 4, None),), rows, float(rows))


def test_stack_of_all_exact_summaries_is_the_exact_summary() -> None:
    stacked = reduce(Summary.stack, fitted("average").summaries)
    (whole,) = fitted("exact").summaries
    np.testing.assert_allclose(stacked.matrix, whole.matrix, rtol=0, atol=1e-12)
    assert stacked.row_count == whole.row_count == 200
    assert stacked.weight_sum == whole.weight_sum == 200.0
    assert len(stacked.parts) == 4


@settings(max_examples=20)
@given(cuts=st.sets(st.integers(1, 299), max_size=5), seed=st.integers(0, 2**64 - 1))
def test_sum_of_sketches_of_parts_is_the_sketch_of_the_whole(cuts: set[int], seed: int) -> None:
    """The same sketch rows on other rows of the data: any cutting gives the same sum."""
    generator = np.random.default_rng(3)
    X, y = generator.normal(size=(300, 2)), generator.normal(size=300)
    (whole,) = fit_source(array_source(X, y), options("whole", 1, seed=seed), LocalEngine(1)).summaries
    borders = [0, *sorted(cuts), 300]
    pieces = []
    for start, stop in pairwise(borders):
        # Row numbers, not positions, choose the random numbers: read only these rows of the whole.
        weights = np.zeros(300)
        weights[start:stop] = 1.0
        source = array_source(X, y, weights)
        (piece,) = fit_source(source, options("whole", 1, seed=seed), LocalEngine(1)).summaries
        part = replace(piece.parts[0], start=start, stop=stop)
        pieces.append(replace(piece, parts=(part,), row_count=stop - start))
    total = reduce(Summary.sum, pieces)
    np.testing.assert_allclose(total.matrix, whole.matrix, rtol=0, atol=1e-12)
    assert total.parts == whole.parts
    assert (total.row_count, total.weight_sum) == (300, 300.0)


def test_stack_of_sketches_puts_one_below_the_other() -> None:
    first, second = sketch(0, 10), sketch(10, 20, stream=1)
    both = first.stack(second)
    assert np.array_equal(both.matrix, np.vstack([first.matrix, second.matrix]))
    assert both.parts == first.parts + second.parts
    assert both.row_count == 20


def test_sum_adds_and_joins_the_rows() -> None:
    first, second = sketch(0, 10), sketch(10, 25)
    for total in (first.sum(second), second.sum(first)):
        assert np.array_equal(total.matrix, first.matrix + second.matrix)
        assert [(part.start, part.stop) for part in total.parts] == [(0, 25)]
        assert total.row_count == 25


REFUSED_STACKS = [
    (sketch(0, 10), exact(10, 20), "gaussian summary with a triangular"),
    (exact(0, 10), replace(exact(10, 20), columns=("(intercept)", "x0", "z", "y")), "one only: x1, z"),
    (exact(0, 10), replace(exact(10, 20), columns=("(intercept)", "x1", "x0", "y")), "order differs"),
    (exact(0, 10), exact(5, 20), "rows 5 to 10"),
    (exact(0, 10), exact(0, 10), "count twice"),
    (sketch(0, 10), sketch(0, 10, seed=2), "count twice"),
    (sketch(0, 10), sketch(10, 20), "random numbers of seed 1, stream 0"),
    (sketch(0, 10), sketch(0, 10, site="elsewhere"), "random numbers"),
    (sketch(0, 10).stack(sketch(10, 20, stream=1)), sketch(30, 40, stream=1), "random numbers"),
]


@pytest.mark.parametrize(("first", "second", "message"), REFUSED_STACKS)
def test_wrong_stacks_are_refused(first: Summary, second: Summary, message: str) -> None:
    for one, other in ((first, second), (second, first)):
        with pytest.raises(InputError, match=r"stack|merge"):
            one.stack(other)
    with pytest.raises(InputError, match=message):
        first.stack(second)


def test_rows_of_other_origins_may_be_stacked() -> None:
    both = exact(0, 10, site="north").stack(exact(0, 10, site="south"))
    assert both.row_count == 20
    assert sketch(0, 10, site="north").stack(sketch(0, 10, site="south", seed=2)).row_count == 20


def test_the_same_rows_under_two_partition_numbers_count_twice() -> None:
    whole = fitted("exact").summaries[0]
    second_quarter = fitted("average").summaries[1]
    with pytest.raises(InputError, match="twice"):
        whole.stack(second_quarter)


REFUSED_SUMS = [
    (exact(0, 10), exact(10, 20), "stacking"),
    (sketch(0, 10), exact(10, 20), "gaussian summary with a triangular"),
    (sketch(0, 10), sketch(10, 20, seed=2), "same sketch rows"),
    (sketch(0, 10), sketch(10, 20, stream=1), "same sketch rows"),
    (sketch(0, 10), sketch(10, 20, size=6), "same sketch rows"),
    (sketch(0, 10), sketch(5, 20), "rows 5 to 10"),
    (sketch(0, 10), sketch(11, 20), "follow one another"),
    (sketch(0, 10), replace(sketch(10, 20), columns=("(intercept)", "x0", "z", "y")), "one only"),
    (sketch(0, 10).stack(sketch(10, 20, stream=1)), sketch(20, 30), "same sketch rows"),
]


@pytest.mark.parametrize(("first", "second", "message"), REFUSED_SUMS)
def test_wrong_sums_are_refused(first: Summary, second: Summary, message: str) -> None:
    with pytest.raises(InputError, match=message):
        first.sum(second)
    with pytest.raises(InputError):
        second.sum(first)


def test_merging_is_associative() -> None:
    """Sketches to the last bit when stacked; exact ones to rounding."""
    a, b, c = fitted("partition").summaries[:3]
    assert a.stack(b).stack(c) == a.stack(b.stack(c))
    x, y, z = fitted("average").summaries[:3]
    np.testing.assert_allclose(x.stack(y).stack(z).matrix, x.stack(y.stack(z)).matrix, rtol=0, atol=1e-12)


def test_a_summary_cannot_be_changed() -> None:
    values = np.ones((5, 4))
    summary = Summary(values, COLUMNS, "gaussian", (Part("", 0, 0, 10, 5, 1),), 10, 10.0)
    values[0, 0] = 7.0
    assert summary.matrix[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        summary.matrix[0, 0] = 2.0
    with pytest.raises(FrozenInstanceError):
        summary.row_count = 3  # type: ignore[misc]
    before = summary.to_bytes()
    summary.stack(sketch(10, 20, stream=3))
    summary.sum(sketch(10, 20))
    summary.select(("y",))[...] = 9.0
    assert summary.to_bytes() == before


def test_select_picks_columns_by_name() -> None:
    summary = sketch(0, 10)
    assert np.array_equal(summary.select(("y", "x0")), summary.matrix[:, [3, 1]])
    with pytest.raises(InputError, match="no column 'z'"):
        summary.select(("x0", "z"))


def test_impossible_summaries_are_refused() -> None:
    part = (Part("", 0, 0, 1, 1, 1),)
    with pytest.raises(InputError, match="shape"):
        Summary(np.ones((2, 3)), COLUMNS, "gaussian", part, 1, 1.0)
    with pytest.raises(InputError, match="distinct"):
        Summary(np.ones((2, 2)), ("x", "x"), "gaussian", part, 1, 1.0)


ODD_VALUES = st.floats(allow_nan=False, allow_infinity=False, width=64)


@settings(max_examples=30)
@given(
    values=st.lists(ODD_VALUES, min_size=6, max_size=6),
    weight=st.floats(0, allow_infinity=False),
    name=st.text(min_size=1).filter(lambda text: text != "y" and text.isprintable()),
    seed=st.integers(0, 2**64 - 1),
    rows=st.integers(1, 2**53 - 5),
)
def test_round_trip_through_bytes_is_exact(values: list[float], weight: float, name: str, seed: int, rows: int) -> None:
    """Negative zeros, subnormal and huge numbers, names in any script."""
    matrix = np.array(values).reshape(3, 2)
    parts = (Part("männer", 3, 5, 5 + rows, 3, seed),)
    summary = Summary(matrix, (name, "y"), "gaussian", parts, rows, weight, About(weighted=True))
    again = Summary.from_bytes(summary.to_bytes())
    assert again == summary
    assert again.matrix.tobytes() == summary.matrix.tobytes()
    assert again.to_bytes() == summary.to_bytes()
    assert hash(again) == hash(summary)
    assert not again.matrix.flags.writeable


@pytest.mark.parametrize("method", ["exact", "average", "partition", "whole"])
def test_round_trip_through_a_file_is_exact(tmp_path: Path, method: str) -> None:
    for number, summary in enumerate(fitted(method).summaries):
        summary.save(tmp_path / f"{number}.psk")
        assert Summary.load(tmp_path / f"{number}.psk") == summary
        assert pickle.loads(pickle.dumps(summary)) == summary
    assert len({summary.matrix.tobytes() for summary in fitted(method).summaries}) == len(fitted(method).summaries)


def test_summaries_that_differ_are_not_equal() -> None:
    summary = sketch(0, 10)
    assert summary != sketch(0, 11)
    assert summary != replace(summary, row_count=11)
    assert summary != replace(summary, matrix=np.nextafter(summary.matrix, np.inf))
    assert summary != "summary"


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Cannot read"):
        Summary.load(tmp_path / "nothing.psk")
    with pytest.raises(InputError, match="no folder"):
        sketch(0, 10).save(tmp_path / "nowhere" / "a.psk")
    with pytest.raises(InputError, match="is a folder"):
        sketch(0, 10).save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.psk"
    sketch(0, 10).save(path)
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises((InputError, OSError)):
        sketch(0, 20).save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.psk"]


@pytest.mark.parametrize("with_low", [False, True])
def test_stacking_many_at_once_is_stacking_two_by_two(with_low: bool) -> None:
    many = [sketch(10 * i, 10 * i + 10, stream=i) for i in range(5)]
    if with_low:
        many[2] = replace(many[2], low=1e-18 * many[2].matrix)
    assert stack_all(many) == reduce(Summary.stack, many)
    assert stack_all(many[:1]) == many[0]
    factors = [exact(10 * i, 10 * i + 10) for i in range(3)]
    assert stack_all(factors) == reduce(Summary.stack, factors)
    for wrong in (sketch(5, 15, stream=7), sketch(90, 95, stream=1), factors[0]):
        with pytest.raises(InputError, match="Cannot"):
            stack_all([*many, wrong])
