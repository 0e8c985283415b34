"""Options of `partsketch fit` for files and machines that fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partsketch as ps
from partsketch.cli import run
from tests import damage
from tests.cli.test_cli import refused
from tests.damage import write_files


def fit_as_json(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[dict[str, Any], str]:
    assert run(["fit", *map(str, arguments), "--json"]) == 0
    printed = capsys.readouterr()
    return json.loads(printed.out), printed.err


def test_a_damaged_file_is_left_out_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_files(tmp_path)
    asked = (tmp_path, "--target", "y", "--partition-by", "file", "--method", "average")
    whole, errors = fit_as_json(capsys, *asked, "--on-partition-error", "drop")
    assert errors == ""
    assert whole["comparison"] is not None, "nothing was left out, so exact least squares is of the same rows"
    damage.hole(tmp_path / "part-1.parquet")
    damage.no_footer(tmp_path / "part-2.parquet")
    message = refused(capsys, "fit", *asked)
    assert "part-1.parquet" in message or "part-2.parquet" in message
    values, errors = fit_as_json(capsys, *asked, "--on-partition-error", "drop", "--min-partitions", 2)
    assert errors.startswith("Warning: 2 of 4 partitions were left out: 'part-2.parquet' (")
    assert "'part-1.parquet' (" in errors
    names = [part["name"] for part in values["model"]["record"]["partitions_left_out"]]
    assert sorted(names) == ["part-1.parquet", "part-2.parquet"]
    assert values["comparison"] is None, "exact least squares on all rows would be of other rows"
    message = refused(capsys, "fit", *asked, "--on-partition-error", "drop", "--min-partitions", 3)
    assert "fewer than min_partitions=3" in message


def test_a_deadline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_files(tmp_path)
    asked = (tmp_path, "--target", "y", "--method", "partition", "--partition-by", "file", "--seed", 1)
    values, _ = fit_as_json(capsys, *asked, "--deadline", 100, "--min-partitions", 4)
    assert values["model"]["record"]["options"]["deadline"] == 100
    assert values["comparison"] is None
    assert "no time" not in refused(capsys, "fit", *asked, "--deadline", 0)
    assert "method='exact' has none" in refused(capsys, "fit", *asked, "--deadline", 5, "--method", "exact")
    late = refused(capsys, "fit", *asked, "--deadline", 1e-9, "--min-partitions", 4)
    assert "within the deadline of 1e-09 s" in late


def test_a_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The comparison with exact least squares is kept too; without a seed, the one that was drawn first is used."""
    data = tmp_path / "data"
    data.mkdir()
    write_files(data)
    options = ("--method", "partition", "--partition-by", "file", "--checkpoint", tmp_path / "kept")
    asked = (data, "--target", "y", *options)
    first, _ = fit_as_json(capsys, *asked, "--engine", "local")
    assert (tmp_path / "kept" / "exact" / "checkpoint.json").is_file()
    again, _ = fit_as_json(capsys, *asked)
    assert again["model"] == first["model"]
    assert "checkpoint" not in first["model"]["record"]["options"]
    assert "seed differs" in refused(capsys, "fit", *asked, "--seed", 1)
    assert "partition_by differs" in refused(capsys, "fit", *asked, "--partition-by", "order")
    expected = ps.fit(
        str(data), "y", method="partition", partition_by="file", random_state=first["model"]["record"]["seed"]
    )
    assert np.array_equal(expected.coefficients, first["model"]["coefficients"])


def test_an_unknown_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path, *_) = write_files(tmp_path)
    assert "'mainframe'" in refused(capsys, "fit", path, "--target", "y", "--engine", "mainframe")
    assert "'mpi://host'" in refused(capsys, "fit", path, "--target", "y", "--engine", "mpi://host")
