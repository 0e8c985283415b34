"""The study's data: in the package, bit for bit what scikit-learn's loaders give; from a folder only when asked."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pyarrow.parquet as pq
import pytest
import sklearn.datasets
from benchmarks.make_study_data import encoded, write
from numpy.typing import NDArray

from partsketch import InputError
from partsketch.paper import data_sets, stored_data
from partsketch.paper.data_sets import load
from partsketch.paper.settings import Places, quick_study
from partsketch.paper.study import run_study


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """Forget loaded data sets before and after."""
    data_sets.attempt.cache_clear()
    yield
    data_sets.attempt.cache_clear()


#: Shape, SHA-256 of the features and of the target, as the study had them from scikit-learn 1.9's loaders, which check
#: what they download by its SHA-256.
KNOWN = {
    "house": (
        (20_640, 8),
        "c8f43774aa27b7ec034e60db31b6124e12b4a0d42b55b0c8eb1320089e2ebc37",
        "ae80bb98487c04d7383ed8aecda8e207583dfd3e66f6679fded97597c3f6c87e",
    ),
    "cover": (
        (100_000, 53),
        "a359e3ef29849a6549c30c8e423a45af187d0660190d6ae98905379da5f9c2c5",
        "7d4a25e5e2a4718dbef58df43e9f81c62549a35691d7eea0da223907a263aec6",
    ),
}


def digest(values: NDArray[np.float64]) -> str:
    assert values.dtype == np.float64
    return hashlib.sha256(np.ascontiguousarray(values).astype("<f8").tobytes()).hexdigest()


@pytest.mark.parametrize("name", KNOWN)
def test_the_rows_of_the_study_are_these_to_the_bit(name: str) -> None:
    shape, features, target = KNOWN[name]
    data = load(name)
    assert data.X.shape == shape
    assert data.X.flags.c_contiguous
    assert digest(data.X) == features
    assert digest(data.y) == target


def test_sizes_as_loaded_are_those_of_the_source() -> None:
    house, cover = load("house"), load("cover")
    assert (house.loaded_rows, house.loaded_features) == (20_640, 8)
    assert (cover.loaded_rows, cover.loaded_features) == (581_012, 54)
    assert len(data_sets.cover_sample(581_012)) == 100_000


@pytest.mark.parametrize("name", KNOWN)
def test_the_maker_writes_what_the_package_has(name: str, tmp_path: Path) -> None:
    stored = stored_data.stored_data(name)
    made = encoded(name, stored.feature_names, stored.X, stored.y, stored.source_rows)
    file = resources.files("partsketch.paper").joinpath("data", f"{name}.parquet")
    with resources.as_file(file) as path:
        assert pq.read_table(path).equals(made, check_metadata=True)
        # Other versions of Arrow may pack a little differently.
        assert write(name, made, tmp_path).stat().st_size == pytest.approx(path.stat().st_size, rel=0.05)


def test_the_maker_refuses_indicators_that_are_not_exclusive() -> None:
    names = [f"Wilderness_Area_{code}" for code in range(4)]
    with pytest.raises(ValueError, match="Wilderness_Area is not exactly one of 4 indicators"):
        encoded("cover", names, np.array([[1.0, 0, 1, 0]]), np.zeros(1), 1)


def test_without_a_folder_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*given: object, **options: object) -> None:
        raise AssertionError("a loader of scikit-learn was asked, or a connection opened")

    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    for fetch in ("fetch_covtype", "fetch_california_housing"):
        monkeypatch.setattr(sklearn.datasets, fetch, refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    result = run_study(quick_study(), Places(tmp_path / "study", None), ("table-1",))
    assert result.units("table-1") == ["digits", "house", "cover"]
    assert result.problems == ()


def test_a_missing_download_costs_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(**options: object) -> None:
        raise URLError("no route to host")

    monkeypatch.setattr(sklearn.datasets, "fetch_covtype", offline)
    monkeypatch.setattr(sklearn.datasets, "fetch_california_housing", offline)
    lines: list[str] = []
    result = run_study(quick_study(), Places(tmp_path / "study", tmp_path), ("table-1", "figure-8"), lines.append)
    assert result.units("table-1") == ["digits"]
    assert result.units("figure-8") == ["digits-default", "digits-shuffled"]
    assert len(result.problems) == 2
    assert result.problems[1].startswith(f"Cover is missing: it is not in {tmp_path} and could not be downloaded")
    assert "leave out --data-home" in result.problems[1]
    assert sum("is missing" in line for line in lines) == 2


def test_a_given_folder_is_where_data_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, object] = {}

    def fetch(**options: object) -> tuple[np.ndarray, np.ndarray]:
        seen.update(options)
        return np.arange(30.0).reshape(10, 3) * [1, 0, 1], np.arange(10)

    monkeypatch.setattr(sklearn.datasets, "fetch_california_housing", fetch)
    data = load("house", Path("/somewhere"))
    assert seen["data_home"] == str(Path("/somewhere"))
    assert data.X.shape == (10, 2)
    assert data.loaded_features == 3


def test_the_full_covertype_is_sampled_in_original_order(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.arange(581_012.0)

    def fetch(**options: object) -> tuple[np.ndarray, np.ndarray]:
        return numbers[:, None], numbers.astype(np.int32)

    monkeypatch.setattr(sklearn.datasets, "fetch_covtype", fetch)
    data = load("cover", Path("/somewhere"))
    assert (data.loaded_rows, len(data.X)) == (581_012, 100_000)
    assert np.all(np.diff(data.X[:, 0]) > 0)
    assert np.array_equal(data.X[:, 0], data.y)


def test_a_damaged_download_is_one_sentence_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(**options: object) -> None:
        raise EOFError("compressed file ended before the end-of-stream marker was reached")

    monkeypatch.setattr(sklearn.datasets, "fetch_california_housing", damaged)
    with pytest.raises(InputError, match="House is missing"):
        load("house", Path("/somewhere"))


def test_a_damaged_file_of_the_package_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "house.parquet").write_bytes(b"PAR1 and nothing more")
    monkeypatch.setattr(resources, "files", lambda _: tmp_path)
    with pytest.raises(InputError, match=r"data/house.parquet of partsketch is damaged .*install partsketch again"):
        load("house")
