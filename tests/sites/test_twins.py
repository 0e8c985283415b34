"""Copies of a sketch are found whatever was done to their rows; sketches of other rows are not taken for copies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import partsketch as ps
from partsketch import InputError, Summary
from partsketch.sites.twins import find_twins
from partsketch.sketches.base import sketch_kinds


def _rows(seed: int, count: int = 300, far: float = 0.0) -> pa.Table:
    draw = np.random.default_rng(seed)
    a, b = draw.normal(size=(2, count))
    return pa.table({"a": a, "b": far + b, "y": a - b + draw.normal(size=count)})


def _sketch(site: str, seed: int, **options: Any) -> Summary:
    summary: Summary = ps.sketch(_rows(seed, far=options.pop("far", 0.0)), "y", site=site, random_state=5, **options)
    return summary


def _under_another_name(summary: Summary, matrix: np.ndarray[Any, Any]) -> Summary:
    part = replace(summary.parts[0], site="elsewhere", seed=None if summary.parts[0].seed is None else 123)
    return replace(summary, matrix=matrix, low=None, parts=(part,))


def _turn(size: int) -> np.ndarray[Any, Any]:
    return np.asarray(np.linalg.qr(np.random.default_rng(9).normal(size=(size, size)))[0])


DISGUISES = {
    "the same": lambda matrix: matrix,
    "rows in another order": lambda matrix: matrix[::-1],
    "rows with other signs": lambda matrix: matrix * np.where(np.arange(len(matrix)) % 3, 1.0, -1.0)[:, None],
    "both": lambda matrix: -matrix[np.random.default_rng(1).permutation(len(matrix))],
    "rows turned": lambda matrix: _turn(len(matrix)) @ matrix,
    "the last digit changed": lambda matrix: np.nextafter(matrix, np.inf),
}


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("kind", ["gaussian", "srht", "count_sketch", "row_sample", "triangular"])
def test_a_copy_under_another_name_is_refused(kind: str, disguise: str) -> None:
    size = {} if kind == "triangular" else {"sketch_size": 40}
    first = _sketch("here", 1, sketch=kind, **size)
    copy = _under_another_name(first, DISGUISES[disguise](first.matrix))
    other = _sketch("there", 2, sketch=kind, **size)
    ps.combine([first, other])
    with pytest.raises(InputError, match=r"'here' and the sketch of 'elsewhere' hold the same numbers|'elsewhere' and"):
        ps.combine([first, other, copy])


@pytest.mark.parametrize("factor", [1 + 1e-6, 1.1, 0.9])
@pytest.mark.parametrize("kind", ["gaussian", "orthogonal"])
def test_a_copy_times_a_number_is_refused(kind: str, factor: float) -> None:
    first, other = (_sketch(site, seed, sketch=kind, sketch_size=40) for site, seed in (("here", 1), ("there", 2)))
    copy = _under_another_name(first, factor * _turn(40) @ first.matrix)
    with pytest.raises(InputError, match="hold the same numbers"):
        ps.combine([first, other, copy])


@pytest.mark.parametrize("kind", [*sketch_kinds(), "triangular"])
def test_proportions_that_honest_files_have_are_no_copies(kind: str) -> None:
    # A balanced design at two sites, one with twice the rows, and a target that is constant there.
    size: dict[str, Any] = {} if kind == "triangular" else {"sketch_size": 6}
    a = np.tile([0.0, 1.0], 200)
    tables = [pa.table({"a": a[:rows], "y": np.zeros(rows)}) for rows in (200, 400)]
    made = [
        ps.sketch(table, "y", site=site, sketch=kind, random_state=seed, **size)
        for seed, (site, table) in enumerate(zip(("here", "there"), tables, strict=True))
    ]
    assert find_twins(made) is None
    # One direction alone: everything is proportional.
    constant = [
        ps.sketch(
            pa.table({"a": np.ones(rows), "y": np.zeros(rows)}),
            "y",
            site=str(rows),
            sketch=kind,
            random_state=rows,
            **size,
        )
        for rows in (200, 210)
    ]
    assert find_twins(constant) is None
    # Exact where no sketch is smaller than the rows.
    if kind == "orthogonal":
        with pytest.warns(UserWarning, match="nothing is compressed"):
            few = [
                ps.sketch(table.slice(0, rows), "y", site=str(rows), sketch=kind, random_state=rows, sketch_size=8)
                for rows, table in zip((4, 8), tables, strict=True)
            ]
        assert find_twins(few) is None


def test_a_copy_inside_a_larger_file_is_refused() -> None:
    first, second, third = (_sketch(name, seed, sketch_size=40) for seed, name in enumerate("abc"))
    larger = first.stack(second)
    copy = _under_another_name(second, -second.matrix[::-1])
    with pytest.raises(InputError, match="same numbers"):
        ps.combine([replace(larger, about=third.about), copy.stack(third)])
    within = first.stack(_under_another_name(first, first.matrix[::-1]))
    with pytest.raises(InputError, match="holds the same numbers twice"):
        ps.combine([within])


@pytest.mark.parametrize("far", [0.0, 1e6, 1e12])
@pytest.mark.parametrize("kind", sketch_kinds(exact=True))
def test_different_rows_are_no_copies(kind: str, far: float) -> None:
    """Twenty sites whose rows come from one distribution, columns far from zero among them."""
    size = {} if kind == "triangular" else {"sketch_size": 30}
    assert find_twins([_sketch(str(seed), seed, sketch=kind, far=far, **size) for seed in range(20)]) is None


def test_files_of_zeros_are_no_copies() -> None:
    first = _sketch("here", 1, sketch_size=20, fit_intercept=False)
    zeros = [_under_another_name(first, np.zeros_like(first.matrix)) for _ in range(2)]
    assert find_twins([first, *zeros]) is None
