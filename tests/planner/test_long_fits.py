"""Fits that take long say so before they begin; others are not even looked at."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import partsketch as ps
from partsketch.planner import calibration, long_fits


class _BegunError(Exception):
    """The fit itself has begun."""


@pytest.fixture(autouse=True)
def no_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(*arguments: Any) -> None:
        raise _BegunError

    monkeypatch.setattr("partsketch.planner.fit_request.fit_source", begin)


def _said(tmp_path: Path, text: bool = False, **options: Any) -> str:
    """Return what is said before a fit to rows of four columns begins."""
    rows = 200_000
    draw = np.zeros(rows)
    data: Any = pa.table(dict.fromkeys(("a", "b", "c", "y"), draw))
    if text:
        data = tmp_path / "rows.csv"
        data.write_text("a,b,c,y\n" + "0.0,0.0,0.0,0.0\n" * rows)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(_BegunError):
            ps.fit(data, "y", random_state=1, **options)
    return " ".join(str(warning.message) for warning in caught)


@pytest.fixture
def speeds(monkeypatch: pytest.MonkeyPatch) -> calibration.Calibration:
    """A machine of round numbers: 10 Gflop/s, 10⁹ normal numbers a second, everything else for nothing."""
    made = calibration.Calibration(
        machine={},
        cores=1,
        speedup=1.0,
        symmetric_product={8: 0.0},
        exact_row={8: 0.0},
        product={8: 2e-10},
        small_factorisation={8: 0.0},
        tall_factorisation=0.0,
        normal=1e-9,
        copied_byte=0.0,
        fresh_byte=0.0,
        decoded_number={"CSV": 0.0},
        sketched_number={"count_sketch": 1e-9},
        sketch_unit={},
        summary_overhead=0.0,
    )
    monkeypatch.setattr(long_fits, "calibration", lambda: made)
    return made


def test_many_sketches_of_all_rows_are_told_with_their_time(tmp_path: Path, speeds: calibration.Calibration) -> None:
    # 200,000 rows × 100,000 sketches × 20 rows of each: 4e11 normal numbers, and 8 products with each (5 columns take
    # 8): 400 s and 640 s.
    said = _said(tmp_path, method="whole", n_partitions=100_000, sketch_size=20)
    assert "about 17.3 min on this machine" in said
    assert "100,000 sketches of all 200,000 rows" in said
    assert "fewer sketches (n_partitions) or a smaller sketch_size or a kind that is not dense" in said


def test_rows_of_text_are_estimated(tmp_path: Path, speeds: calibration.Calibration) -> None:
    said = _said(tmp_path, text=True, method="whole", n_partitions=100_000, sketch_size=20)
    assert "about 17.3 min" in said


def test_what_is_quick_is_not_told(
    tmp_path: Path, speeds: calibration.Calibration, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _said(tmp_path, method="whole", n_partitions=50_000, sketch_size=20) == ""
    assert _said(tmp_path, method="whole", n_partitions=100_000, sketch_size=20, sketch="count_sketch") == ""

    def measured() -> None:
        raise AssertionError("a small fit waits for nothing")

    monkeypatch.setattr(long_fits, "calibration", measured)
    assert _said(tmp_path, method="whole", n_partitions=1000, sketch_size=20) == ""
    assert _said(tmp_path, method="partition", n_partitions=1000, sketch_size=20) == ""
    assert _said(tmp_path, method="exact") == ""


def test_what_has_no_room_is_refused_and_not_told_to_take_long(tmp_path: Path) -> None:
    table = pa.table({"a": np.zeros(200_000), "y": np.zeros(200_000)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ps.InputError, match="This needs at least"):
            ps.fit(table, "y", method="whole", n_partitions=10**9, sketch_size=1000)
