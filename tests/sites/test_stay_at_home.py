"""Files without a site were made to stay with their rows: whoever reads one beside files of sites is told."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import partsketch as ps
from partsketch import PartsketchWarning

TOLD = "names no site, and is read beside files of sites"


def rows(seed: int) -> pa.Table:
    draw = np.random.default_rng(seed)
    x = draw.normal(size=300)
    return pa.table({"x": x, "y": x + draw.normal(size=300)})


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    paths = tmp_path / "own.psk", tmp_path / "north.psk", tmp_path / "south.psk"
    for number, (path, site) in enumerate(zip(paths, ("", "north", "south"), strict=True)):
        ps.summarise(rows(number), site=site).save(path)
    return paths


def test_beside_files_of_sites_it_is_said(files: tuple[Path, Path, Path]) -> None:
    own, north, _ = files
    with pytest.warns(PartsketchWarning, match=f"own.psk.* {TOLD}"):
        model = ps.combine([own, north], "y")
    assert any(TOLD in sentence for sentence in model.record.warnings)
    with pytest.warns(PartsketchWarning, match=f"own.psk.* {TOLD}"):
        ps.read_summaries([own, north])
    with pytest.warns(PartsketchWarning, match=TOLD):
        ps.read_summaries(own).add(ps.read_summaries(north))


def test_alone_and_among_sites_there_is_nothing_to_say(files: tuple[Path, Path, Path]) -> None:
    own, north, south = files
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ps.read_summaries(own)
        ps.combine(own, "y")
        ps.read_summaries([north, south])
        ps.combine([north, south], "y")


def test_beside_a_file_with_a_promise_it_is_said(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    bounds = {"x": (-5, 5), "y": (-8, 8)}
    promised = ps.sketch(rows(7), "y", epsilon=50.0, bounds=bounds, site="west", ledger=tmp_path / "ledger.jsonl")
    with pytest.warns(PartsketchWarning, match=f"own.psk.* {TOLD}"):
        ps.combine([promised, files[0]], "y")
