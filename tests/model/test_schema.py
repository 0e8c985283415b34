"""A model file is read only if every field is what a model has, and the fields agree with one another."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import partsketch as ps
from partsketch import InputError
from partsketch.fitting.options import FitOptions
from partsketch.model import file as model_file
from partsketch.model.file import LARGEST_FILE, checksum, read


@cache
def _saved(method: str, fit_intercept: bool = True) -> str:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 300))
    far = 1e9 + rng.normal(size=300)
    y = 2 * a - b + far + rng.normal(size=300)
    table = pa.table({"a": a, "b": b, "far": far, "kind": ["u", "v", "w"] * 100, "y": y, "z": y * a})
    options: dict[str, Any] = {} if method == "exact" else {"n_partitions": 3}
    model = ps.fit(
        table, ["y", "z"], encode=True, method=method, random_state=0, fit_intercept=fit_intercept, **options
    )
    return json.dumps(model.to_dict())


def _read(values: Any) -> ps.Model:
    return read(json.dumps({**values, "checksum": checksum(values)}).encode(), "m.json")


def _with(values: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return plain data in which the place "record.partitions.0.name" holds another value."""
    changed = json.loads(json.dumps(values))
    *holders, last = path.split(".")
    holder = changed
    for key in holders:
        holder = holder[int(key)] if isinstance(holder, list) else holder[key]
    holder[int(last) if isinstance(holder, list) else last] = value
    return dict(changed)


def _refused(values: dict[str, Any]) -> str:
    with pytest.raises(InputError) as raised:
        _read(values)
    sentence = str(raised.value)
    assert sentence.startswith("m.json is damaged: ")
    assert sentence.isprintable()
    assert sentence.endswith(".")
    return sentence


def _test(p_value: float | None) -> dict[str, Any]:
    freedom = {"degrees_of_freedom": 3.0, "residual_degrees_of_freedom": 9.0}
    return {"statistic": 1.0, **freedom, "p_value": p_value, "reason": ""}


