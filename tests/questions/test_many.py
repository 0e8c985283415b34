"""Lists of regressions are solved side by side: each must be what it is when it is asked alone."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partsketch as ps
from partsketch.model.model import Model
from partsketch.model.unseen import unseen_noise
from partsketch.questions.specifications import Specification, compare, read_specifications

from .data import clustered_rows

COLUMNS = ["a", "b", "c", "z", "w", "same", "far", "y"]


@pytest.fixture(scope="module")
def summaries() -> ps.Summaries:
    rows = clustered_rows(rows=600, near=1e-6)
    rows = rows.assign(same=2 * rows["z"], far=1e9 + rows["w"] + 0.1 * rows["c"])
    return ps.summarise(rows, COLUMNS, partition_by="g")


def _numbers(model: Model) -> list[bytes]:
    inference = model.inferences[0]
    arrays = (model.coefficients, model.intercept, inference.standard_errors, inference.covariance)
    return [np.asarray(array, dtype=object if array is None else np.float64).tobytes() for array in arrays]


@pytest.mark.parametrize("vcov", ["iid", "CRV1", "CRV3"])
def test_a_list_gives_the_bits_of_each_alone(summaries: ps.Summaries, vcov: str) -> None:
    # Ordinary, nearly dependent, aliased and far columns, three kinds of intercept, penalties, all columns at once.
    asked = [
        Specification(f"{features} {intercept}", "y", features, intercept, vcov=vcov)
        for size in (1, 2, 7)
        for features in itertools.combinations([name for name in COLUMNS if name != "y"], size)
        for intercept in ("common", "partition", "none")
    ]
    asked.insert(5, Specification("penalty", "y", ("a", "c"), alpha=3.0))
    for specification, model in zip(asked, compare(summaries, asked), strict=True):
        intercept: Any = False if specification.intercept == "none" else specification.intercept
        alone = summaries.fit(
            "y", specification.features, intercept=intercept, alpha=specification.alpha, vcov=specification.vcov
        )
        assert _numbers(model) == _numbers(alone), specification.name
        assert model.record.warnings == alone.record.warnings
        assert model.certificate.to_dict() == alone.certificate.to_dict()


def test_the_first_that_is_refused_is_named(summaries: ps.Summaries) -> None:
    good = Specification("good", "y", ("a",))
    unknown = Specification("unknown", "y", ("nothing",))
    # CRV3 without one partition: refused only when the errors are made.
    one = Specification("one", "y", ("only",), vcov="CRV3")
    rows = clustered_rows(rows=600)
    with_only = ps.summarise(rows.assign(only=1.0 * (rows["g"] == 3)), ["a", "only", "y"], partition_by="g")
    with pytest.raises(ps.InputError, match="Specification 'one'"):
        compare(with_only, [good, one, unknown])
    with pytest.raises(ps.InputError, match="Specification 'unknown'"):
        compare(with_only, [good, unknown, one])


def test_the_quick_look_for_unseen_noise_overlooks_none() -> None:
    rng = np.random.default_rng(5)
    names, directions = tuple("abcd"), np.eye(4)
    for power in range(-20, 0):
        spread = rng.normal(size=(30, 4))
        spread[:, 2] = spread[:, 1] + 10.0**power * spread[:, 2]
        smallest = np.linalg.eigvalsh(spread.T @ spread)
        # The quick look must agree with the eigenvalues wherever these are well above their own rounding.
        expected = smallest[0] <= 1e-13 * smallest[-1]
        told = unseen_noise("CRV1", spread, directions, names, 29, noise=0.0)
        assert bool(told) == expected, power


def test_a_plus_in_backticks_is_part_of_a_name(tmp_path: Path) -> None:
    rows = clustered_rows(rows=60)[["a", "b", "c", "y"]].rename(columns={"a": "a+b"})
    (tmp_path / "list.csv").write_text("target,features\ny,`a+b` + c\ny,b+c\n")
    listed = read_specifications(tmp_path / "list.csv")
    assert [entry.features for entry in listed] == [("a+b", "c"), ("b", "c")]
    first = compare(ps.summarise(rows), listed)[0]
    np.testing.assert_array_equal(first.coefficients, ps.summarise(rows).fit("y", ["a+b", "c"]).coefficients)
