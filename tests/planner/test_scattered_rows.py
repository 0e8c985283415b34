"""A plan knows that a Hadamard transform of scattered rows is as long as all rows are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import partsketch as ps
from partsketch.planner.excess import expected_excess
from partsketch.planner.given import GivenRows
from partsketch.planner.survey import survey_of_sizes
from partsketch.theory.approximations import noise_factor
from partsketch.theory.moments import PartitionMoments
from tests.planner.settings import MACHINE


@pytest.mark.parametrize(("method", "size", "k"), [("stack", 1000, 4), ("partition", 250, 1)])
def test_of_sizes_alone(method: str, size: int, k: int) -> None:
    near = survey_of_sizes(2000, 3)
    lost, least = (
        expected_excess(survey, method, "srht", 250, 4).value for survey in (replace(near, scattered=True), near)
    )
    assert lost is not None
    assert least is not None
    shares = [noise_factor(size, 4, rows * k) for rows in (2048, 512)]
    averaging = expected_excess(near, "average", "srht", None, 4).value if method == "partition" else 0.0
    assert (lost - (averaging or 0)) / (least - (averaging or 0)) == pytest.approx(shares[0] / shares[1])


@pytest.mark.parametrize("method", ["partition", "stack"])
def test_of_rows(method: str) -> None:
    rng = np.random.default_rng(0)
    parts = [PartitionMoments(rng.standard_normal((500, 4)), 500) for _ in range(4)]
    near, far = (GivenRows(parts, "rows", scattered) for scattered in (False, True))
    averaging = near.relative_excess("average", "srht", None, 4) if method == "partition" else 0.0
    lost, least, gaussian = (
        given.relative_excess(method, kind, 250, 4) - averaging
        for given, kind in ((far, "srht"), (near, "srht"), (far, "gaussian"))
    )
    size, k = (1000, 4) if method == "stack" else (250, 1)
    assert lost / least == pytest.approx(noise_factor(size, 3, 2048 * k) / noise_factor(size, 3, 512 * k))
    assert lost / gaussian == pytest.approx(noise_factor(size, 3, 2048 * k) / noise_factor(size, 3))


@pytest.mark.parametrize(("partition_by", "is_scattered"), [("order", False), ("shuffle", True), ("site", True)])
def test_plans_of_tables(partition_by: str, is_scattered: bool) -> None:
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(rng.standard_normal((2000, 3)), columns=["a", "b", "y"]).assign(site=np.arange(2000) % 4)
    cut: dict[str, Any] = {} if partition_by == "site" else {"n_partitions": 4}
    planned = ps.plan(rows, "y", ["a", "b"], partition_by=partition_by, calibration=MACHINE, **cut)
    lost = {
        one.sketch: one.excess or 0.0 for one in planned.candidates if (one.method, one.sketch_size) == ("stack", 64)
    }
    ratio = noise_factor(256, 3, (2048 if is_scattered else 512) * 4) / noise_factor(256, 3)
    assert lost["srht"] / lost["gaussian"] == pytest.approx(ratio, rel=1e-6)
