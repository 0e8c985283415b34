"""Every option of `partsketch fit` reaches the fit: the record tells it, and the numbers are those of the function."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import partsketch as ps
from partsketch.cli import run
from tests.by_hand import judged

ROWS = 400


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    draw = np.random.default_rng(5)
    a, b = draw.normal(size=(2, ROWS))
    level = np.array(["u", "v", "w"])[np.arange(ROWS) % 3]
    y = a - 2 * b + (level == "v") + draw.normal(size=ROWS)
    holes = np.arange(ROWS) % 50 == 7
    columns: dict[str, Any] = {
        "a": a, "b": b, "level": level, "y": y, "z": a * 3 + b, "w": draw.uniform(0.1, 3.0, ROWS),
        "holes": pa.array(a, mask=holes), "site": np.array(["n", "s"])[np.arange(ROWS) // 200],
    }  # fmt: skip
    table = pa.table(columns)
    pq.write_table(table.slice(0, 150), folder / "1.parquet")
    pq.write_table(table.slice(150), folder / "2.parquet")
    return folder


CASES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "sketch": (["--sketch", "srht", "-m", "40"], {"sketch": "srht", "sketch_size": 40}),
    "sparsity": (["--sketch", "sparse_sign", "--sparsity", "3"], {"sketch": "sparse_sign", "sparsity": 3}),
    "no intercept": (["--no-intercept"], {"fit_intercept": False}),
    "weights": (["--weights", "w"], {"weights": "w"}),
    "alpha": (["--alpha", "7.5"], {"alpha": 7.5}),
    "averaging": (["--averaging", "inverse_variance"], {"averaging": "inverse_variance"}),
    "partitions": (["--partitions", "3"], {"n_partitions": 3}),
    "shuffle": (["--partition-by", "shuffle"], {"partition_by": "shuffle"}),
    "by file": (["--partition-by", "file"], {"partition_by": "file"}),
    "by column": (["--partition-by", "site"], {"partition_by": "site"}),
    "remainder": (["--partitions", "7", "--remainder", "drop"], {"n_partitions": 7, "remainder": "drop"}),
    "encode": (["--encode", "--features", "a,level"], {"encode": True, "features": ["a", "level"]}),
    "missing": (["--features", "holes", "--missing", "drop"], {"features": ["holes"], "missing": "drop"}),
    "targets": (["--target", "z"], {"target": ["y", "z"]}),
}


@pytest.mark.parametrize("method", ["average", "partition"])
@pytest.mark.parametrize("case", CASES)
def test_options_reach_the_fit(case: str, method: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, options = CASES[case]
    given = ["fit", str(folder / "*.parquet"), "--target", "y", "--seed", "11", "--method", method, "--json"]
    features = [] if "--features" in arguments else ["--features", "a, b"]
    assert run([*given, *features, *arguments]) == 0
    values = json.loads(capsys.readouterr().out)
    asked: dict[str, Any] = {"target": "y", "features": ["a", "b"], "random_state": 11, "method": method, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.PartsketchWarning)
        expected = ps.fit(str(folder / "*.parquet"), **asked).to_dict()
    found = values["model"]
    for name in ("coefficients", "intercept", "feature_names", "target_names", "certificates", "encoding"):
        assert found[name] == json.loads(json.dumps(expected[name])), name
    assert found["record"]["options"] == expected["record"]["options"]
    for name in ("row_count", "weight_sum", "rows_dropped", "rows_left_out", "seed", "sketch_size"):
        assert found["record"][name] == expected["record"][name], name


def test_exact_least_squares_beside_a_fit_is_of_the_same_rows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Weighted, without the remainder, without an intercept; and without the penalty of a ridge fit."""
    table = pq.read_table(folder)
    X = np.column_stack([table["a"].to_numpy(), table["b"].to_numpy()])[:399]
    y, w = table["y"].to_numpy()[:399], table["w"].to_numpy()[:399]
    expected = judged(X, y, w, intercept=False)
    given = ["fit", str(folder), "--target", "y", "--features", "a,b", "--weights", "w", "--no-intercept", "--json"]
    assert run([*given, "--partitions", "3", "--remainder", "drop", "--method", "average", "--alpha", "30"]) == 0
    comparison = json.loads(capsys.readouterr().out)["comparison"]
    np.testing.assert_allclose(np.ravel(comparison["exact_coefficients"]), expected.coefficients, rtol=1e-9)
    np.testing.assert_allclose(np.ravel(comparison["minimal_loss"]), expected.loss, rtol=1e-9)
    assert run([*given, "--method", "average", "--no-compare"]) == 0
    assert json.loads(capsys.readouterr().out)["comparison"] is None


def test_limits_and_routes_reach_the_fit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["fit", str(folder), "--target", "y", "--features", "a,b", "--json"]
    for written, told in (
        (["--memory", "1GB"], "memory=1000000000.0"),
        (["--rows-stay"], "rows_stay=True"),
        (["--max-bytes-per-partition", "5kB"], "max_bytes_per_partition=5000.0"),
    ):
        assert run([*given, *written]) == 0
        assert told in json.loads(capsys.readouterr().out)["model"]["record"]["reasons"]["limits"]
    assert run([*given, "--method", "exact", "--route", "iterate"]) == 0
    assert json.loads(capsys.readouterr().out)["model"]["record"]["options"]["route"] == "iterate"


def test_predictions_of_the_command_drop_what_is_missing(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model.json"
    given = ["fit", str(folder), "--target", "y", "--features", "holes,b", "--missing", "drop", "--model", str(model)]
    assert run([*given, "--method", "exact"]) == 0
    capsys.readouterr()
    output = tmp_path / "out.parquet"
    assert run(["predict", str(model), str(folder), "--output", str(output), "--missing", "drop", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"rows": 392, "output": str(output)}
    rows = pq.read_table(output)["row"].to_numpy()
    assert rows.tolist() == [row for row in range(ROWS) if row % 50 != 7]
    assert run(["predict", str(model), str(folder), "--output", str(output)]) == 2
    assert "holes" in capsys.readouterr().err


@pytest.mark.parametrize("empty", ["", " , "])
def test_an_empty_list_of_columns_is_not_all_of_them(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], empty: str
) -> None:
    """A variable of the shell that is not set leaves one."""
    assert run(["fit", str(folder), "--target", "y", "--features", empty]) == 2
    assert "A list of columns is empty: name columns, or leave the option out." in capsys.readouterr().err
    assert run(["summarise", str(folder), "--columns", empty, "--output", str(tmp_path / "s.psk")]) == 2
    assert "A list of columns is empty" in capsys.readouterr().err
