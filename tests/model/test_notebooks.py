"""What a notebook shows of what ends a cell: a table, once, and nothing that data could make a page do."""

from __future__ import annotations

import io
from collections.abc import Callable
from operator import methodcaller
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import partsketch as ps
from partsketch.common.terminal import text_console

#: What a notebook calls.
in_notebook = methodcaller("_repr_html_")


def rows(names: list[str]) -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table({name: rng.normal(size=200) for name in names})


def test_a_bare_model_is_a_table() -> None:
    model = ps.fit(rows(["y", "x", "<script>alert(1)</script>"]), "y", vcov="HC1")
    assert repr(model) == str(model.summary())
    page = in_notebook(model)
    assert page.count("<table>") == 1
    assert page.count("<tr>") == 4
    assert f"<td>{model.coefficients[0, 0]:.5g}</td>" in page
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "HC1" in page


def test_a_long_model_is_cut_in_the_middle() -> None:
    model = ps.fit(rows(["y", *(f"x{i}" for i in range(120))]), "y")
    assert len(repr(model).splitlines()) == 81
    assert "print(model.summary())" in repr(model)
    assert "x119" in repr(model)
    assert in_notebook(model).count("<tr>") == 81
    assert len(str(model.summary()).splitlines()) > 120


@pytest.mark.parametrize("shown", ["plan", "diagnosis", "summary", "table"])
def test_everything_else_shows_its_text(shown: str) -> None:
    data = rows(["y", "x"])
    model = ps.fit(data, "y")
    makers: dict[str, Callable[[], Any]] = {
        "plan": lambda: ps.plan(rows=10_000, columns=5),
        "diagnosis": lambda: ps.diagnose(data, "y", n_partitions=2),
        "summary": model.summary,
        "table": lambda: ps.table([model]),
    }
    made = makers[shown]()
    assert repr(made) == str(made)
    assert in_notebook(made).startswith(("<pre>", "<table>", "<p>"))


def test_text_goes_to_its_file_in_a_notebook_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rich believes to be in a notebook it would show the text there, a second time."""
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    text = io.StringIO()
    text_console(text, 80).print("once")
    assert text.getvalue() == "once\n"
