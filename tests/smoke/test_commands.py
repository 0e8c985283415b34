"""The command line from start to end."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from .conftest import Command
from .rows import ROWS, exact_coefficients, table


@pytest.fixture
def rows(tmp_path: Path) -> str:
    pq.write_table(table(), tmp_path / "rows.parquet")
    return "rows.parquet"


def test_fit_predict_and_report(partsketch: Command, rows: str, tmp_path: Path) -> None:
    answer = json.loads(
        partsketch("fit", rows, "--target", "x3", "--method", "exact", "--json", "--model", "exact.json")
    )
    assert answer
    saved = json.loads((tmp_path / "exact.json").read_text(encoding="utf-8"))
    found = [*saved["intercept"], *(value for (value,) in saved["coefficients"])]
    np.testing.assert_allclose(found, exact_coefficients(), rtol=0, atol=1e-12)
    printed = partsketch(
        "fit", rows, "--target", "x3", "--method", "stack", "--partitions", "4", "--seed", "1", "--model", "stack.json"
    )
    assert "x1" in printed
    partsketch("predict", "exact.json", rows, "--output", "predictions.parquet")
    assert pq.read_table(tmp_path / "predictions.parquet").num_rows == ROWS
    pytest.importorskip("jinja2")
    partsketch("report", "exact.json", "stack.json", "--data", rows, "--output", "both.html")
    assert "<svg" in (tmp_path / "both.html").read_text(encoding="utf-8")


def test_sketch_and_combine(partsketch: Command, rows: str, tmp_path: Path) -> None:
    partsketch("sketch", rows, "--target", "x3", "--sketch-size", "100", "--seed", "1", "--output", "site.psk")
    assert "x1" in partsketch("combine", "site.psk", "--target", "x3", "--summary", "--model", "model.json")
    assert (tmp_path / "model.json").exists()


def test_plan_and_diagnose(partsketch: Command, rows: str) -> None:
    assert "exact" in partsketch("plan", rows, "--target", "x3", "--partitions", "4")
    found = json.loads(partsketch("diagnose", rows, "--target", "x3", "--partitions", "4", "--json"))
    assert found["row_count"] == ROWS
    assert found["advice"]


def test_the_study_has_its_data(partsketch: Command, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    partsketch("reproduce", "--output", "study", "--quick", "--only", "table-1", "--only", "figure-8", "--json")
    sizes = json.loads((tmp_path / "study" / "tables" / "table-1-data-sets.json").read_text(encoding="utf-8"))["rows"]
    assert {row["data_set"]: row["instances"] for row in sizes} == {"digits": 1797, "house": 20_640, "cover": 100_000}
    assert (tmp_path / "study" / "figures" / "figure-8.png").stat().st_size > 10_000


def test_version_and_help(partsketch: Command) -> None:
    assert "partsketch" in partsketch("--version")
    assert "reproduce" in partsketch("--help")
