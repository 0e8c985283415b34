"""method="auto": what is chosen is fitted, and the record says what and why."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import partsketch as ps
from partsketch import InputError
from partsketch.cli import run
from tests.planner.settings import MACHINE


@pytest.fixture(autouse=True)
def _imaginary_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calibration takes seconds and depends on the machine: none of it here."""
    for module in ("auto", "api"):
        name = "calibration" if module == "auto" else "calibrated"
        monkeypatch.setattr(f"partsketch.planner.{module}.{name}", lambda again=False: MACHINE)


@pytest.fixture
def rows() -> Any:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4))
    return X, X @ [1.0, 2.0, 3.0, 4.0] + rng.normal(size=3000)


def test_without_limits_the_estimator_is_exact_and_says_why(rows: Any) -> None:
    X, y = rows
    model = ps.SketchedRegression(method="auto").fit(X, y)
    exact = ps.SketchedRegression(method="exact").fit(X, y)
    assert np.array_equal(model.coef_, exact.coef_)
    assert model.model_.method == "exact"
    reason = model.model_.record.reasons["method"]
    assert "auto" in reason
    assert "exact" in reason
    assert "no reason to sketch" in reason


def test_fit_of_python_defaults_to_auto(rows: Any) -> None:
    X, y = rows
    table = np.column_stack([X, y])
    model = ps.fit(table, "x4")
    assert np.array_equal(model.coefficients, ps.fit(table, "x4", method="exact").coefficients)
    assert model.certificate.kind == "exact"
    assert model.record.reasons["limits"] == "none"
    assert "auto" in model.record.reasons["method"]


@pytest.mark.parametrize(
    "asked",
    [
        {"sketch_size": 40},
        {"sketch": "srht"},
        {"sketch": "sparse_sign", "sparsity": 4},
        {"n_partitions": 3, "partition_by": "shuffle"},
        {"route": "iterate"},
        {"limits": {}},
    ],
)
def test_without_limits_options_of_sketches_ask_for_no_sketch(rows: Any, asked: dict[str, Any]) -> None:
    model = ps.SketchedRegression(**asked).fit(*rows)
    exact = ps.SketchedRegression("exact", route=asked.get("route", "auto")).fit(*rows)
    assert np.array_equal(model.coef_, exact.coef_)
    assert model.model_.method == "exact"
    if "sketch_size" in asked:
        assert "sketch_size=40 is not used" in model.model_.record.reasons["sketch_size"]


@pytest.mark.parametrize("route", ["factor", "iterate"])
def test_an_exact_fit_does_not_depend_on_a_seed(rows: Any, route: str) -> None:
    X, y = rows
    models = [ps.SketchedRegression(route=route, random_state=seed).fit(X, y) for seed in (None, 1, 2)]
    for model in models[1:]:
        assert np.array_equal(model.coef_, models[0].coef_)
        assert np.array_equal(model.conf_int(), models[0].conf_int())


def test_what_goes_with_a_named_method_only(rows: Any) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"sketch_size": 6, "n_partitions": 1}, "sketch_size=6 is too small"),
        ({"averaging": "inverse_variance"}, "'average' and 'partition' only"),
        ({"deadline": 3}, "name it instead of 'auto'"),
        ({"on_partition_error": "drop"}, "name it instead of 'auto'"),
        ({"route": "iterate", "limits": {"seconds": 1}}, "route='iterate' goes with method='exact'"),
    ]
    for asked, message in cases:
        with pytest.raises(InputError, match=message):
            ps.SketchedRegression(**asked).fit(*rows)


