"""Models and their pages, made once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from partsketch import Model, fit, load
from partsketch.cli import run

HOSTILE = "<script>alert(1)</script>"
QUOTED = "a\"b'c&d</style><img src=x onerror=alert(2)>"
FEATURES = [HOSTILE, QUOTED, *(f"x{i}" for i in range(6))]
ROWS = 4000


def table(rows: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(rows, len(FEATURES)))
    X[: rows // 4] *= 1.7  # the first of four partitions is unlike the others
    y = 2 + X @ np.array([1.0, -1.0, 0.5, 0.0, 0.0, 0.0, 2.0, -0.3]) + rng.normal(size=rows)
    return pa.table({**dict(zip(FEATURES, X.T, strict=True)), "y": y})


@dataclass(frozen=True)
class Reports:
    """A folder with data, a model, its page, and a page of three models."""

    folder: Path
    model: Model

    @property
    def single(self) -> str:
        return (self.folder / "single.html").as_uri()

    @property
    def several(self) -> str:
        return (self.folder / "several.html").as_uri()


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Reports:
    folder = tmp_path_factory.mktemp("reports")
    data = folder / "rows.parquet"
    pq.write_table(table(), data)
    common = ["fit", str(data), "--target", "y", "--partitions", "4", "--seed", "3"]
    for method in ("partition", "average", "exact"):
        pages = ["--report", str(folder / "single.html")] if method == "partition" else []
        assert run([*common, "--method", method, "--model", str(folder / f"{method}.json"), *pages]) == 0
    models = [str(folder / f"{method}.json") for method in ("partition", "average", "exact")]
    assert run(["report", *models, "--output", str(folder / "several.html"), "--data", str(data)]) == 0
    return Reports(folder, load(folder / "partition.json"))


@pytest.fixture(scope="session")
def wide_model() -> Model:
    """Two thousand coefficients: a small model, stretched, because fitting so many takes longer than showing them."""
    rng = np.random.default_rng(0)
    small = fit(table(500), target="y", method="exact", random_state=0)
    values = rng.normal(size=(2000, 1))
    inference = small.inferences[0]
    zeros = np.zeros(2001)
    return replace(
        small,
        feature_names=tuple(f"x{i}" for i in range(2000)),
        coefficients=values,
        partition_coefficients=values[None],
        inferences=(
            replace(
                inference,
                standard_errors=rng.uniform(0.1, 1, size=2001),
                around_exact=replace(inference.around_exact, centre=zeros, standard_errors=zeros),
            ),
        ),
    )
