"""A Hadamard transform is as long as the places of its rows, and certificates know of places without a row.

Rows of weight zero, rows that were dropped, and those of other partitions have places too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import partsketch as ps

NAMES = ["a", "b", "c"]


def table(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, 3))
    return pd.DataFrame(X, columns=NAMES).assign(y=X @ [1.0, 2.0, 3.0] + rng.standard_normal(rows), w=1.0)


@pytest.mark.filterwarnings("ignore::partsketch.PartsketchWarning")
@pytest.mark.parametrize("gone", ["weight zero", "missing"])
def test_rows_that_do_not_count_have_places(gone: str) -> None:
    """1,100 rows of which 800 count: P is 2,048, not 1,024."""
    rows, size, rank = table(1100), 500, 4
    rows.loc[:299, "w" if gone == "weight zero" else "a"] = 0.0 if gone == "weight zero" else np.nan
    model = ps.fit(
        rows, "y", NAMES, weights="w", method="whole", n_partitions=2, sketch="srht", sketch_size=size, random_state=1,
        missing="drop",
    )  # fmt: skip
    left_out = (2048 - size) / (2048 - rank)
    assert model.record.row_count == 800
    assert model.certificate.relative_excess_loss == pytest.approx(rank / (size - rank - 1) / 2 * left_out)


@pytest.mark.filterwarnings("ignore::partsketch.PartsketchWarning")
@pytest.mark.parametrize(("size", "kind"), [(9, "approximate"), (16, "exact")])
@pytest.mark.parametrize("method", ["whole", "stack"])
def test_only_a_sketch_of_all_places_loses_nothing(method: str, size: int, kind: str) -> None:
    """Nine rows have sixteen places, though the eight that count would have eight."""
    rows = table(9)
    rows.loc[4, "w"] = 0.0
    options: dict[str, Any] = {"n_partitions": 1, "sketch": "srht", "sketch_size": size, "random_state": 1}
    model = ps.fit(rows, "y", NAMES, weights="w", method=method, **options)
    assert model.certificate.kind == kind
    counted = rows[rows.w > 0]
    lost = float(np.sum((counted.y - model.predict(counted[NAMES])) ** 2))
    least = ps.fit(counted, "y", NAMES, method="exact").certificate.minimal_loss
    assert least is not None
    assert (lost - least < 1e-12) == (kind == "exact")


@pytest.mark.parametrize("method", ["partition", "stack"])
@pytest.mark.parametrize("partition_by", ["site", "shuffle"])
def test_rows_of_other_partitions_have_places(method: str, partition_by: str) -> None:
    """500 rows of each partition among 2,000 places: what was certified was 0.59 of the truth, 0.7 when shuffled."""
    certified, true = [], []
    for seed in range(60):
        rows = table(2000, seed).assign(site=np.arange(2000) % 4)
        cut: dict[str, Any] = {"n_partitions": 4} if partition_by == "shuffle" else {}
        model = ps.fit(
            rows, "y", NAMES, method=method, partition_by=partition_by, sketch="srht", sketch_size=250,
            random_state=seed, **cut,
        )  # fmt: skip
        design = np.column_stack([np.ones(2000), rows[NAMES]])
        best = np.linalg.lstsq(design, rows.y, rcond=None)[0]
        true.append(float(np.sum((model.predict(rows[NAMES]) - design @ best) ** 2)))
        assert model.certificate.excess_loss is not None
        certified.append(model.certificate.excess_loss)
    # The excess of a fit varies by 70%, the mean of 60 by 9%.
    assert np.mean(certified) == pytest.approx(np.mean(true), rel=0.27)
