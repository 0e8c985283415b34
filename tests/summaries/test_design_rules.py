"""What a sketch file says of the formula that made its columns: broken in each way, and refused in one sentence."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import partsketch as ps
from partsketch import InputError, Summary
from tests.summaries.test_file import sealed

Header = dict[str, Any]


@cache
def _file() -> tuple[str, bytes]:
    """Return header and numbers of a file whose columns a formula made."""
    a, y = np.random.default_rng(1).normal(size=(2, 60))
    table = pa.table({"a": a, "g": ["u", "v", "w"] * 20, "y": y})
    summary: Any = ps.sketch(table, "y ~ a + C(g)", sketch_size=12, random_state=3, site="here", noise="estimated")
    data = summary.to_bytes()
    (length,) = struct.unpack("<I", data[12:16])
    return data[16 : 16 + length].decode(), data[16 + length : -32]


def _design(change: Callable[[Header], None]) -> Callable[[Header], None]:
    return lambda header: change(header["design"])


def _factor(header: Header) -> Header:
    """Return the factor that has levels."""
    found: Header = next(factor for factor in header["design"]["factors"] if factor["levels"])
    return found


RULES: dict[str, tuple[Callable[[Header], Any], str]] = {
    "a design is an object": (lambda header: header.update(design=None), "'design' in its header has a wrong type"),
    "it has all its keys": (_design(lambda design: design.pop("terms")), "'design' in its header cannot be"),
    "it has no others": (_design(lambda design: design.update(more=1)), "'design' in its header cannot be"),
    "its types are right": (_design(lambda design: design.update(formula=3)), "'design' in its header cannot be"),
    "targets are factors": (_design(lambda design: design.update(targets=[99])), "a target that is none of its"),
    "terms have factors": (
        _design(lambda design: design["terms"][0].update(factors=[[99, False]])), "has a factor that there is not"
    ),
    "terms have a name per column": (
        _design(lambda design: design["terms"][0].update(names=["a", "b"])), "has other names than columns"
    ),
    "levels are distinct": (lambda header: _factor(header).update(levels=["u", "u", "w"]), "none, or not distinct"),
    "the reference is a level": (lambda header: _factor(header).update(reference=7), "is none of its levels"),
    "kinds of factors are known": (lambda header: _factor(header).update(kind="odd"), "is of no known kind"),
    "what is there it makes": (_design(lambda design: design.update(terms=[])), "makes other columns than it has"),
    "targets are what it makes": (_design(lambda design: design.update(targets=[])), "makes other columns than it has"),
    "what it makes is there": (
        lambda header: header.update(columns=["(intercept)", "b", *header["columns"][2:]]), "makes other columns"
    ),
    "nothing else is encoded": (lambda header: header.update(levels=[["h", ["u"]]]), "makes other columns than it has"),
    "the first level goes with the intercept": (lambda header: header.update(drop_first=False), "makes other columns"),
}  # fmt: skip


def test_the_file_itself_is_read() -> None:
    text, body = _file()
    assert Summary.from_bytes(sealed(json.loads(text), body)).about.encoding.design is not None


@pytest.mark.parametrize("rule", RULES)
def test_a_design_that_breaks_a_rule_is_refused(rule: str) -> None:
    change, words = RULES[rule]
    text, body = _file()
    header = json.loads(text)
    change(header)
    with pytest.raises(InputError) as raised:
        Summary.from_bytes(sealed(header, body), "site.psk")
    sentence = str(raised.value)
    assert sentence.startswith("site.psk is damaged or not a valid sketch file: ")
    assert words in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
