"""What candidates are predicted to lose and to send, each from its formula written out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import partsketch as ps
from partsketch.fitting.options import FitOptions
from partsketch.planner.auto import plan_fit
from partsketch.planner.choice import make_plan
from partsketch.planner.excess import expected_excess
from partsketch.planner.survey import look, survey_of_sizes
from partsketch.sources import array_source, open_source
from tests.planner.settings import KINDS, MACHINE

N, FEATURES, K, M = 50_000, 9, 5, 200
D = FEATURES + 1


def share(method: str, sketch: str = "gaussian", size: int | None = M, k: int = K) -> Any:
    return expected_excess(survey_of_sizes(N, FEATURES), method, sketch, size, k)


def test_losses_from_sizes_alone() -> None:
    """E[D] = d (n − (d + 1))/(n − k(d + 1)); losses as parts of σ²(n − d)."""
    divergence = D * (N - D - 1) / (N - K * (D + 1))
    whole = share("whole")
    assert (whole.value, whole.kind) == (pytest.approx(D / (M - D - 1) / K), "exact")
    average = share("average", "triangular", None)
    assert (average.value, average.kind) == (pytest.approx((divergence - D) / (N - D)), "approximate")
    partition = share("partition")
    sketching = (N - K * D) / K / (M - D - 1) * divergence
    assert (partition.value, partition.kind) == (pytest.approx((sketching + divergence - D) / (N - D)), "approximate")
    stack = share("stack")
    assert (stack.value, stack.kind) == (pytest.approx(D / (K * M - D - 1)), "approximate")
    assert (share("stack", k=1).value, share("stack", k=1).kind) == (pytest.approx(D / (M - D - 1)), "exact")
    assert (share("exact").value, share("average", "triangular", None, 1).value) == (0.0, 0.0)


def test_rotations_of_finitely_many_rows_lose_less() -> None:
    """(P − m)/((m − r − 1)(P − r)), P the next power of two, or the rows themselves for samples."""
    for sketch, rows in (("srht", 2**16), ("orthogonal", N), ("row_sample", N), ("leverage_sample", N)):
        factor = (rows - M) / ((M - D - 1) * (rows - D))
        assert share("whole", sketch).value == pytest.approx(D * factor / K)
        assert share("whole", sketch).kind == ("exact" if sketch == "orthogonal" else "approximate")
    for sketch in ("sparse_sign", "count_sketch"):
        assert share("whole", sketch).value == pytest.approx(D / (M - D - 1) / K)
        assert share("whole", sketch).kind == "approximate"


def test_nothing_is_predicted_where_a_few_rows_decide() -> None:
    uneven = replace(survey_of_sizes(N, FEATURES), uneven_leverage=True)
    for method, sketch in (("whole", "row_sample"), ("stack", "row_sample"), ("average", "triangular"),
                           ("partition", "gaussian")):  # fmt: skip
        assert expected_excess(uneven, method, sketch, M, K).value is None
    assert expected_excess(uneven, "whole", "leverage_sample", M, K).value is not None
    assert expected_excess(uneven, "whole", "gaussian", M, K).value is not None


def test_what_candidates_send_and_how_often_they_read() -> None:
    survey = replace(survey_of_sizes(N, FEATURES), targets=2)
    plan = make_plan(survey, None, K, M, calibration=MACHINE, with_extras=False)
    width = D + 2
    for one in plan.candidates:
        rows = width if one.sketch is None else M
        summaries = rows * width * 8 * (K if one.method == "whole" else 1)
        assert one.summary_bytes_per_partition == summaries
        coefficients = D * 2 * 8
        assert one.bytes_per_partition == (coefficients if one.method in ("average", "partition") else summaries)
        assert one.passes == (2 if one.sketch == "leverage_sample" else 1)


def test_sizes_that_are_proposed_have_a_variance() -> None:
    """d + 4 rows at least, and no more than a partition has, whatever bytes or losses would allow."""
    for limits in (None, {"max_bytes_per_partition": 9.0}, {"max_excess": 1e6}, {"max_excess": 1e-9}):
        plan = make_plan(survey_of_sizes(2_000, FEATURES), limits, 8, None, calibration=MACHINE, with_extras=False)
        sizes = {(one.method, one.sketch): one.sketch_size for one in plan.candidates if one.sketch_size is not None}
        assert {kind for _, kind in sizes} == set(KINDS)
        for (method, _), size in sizes.items():
            assert D + 4 <= size <= (2_000 if method == "whole" else 250)
        if limits == {"max_excess": 1e6}:
            assert set(sizes.values()) == {D + 4}


def test_all_rows_say_what_averages_lose() -> None:
    """Uneven scales, so that D is far from d: (1/k²) Σ tr(G G_i⁻¹) ℓ_i/(m − d − 1) + ‖X(ᾱ − a*)‖², over ℓ."""
    draw = np.random.default_rng(2)
    X = draw.normal(size=(900, 3)) * np.repeat([1.0, 2.0, 5.0], 300)[:, None]
    y = X.sum(axis=1) + draw.normal(size=900)
    options = FitOptions("average", 3, "order", "spread", "gaussian", None, True, 0)
    survey = look(array_source(X, y), options)
    A = np.column_stack([np.ones(900), X])
    solve = np.linalg.lstsq
    parts = [(A[i : i + 300], y[i : i + 300]) for i in (0, 300, 600)]
    fits = [solve(F, t)[0] for F, t in parts]
    losses = [float(np.sum((t - F @ a) ** 2)) for (F, t), a in zip(parts, fits, strict=True)]
    exact = solve(A, y)[0]
    loss = float(np.sum((y - A @ exact) ** 2))
    averaging = float(np.sum((A @ (np.mean(fits, axis=0) - exact)) ** 2))
    traces = [np.trace(A.T @ A @ np.linalg.inv(F.T @ F)) for F, _ in parts]
    sketching = sum(trace * one / (30 - 4 - 1) for trace, one in zip(traces, losses, strict=True)) / 9
    found = {method: expected_excess(survey, method, "gaussian", 30, 3) for method in ("average", "partition", "whole")}
    assert found["average"].value == pytest.approx(averaging / loss)
    assert found["partition"].value == pytest.approx((sketching + averaging) / loss)
    assert found["whole"].value == pytest.approx(4 / (30 - 4 - 1) / 3)
    assert {one.kind for one in found.values()} == {"exact"}
    assert expected_excess(survey, "stack", "gaussian", 30, 3).kind == "approximate"
    assert expected_excess(survey, "stack", "gaussian", 30, 1).kind == "exact"
    assert expected_excess(survey, "whole", "srht", 30, 3).kind == "approximate"


def test_a_plan_has_the_partitions_that_the_fit_will_have(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    rows = pa.table({"a": draw.normal(size=90), "y": draw.normal(size=90), "site": ["n", "s"] * 45})
    for number in range(3):
        pq.write_table(rows.slice(30 * number, 30), tmp_path / f"{number}.parquet")
    options = FitOptions("auto", 8, "file", "spread", "gaussian", None, True, 0)
    source = open_source(str(tmp_path / "*.parquet"), target="y", features=["a"])
    averages = [one for one in plan_fit(source, options, "local").candidates if one.method == "average"]
    assert [one.partitions for one in averages] == [3]
    source = open_source(rows, target="y", features=["a"], partition_column="site")
    averages = [
        one for one in plan_fit(source, replace(options, partition_by="site"), "local").candidates
        if one.method == "average"
    ]  # fmt: skip
    assert [one.partitions for one in averages] == [2]


def test_stacked_sketches_are_predicted_with_the_weights_of_the_fit() -> None:
    """Five sites of 100 rows and one of 3,000: equal weights, which are the default, lose four times as much."""
    rng = np.random.default_rng(0)
    site = np.repeat(np.arange(6), [100] * 5 + [3000])
    X = rng.normal(size=(len(site), 5))
    table = {**{f"x{j}": X[:, j] for j in range(5)}, "y": X.sum(axis=1) + rng.normal(size=len(site)), "site": site}
    found = {}
    for asked in ("rows", "auto", "information"):
        options: Any = {"partition_by": "site", "sketch_size": 24, "calibration": MACHINE, "weighting": asked}
        made = ps.plan(table, "y", [f"x{j}" for j in range(5)], **options)
        excess = next(c.excess for c in made.candidates if (c.method, c.sketch) == ("stack", "gaussian"))
        assert excess is not None
        found[asked] = excess
    assert found["rows"] > 3 * found["auto"]
    assert found["auto"] == found["information"]
    fit = ps.fit(table, "y", [f"x{j}" for j in range(5)], method="stack", partition_by="site", sketch_size=24)
    assert fit.record.reasons["weighting"].startswith("rows")
    with pytest.raises(ps.InputError, match="weighting is 'best': choose from auto, rows, information"):
        ps.plan(rows=1000, columns=5, weighting="best", calibration=MACHINE)