#: Place, value, and what the sentence says: a field for every type, and every rule that binds several fields.
RULES: list[tuple[str, Any, str]] = [
    ("coefficients.0.0", math.nan, "'coefficients[0][0]' is nan, not a finite number"),
    ("coefficients.0.0", math.inf, "'coefficients[0][0]' is inf, not a finite number"),
    ("coefficients.0.0", None, "'coefficients[0][0]' is null, not a number"),
    ("coefficients.0.0", "1.5", "'coefficients[0][0]' is text, not a number"),
    ("coefficients.0.0", True, "'coefficients[0][0]' is true or false, not a number"),
    ("coefficients.0.0", 10**400, "'coefficients[0][0]' is too large"),
    ("coefficients.0", [1.0], "'coefficients[1]' has 2 entries, the first has 1"),
    ("coefficients", [], "'coefficients' has the shape 0, not 5 × 2"),
    ("coefficients", 1.0, "'coefficients' is a number, not a list"),
    ("coefficients", [[[[1.0]]]], "'coefficients' is nested too deeply"),
    ("coefficients.0.0", [1.0], "'coefficients[0][1]' is a number, not a list"),
    ("coefficients.0.0", 1e6, "'coefficients' is not between those of the partitions"),
    ("intercept.0", 0.0, "'level' is not the prediction at 'centre'"),
    ("level.0", 0.0, "'level' is not the prediction at 'centre'"),
    ("centre.0", 1e308, "'centre' and 'coefficients' have products beyond doubles"),
    ("inferences.0.level_covariance.0", -1.0, "'inferences[0].level_covariance' begins with a variance below zero"),
    ("partition_coefficients", [[[1.0, 1.0]] * 5] * 2, "'partition_coefficients' has another number of fits"),
    ("partition_intercepts.0", [1.0, 1.0, 1.0], "'partition_intercepts[1]' has 2 entries, the first has 3"),
    ("feature_names.0", "b", "'feature_names' has a name twice"),
    ("feature_names.0", "z", "'feature_names' has a name that 'target_names' has too"),
    ("feature_names.0", "(intercept)", "'feature_names' is empty, or names the intercept"),
    ("feature_names.0", 7, "'feature_names[0]' is a number, not a text"),
    ("feature_names.0", "\ud800", "'feature_names[0]' is not a text of Unicode characters"),
    ("feature_names", ["a"], "'encoding.levels[0]' has levels that 'feature_names' has not"),
    ("target_names", ["y", "y"], "'target_names' has a name twice"),
    ("target_names", [], "'target_names' is empty"),
    ("target_names", ["y"], "'coefficients' has the shape 5 × 2, not 5 × 1"),
    ("certificates", [], "'certificates' has 0 entries, not one for each of 2 targets"),
    ("certificates.0.kind", "certain", "'certificates[0].kind' is not one of exact, estimated"),
    ("certificates.0.excess_loss", None, "'certificates[0].excess_loss' does not go with 'certificates[0].kind'"),
    ("certificates.0.excess_loss", -1.0, "'certificates[0].excess_loss' is too small"),
    ("certificates.0.relative_excess_loss", -1.0, "'certificates[0].relative_excess_loss' is too small"),
    ("certificates.0.excess_loss", "0", "'certificates[0].excess_loss' is text, not a number"),
    ("certificates.0.minimal_loss", -1.0, "'certificates[0].minimal_loss' is too small"),
    ("certificates.0.surprise", 1, "'certificates[0]' has an unknown key 'surprise'"),
    ("certificates.0.confidence.kind", "wide", "'certificates[0].confidence.kind' is not one of quantiles"),
    ("certificates.0.confidence.parameters", [], "'certificates[0].confidence.parameters' has 0 numbers, not 1"),
    ("certificates.0.confidence.parameters.0", "inf", "'certificates[0].confidence.parameters[0]' is text"),
    ("certificates.0.heterogeneity", _test(1.5), "'certificates[0].heterogeneity' has numbers that no test has"),
    ("certificates.0.heterogeneity", _test(None), "'certificates[0].heterogeneity' has some numbers of a test"),
    ("inferences.0", None, "'inferences[0]' is null, not an object"),
    ("inferences.0.standard_errors", [1.0], "'inferences[0].standard_errors' has the shape 1, not 6"),
    ("inferences.0.standard_errors.0", -1.0, "'inferences[0].standard_errors' has a number below zero"),
    ("inferences.0.standard_errors.0", None, "'inferences[0].standard_errors[0]' is null"),
    ("inferences.0.degrees_of_freedom", 0.0, "'inferences[0].degrees_of_freedom' is not a number above zero"),
    ("inferences.0.degrees_of_freedom", None, "'inferences[0].degrees_of_freedom' is not a number above zero"),
    ("inferences.0.r_squared", 1.5, "'inferences[0].r_squared' is above 1"),
    ("inferences.0.r_squared_of", "another fit", "'inferences[0].r_squared_of' is not one of this fit, exact"),
    ("inferences.0.is_estimated", 1, "'inferences[0].is_estimated' is a number, not true or false"),
    ("encoding.levels.0.1", ["u", "u"], "'encoding.levels[0]' has a name twice"),
    ("encoding.levels.0.1", [], "'encoding.levels[0]' is empty"),
    ("encoding.levels.0", ["kind"], "'encoding.levels[0]' has 1 entries, not 2"),
    ("encoding.drop_first", None, "'encoding.drop_first' is null, not true or false"),
    ("record", None, "'record' is null, not an object"),
    ("record.asked", None, "'record' has an unknown key 'asked'"),
    ("record.options", {}, "'record.options' lacks 'method'"),
    ("record.options.method", "guess", "'record.options.method' is not one of exact, average"),
    ("record.options.fit_intercept", 1, "'record.options.fit_intercept' is a number, not true or false"),
    ("record.options.fit_intercept", False, "'record.rank' is larger than the number of columns"),
    ("record.options.n_partitions", 0, "'record.options.n_partitions' is too small"),
    ("record.options.alpha", "1", "'record.options.alpha' is text, not a number"),
    ("record.options.weighting", [], "'record.options.weighting' is a list, not a single value"),
    ("record.options.alpha", math.nan, "'record.options.alpha' is nan, not a finite number"),
    ("record.row_count", 301, "'record.row_count' is not that of 'record.partitions'"),
    ("record.row_count", 300.0, "'record.row_count' is a number, not a whole number"),
    ("record.partitions", [], "'record.partitions' is empty"),
    ("record.partitions.0.row_count", -1, "'record.partitions[0].row_count' is too small"),
    ("record.rank", 7, "'record.rank' is larger than the number of columns"),
    ("record.tolerance", -1.0, "'record.tolerance' is too small"),
    ("record.sketch_size", 5, "'record.sketch_size' does not go with the method"),
    ("record.seed", -1, "'record.seed' is too small"),
    ("record.aliased", [["x", ["a"]]], "'record.aliased[0]' names a column that there is not"),
    ("record.warnings.0", 1, "'record.warnings[0]' is a number, not a text"),
    ("record.reasons.method", None, "'record.reasons.method' is null, not a text"),
    ("record.versions", [], "'record.versions' is a list, not an object"),
    ("record.origin", {}, "'record.origin' lacks 'paths'"),
    ("record.origin.encode", "yes", "'record.origin.encode' is text, not true or false"),
    ("outlook.targets", [{"over_partitions": [], "over_sizes": []}], "'outlook.targets' has 1 entries"),
    ("outlook.divergences.0", [1.0], "'outlook.divergences' is not square"),
    ("outlook.targets.0.over_sizes.0.basis", "hope", "'outlook.targets[0].over_sizes[0].basis' is not one of exact"),
    ("outlook.targets.0.over_sizes.0.partitions", 0, "'outlook.targets[0].over_sizes[0].partitions' is too small"),
    ("surprise", 1, "it has an unknown key 'surprise'"),
    ("surprise\x1b\n", 1, "it has an unknown key 'surprise\\x1b\\n'"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("place", "value", "words"), RULES, ids=[f"{place}-{value!r:.20}" for place, value, _ in RULES]
)
def test_what_no_model_has_is_refused_by_its_name(place: str, value: Any, words: str) -> None:
    values = json.loads(_saved("average"))
    values["record"]["warnings"] = ["a warning"]
    _read(values)
    assert words in _refused(_with(values, place, value))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    if len(keys) > 8 and all(isinstance(value[key], float) for key in keys):
        # Numbers of long lists are looked at by one loop: the first two, one in the middle, and the last.
        keys = [keys[0], keys[1], keys[len(keys) // 2], keys[-1]]
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


@pytest.mark.parametrize("poison", [math.nan, -math.inf, 10**400, "\ud800"])
def test_nothing_in_a_file_may_be_poison(poison: Any) -> None:
    """Every place in turn, with the right checksum."""
    values = json.loads(_saved("partition"))
    places = list(_places(values))
    assert len(places) > 300
    for holder, key in places:
        if holder is values and key in ("format", "version"):
            continue
        kept, holder[key] = holder[key], poison
        with pytest.raises(InputError, match="is damaged"):
            _read(values)
        holder[key] = kept
    _read(values)


@pytest.mark.parametrize("method", ["exact", "average", "partition", "stack", "whole"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_what_a_fit_makes_is_read(method: str, fit_intercept: bool) -> None:
    values = json.loads(_saved(method, fit_intercept))
    assert json.dumps(_read(values).to_dict()) == json.dumps(values)


@pytest.mark.parametrize("name", ["intercept", "centre", "partition_intercepts"])
def test_a_model_without_an_intercept_has_none(name: str) -> None:
    values = json.loads(_saved("stack", False))
    values["intercept"], values["level"], values["partition_intercepts"] = [0.0, 0.0], [0.0, 0.0], [[0.0, 0.0]]
    if name == "intercept":
        values["intercept"] = values["level"] = [1.0, 1.0]
    elif name == "centre":
        values["centre"][0] = 1.0
        values["level"] = values["coefficients"][0]
    else:
        values[name] = [[1.0, 1.0]]
    assert f"'{name}' is not zero in a model without an intercept" in _refused(values)


def test_infinite_degrees_of_freedom_survive() -> None:
    """Without noise, as of a constant target, degrees of freedom are infinite; JSON has no such number."""
    values = json.loads(_saved("average"))
    for name in ("degrees_of_freedom", "spread_degrees_of_freedom"):
        values["inferences"][0][name] = "inf"
        model = _read(values)
        assert getattr(model.inferences[0], name) == math.inf
        assert json.dumps(model.to_dict()) == json.dumps(values)


def test_every_key_that_is_left_out_is_missed() -> None:
    values = json.loads(_saved("average"))
    for key in values:
        rest = {name: value for name, value in values.items() if name != key}
        with pytest.raises(InputError, match=f"{key}|not a partsketch model"):
            _read(rest)


def test_numbers_of_another_shape_are_refused() -> None:
    """As many numbers, rows and columns exchanged: read in order they would be the coefficients of other columns."""
    values = json.loads(_saved("exact"))
    turned = np.array(values["coefficients"]).T
    assert turned.shape[0] != turned.shape[1]
    assert "'coefficients' has the shape" in _refused(_with(values, "coefficients", turned.tolist()))


def test_a_key_that_is_there_twice_is_refused() -> None:
    text = '{"format": "partsketch model", "version": 2, "version": 2}'
    with pytest.raises(InputError, match=r"the key 'version' is repeated\.$"):
        read(text.encode(), "m.json")


def test_options_of_a_fit_are_single_values() -> None:
    """The schema takes any single value for an option that it does not name: a new option needs no line there."""
    options = {field.name for field in fields(FitOptions)}
    assert {"method", "fit_intercept", "n_partitions", "sketch", "limits"} <= options
    with_limits = _with(json.loads(_saved("exact")), "record.options.limits", {"seconds": 5.0, "rows_stay": False})
    assert _read(with_limits).record.options["limits"]["seconds"] == 5.0


def test_only_ordinary_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    for path in (tmp_path / "pipe", tmp_path / "link", Path("/dev/urandom")):
        with pytest.raises(InputError, match="not an ordinary file"):
            ps.load(path)
    with pytest.raises(InputError, match="it is a folder"):
        ps.load(tmp_path)
    with pytest.raises(InputError, match="Cannot read"):
        ps.load(tmp_path / "nul\0")


def test_no_more_is_read_than_a_model_may_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(LARGEST_FILE + 1)  # takes no room on the disk
    with pytest.raises(InputError, match="more than 268,435,456 bytes, too many for a model"):
        ps.load(path)
    path.write_bytes(b" " * 1001)
    monkeypatch.setattr(model_file, "available_memory", lambda: 32_000)
    with pytest.raises(InputError, match="more than 1,000 bytes"):
        ps.load(path)


def test_a_model_that_could_not_be_read_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_file, "LARGEST_FILE", 1000)
    with pytest.raises(InputError, match="and no more than 1,000 are read again"):
        _read(json.loads(_saved("exact"))).save(tmp_path / "m.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["numbers", "lists of nothing"])
def test_reading_takes_no_more_memory_than_it_counts_on(tmp_path: Path, kind: str) -> None:
    values = json.loads(_saved("stack", False))
    entries: list[Any] = np.random.default_rng(0).normal(size=200_000).tolist()
    if kind != "numbers":
        entries = [[] for _ in range(500_000)]
    values["record"]["options"]["weighting"] = entries
    path = tmp_path / "large.json"
    path.write_text(json.dumps({**values, "checksum": checksum(values)}, separators=(",", ":")))
    size = path.stat().st_size
    assert size > 1e6
    script = (
        "import sys, pathlib\n"
        "from partsketch.model.file import load\n"
        "def peak():\n"
        "    lines = pathlib.Path('/proc/self/status').read_text().splitlines()\n"
        "    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith('VmHWM'))\n"
        "before = peak()\n"
        "try:\n"
        "    load(sys.argv[1])\n"
        "except ValueError as error:\n"
        "    assert 'not a single value' in str(error)\n"
        "print(peak() - before)\n"
    )
    told = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    assert 0 < int(told.stdout) < model_file.MEMORY_PER_BYTE * size