def test_without_limits_a_sketch_is_never_taken_for_lack_of_memory(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from scipy import sparse

    X, y = rows
    monkeypatch.setattr("partsketch.planner.auto.free_memory", lambda: 1e5)
    with pytest.raises(InputError, match=r"of 5 columns takes about .* of memory, and 100 kB are free: choose fewer"):
        ps.SketchedRegression().fit(X, y)
    # Sparse rows may do without a factor, and by name it is tried.
    assert ps.SketchedRegression().fit(sparse.csr_array(X), y).model_.method == "exact"
    assert ps.SketchedRegression("exact").fit(X, y).model_.method == "exact"


def test_a_sparsity_that_the_choice_does_not_need(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = replace(MACHINE, exact_row={8: 1.0})
    monkeypatch.setattr("partsketch.planner.auto.calibration", lambda: slow)
    model = ps.SketchedRegression(sketch="sparse_sign", sparsity=4, limits={"seconds": 100}, random_state=0).fit(*rows)
    used = model.model_.record.options
    assert used["sketch"] != "sparse_sign"
    assert used["sparsity"] is None


def test_with_limits_the_chosen_sketch_is_what_fit_does(rows: Any) -> None:
    X, y = rows
    # Three kilobytes hold no certified exact factor of all five columns and target: 6 × 6 × 8 = 288 bytes do.
    limits = {"max_excess": "20%", "seconds": 100.0}
    auto = ps.SketchedRegression("auto", limits=limits, random_state=5, n_partitions=4).fit(X, y)
    record = auto.model_.record
    chosen = ps.SketchedRegression(
        auto.model_.method,
        n_partitions=4,
        sketch=record.options["sketch"],
        sketch_size=record.options["sketch_size"],
        random_state=5,
    ).fit(X, y)
    assert np.array_equal(auto.coef_, chosen.coef_)
    assert "max_excess=0.2" in record.reasons["limits"]


def test_when_exact_breaks_a_limit_a_sketch_is_fitted(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = replace(MACHINE, exact_row={8: 1.0})
    monkeypatch.setattr("partsketch.planner.auto.calibration", lambda: slow)
    X, y = rows
    model = ps.fit(
        np.column_stack([X, y]), "x4", method="auto", n_partitions=4, random_state=1, limits={"seconds": 100}
    )
    assert model.method in ("partition", "stack", "whole")
    assert "exact least squares breaks one (time" in model.record.reasons["method"]
    assert str(model.record.sketch_size) in model.record.reasons["sketch_size"]


def test_limits_that_nothing_meets_are_refused(rows: Any) -> None:
    X, y = rows
    with pytest.raises(InputError, match="No candidate meets all limits"):
        ps.SketchedRegression("auto", limits={"seconds": 1e-9}).fit(X, y)


def test_limits_need_auto(rows: Any) -> None:
    with pytest.raises(InputError, match="limits go with method='auto'"):
        ps.SketchedRegression("exact", limits={"seconds": 1}).fit(*rows)


def test_streams_are_planned_without_being_consumed() -> None:
    table = pa.table({"x": np.arange(200.0), "y": 2 * np.arange(200.0) + 1})
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    model = ps.fit(stream, "y", method="auto", limits={"rows_stay": True})
    assert model.method == "exact"
    assert model.record.row_count == 200


def test_ridge_is_exact_under_auto(rows: Any) -> None:
    X, y = rows
    auto = ps.SketchedRegression("auto", alpha=3.0).fit(X, y)
    assert np.array_equal(auto.coef_, ps.SketchedRegression("exact", alpha=3.0).fit(X, y).coef_)


@pytest.fixture
def table(rows: Any, tmp_path: Path) -> Path:
    X, y = rows
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({**{f"x{i}": X[:, i] for i in range(4)}, "y": y}), path)
    return path


def test_fit_without_a_method_is_auto(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fit", str(table), "--target", "y", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["model"]["record"]["options"]["method"] == "exact"
    assert "auto" in values["model"]["record"]["reasons"]["method"]
    assert values["comparison"] is None


def test_fit_says_what_was_chosen(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fit", str(table), "--target", "y", "--max-excess", "30%"]) == 0
    assert "method='auto' chose" in capsys.readouterr().out


def test_plan_command_prints_table_and_json(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["plan", str(table), "--target", "y", "--max-excess", "5%", "--partitions", "4"]
    assert run(arguments) == 0
    printed = capsys.readouterr().out
    for word in ("3,000 rows", "Recommended: ", "excess loss against k", "Smallest m"):
        assert word in printed
    assert run([*arguments, "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["rows"] == 3000
    assert {"method", "sketch", "sketch_size", "partitions", "excess", "excess_kind", "seconds", "breaks"} <= set(
        values["candidates"][0]
    )


def test_plan_of_sizes_and_of_csv(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--rows", "1e7", "--columns", "50", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 10_000_000
    path = tmp_path / "rows.csv"
    pyarrow.csv.write_csv(pq.read_table(table), path)
    assert run(["plan", str(path), "--target", "y", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["rows"] == 3000
    by_method = {candidate["method"]: candidate for candidate in values["candidates"]}
    assert by_method["exact"]["passes"] == 1
    assert by_method["average"]["passes"] == 2  # rows of a CSV file must be counted before they are cut by order


def test_rows_of_large_csv_files_are_estimated(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("partsketch.planner.survey.WHOLE_LOOK_NUMBERS", 2**10)
    monkeypatch.setattr("partsketch.planner.survey.CSV_PEEK_BYTES", 2**14)
    path = tmp_path / "rows.csv"
    pyarrow.csv.write_csv(pq.read_table(table), path)
    plan = ps.plan(str(path), "y")
    assert plan.rows == pytest.approx(3000, rel=0.05)  # lines differ in length by a few characters of about ninety
    assert any("estimate" in note for note in plan.notes)


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan",),
        ("plan", "--rows", "10"),
        ("plan", "--rows", "1.5", "--columns", "3"),
        ("plan", "--rows", "100", "--columns", "3", "--max-excess", "lots"),
        ("plan", "nowhere.parquet", "--target", "y"),
        ("fit", "nowhere.parquet", "--target", "y", "--memory", "2 parsecs"),
    ],
)
def test_bad_input_gets_one_sentence(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("Error: ")
    assert printed.err.count("\n") == 1
