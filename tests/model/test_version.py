"""A model file says what it contains by its version: another content is another version, and old files are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import partsketch as ps
from partsketch.model.file import FILE_VERSION
from tests import model_keys


def test_other_keys_mean_another_version() -> None:
    kept = json.loads(model_keys.KEPT.read_text())
    found = model_keys.saved_keys()
    added, gone = sorted(set(found) - set(kept["keys"])), sorted(set(kept["keys"]) - set(found))
    remedy = "raise FILE_VERSION in model_file.py, run `python -m tests.model_keys`, and say so in CHANGELOG.md"
    assert (added, gone) == ([], []), f"A saved model has other keys than version {kept['version']}: {remedy}."
    assert kept["version"] == FILE_VERSION, "Run `python -m tests.model_keys` after raising FILE_VERSION."


def test_new_keys_are_not_kept_under_the_old_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "keys.json"
    kept.write_text(json.dumps({"version": FILE_VERSION, "keys": ["something.else"]}))
    monkeypatch.setattr(model_keys, "KEPT", kept)
    with pytest.raises(SystemExit, match="raise FILE_VERSION"):
        model_keys.main()
    kept.write_text(json.dumps({"version": FILE_VERSION - 1, "keys": ["something.else"]}))
    model_keys.main()
    assert json.loads(kept.read_text())["version"] == FILE_VERSION


@pytest.mark.parametrize(("version", "remedy"), [(FILE_VERSION + 1, "update partsketch"), (0, "fit the model again")])
def test_files_of_other_versions_are_refused_in_one_sentence(tmp_path: Path, version: int, remedy: str) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps({"format": "partsketch model", "version": version}))
    with pytest.raises(ps.InputError, match=f"model version {version}, this partsketch reads {FILE_VERSION}: {remedy}"):
        ps.load(path)
