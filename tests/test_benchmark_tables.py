"""Tables of benchmarks: what is too small to matter is left out, what was not measured is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import benchmarks.__main__
import pytest
from benchmarks.__main__ import measure_estimators
from benchmarks.estimators import many_sites
from benchmarks.runner import _beside
from benchmarks.tables import _targets, _wins
from benchmarks.workloads import WORKLOADS

OURS = {"role": "ours", "label": "ours", "best_seconds": 1.0, "peak_bytes": 300e6, "forward_error": 1e-9}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"best_seconds": 0.96}, ""),
        ({"best_seconds": 0.94}, "times faster"),
        ({"peak_bytes": 240e6}, ""),
        ({"peak_bytes": 230e6}, "less memory"),
        ({"forward_error": 1e-9}, ""),
        ({"forward_error": 1e-10}, "more accurate"),
    ],
)
def test_only_what_matters_is_a_win_of_others(changed: dict[str, float], words: str) -> None:
    rival = {**OURS, "role": "rival", "label": "rival", **changed}
    case: dict[str, Any] = {"main": "a", "title": "t", "in_memory": False, "contestants": {"a": OURS, "b": rival}}
    found = list(_wins("title", case))
    assert words in found[0] if words else not found, found


def test_rounding_on_both_sides_is_no_win() -> None:
    ours, rival = {**OURS, "forward_error": 1e-14}, {**OURS, "role": "rival", "forward_error": 1e-16}
    assert not list(
        _wins("title", {"main": "a", "title": "t", "in_memory": False, "contestants": {"a": ours, "b": rival}})
    )


def test_targets_that_were_not_measured_are_shown() -> None:
    table = _targets({})
    sentences = [target.sentence for workload in WORKLOADS.values() for target in workload.targets]
    assert table.count("not measured") == len(sentences)
    assert all(sentence in table for sentence in sentences)


def test_a_case_measured_by_itself_tells_its_own_origin(tmp_path: Path) -> None:
    path = tmp_path / "start-up.json"
    first = {"workload": "start-up", "quick": False, "date": "1", "cases": {"help": {"a": 1}, "fit": {"a": 2}}}
    path.write_text(json.dumps(first))
    found = _beside(path, {**first, "date": "2", "cases": {"help": {"a": 3}}})
    assert list(found["cases"]) == ["help", "fit"]
    assert found["date"] == "1"
    assert "origin" not in found["cases"]["fit"]
    assert found["cases"]["help"] == {"a": 3, "origin": {"date": "2"}}


def test_parts_of_estimators_may_be_measured_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--only sites` without a saved result was a traceback."""
    monkeypatch.setattr(benchmarks.__main__, "results_folder", lambda quick: tmp_path)
    monkeypatch.setattr(many_sites, "run", lambda quick: [{"sketch_size": 10}])
    measure_estimators(True, "python -m benchmarks run estimators --only sites", ["sites"])
    assert json.loads((tmp_path / "estimators.json").read_text())["sites"]["rows"] == [{"sketch_size": 10}]
