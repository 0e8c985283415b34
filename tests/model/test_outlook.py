"""The outlook against the theory on the rows themselves, and against the certificate of the fit."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import partsketch as ps
from partsketch import theory

#: The outlook keeps six digits.
SIX_DIGITS = 5e-6
RNG = np.random.default_rng(8)
ROWS, COLUMNS, PARTITIONS = 2400, 4, 6
X = RNG.normal(size=(ROWS, COLUMNS))
X[:400] *= 2
Y = X @ [1.0, -1.0, 0.5, 0.0] + RNG.normal(size=ROWS)
TABLE = pa.table({**{f"x{i}": X[:, i] for i in range(COLUMNS)}, "y": Y})
DESIGN = np.column_stack([np.ones(ROWS), X])


def parts(k: int) -> list[tuple[np.ndarray, np.ndarray]]:
    return list(zip(np.split(DESIGN, k), np.split(Y, k), strict=True))


def fitted(method: str, **options: object) -> ps.Model:
    return ps.fit(TABLE, target="y", method=method, n_partitions=PARTITIONS, random_state=0, **options)  # type: ignore[arg-type]


def test_exact_summaries_give_the_theory_on_the_rows() -> None:
    outlook = fitted("average").outlook
    grams = [rows.T @ rows for rows, _ in parts(PARTITIONS)]
    np.testing.assert_allclose(np.array(outlook.divergences), theory.divergence_matrix(grams), rtol=SIX_DIGITS)
    assert outlook.divergences_are_exact
    known = [point for point in outlook.targets[0].over_partitions if point.basis == "exact"]
    assert [point.partitions for point in known] == [1, 2, 3, 6]
    for point in known:
        split = parts(point.partitions)
        assert point.partition == pytest.approx(theory.partition_excess_loss(split, point.sketch_size), rel=SIX_DIGITS)
        assert point.average == pytest.approx(theory.unsketched_average_excess_loss(split), rel=SIX_DIGITS, abs=1e-9)
        loss = theory.pooled_moments(split).loss
        whole = theory.whole_excess_loss(loss, COLUMNS + 1, point.sketch_size, point.partitions)
        assert point.whole == pytest.approx(whole, rel=SIX_DIGITS)
    for point in outlook.targets[0].over_sizes:
        assert point.partitions == PARTITIONS
        expected = theory.partition_excess_loss(parts(PARTITIONS), point.sketch_size)
        assert point.partition == pytest.approx(expected, rel=SIX_DIGITS)


def test_sketches_estimate_the_same() -> None:
    # 400 rows of a sketch for 5 columns: the estimates of D_ij have a standard deviation of about √(2·5/400)·√5 ≈ 10%
    # of 5 at most, and there are 36 of them.
    outlook = fitted("partition", sketch_size=400).outlook
    grams = [rows.T @ rows for rows, _ in parts(PARTITIONS)]
    np.testing.assert_allclose(np.array(outlook.divergences), theory.divergence_matrix(grams), rtol=0.35)
    assert not outlook.divergences_are_exact
    for point in outlook.targets[0].over_partitions:
        if point.basis == "estimated":
            expected = theory.partition_excess_loss(parts(point.partitions), point.sketch_size)
            assert point.partition == pytest.approx(expected, rel=0.2)


@pytest.mark.parametrize("method", ["average", "partition", "whole", "stack"])
def test_the_curves_pass_through_the_certificate(method: str) -> None:
    model = fitted(method, sketch_size=100)
    curves = model.outlook.targets[0]
    for points, place in ((curves.over_partitions, "partitions"), (curves.over_sizes, "sketch_size")):
        chosen = curves.over_sizes[0].partitions if place == "partitions" else curves.over_partitions[0].sketch_size
        here = next(point for point in points if getattr(point, place) == chosen)
        # The stacked curve is for like partitions; here one of them is twice as large.
        tolerance = 0.15 if method == "stack" else SIX_DIGITS
        assert getattr(here, method) == pytest.approx(model.certificate.excess_loss, rel=tolerance)


def test_without_partitions_the_curves_are_assumed() -> None:
    outlook = fitted("exact").outlook
    assert outlook.divergences is None
    assert "no partitions" in outlook.divergences_reason
    assert {point.basis for point in outlook.targets[0].over_partitions} == {"assumed"}
    for point in outlook.targets[0].over_partitions:
        assert point.average is not None


def test_the_outlook_survives_files_and_pickles(tmp_path: Path) -> None:
    model = fitted("partition")
    model.save(tmp_path / "model.json")
    assert ps.load(tmp_path / "model.json").outlook == model.outlook
    text = pickle.dumps(model)
    assert pickle.loads(text).outlook == model.outlook
    assert b"partsketch.summaries.summary" not in text


def test_more_partitions_than_are_kept() -> None:
    outlook = ps.fit(TABLE, target="y", method="average", n_partitions=70, random_state=0).outlook
    assert outlook.divergences is None
    assert "64" in outlook.divergences_reason
