"""What a notebook shows of what ends a cell: a table, once, and nothing that data could make a page do."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from operator import methodcaller
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pyarrow as pa
import pytest
from IPython.display import HTML
from nbclient import NotebookClient

import partsketch as ps
from partsketch.common.terminal import text_console
from partsketch.common.units import estimate_text
from partsketch.engines.progress import RowProgress

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
    assert f">{model.summary().rows[1].cells()[0]}</td>" in page
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


@pytest.mark.parametrize("shown", ["plan", "diagnosis", "summary", "table", "path", "certificate", "test"])
def test_everything_else_shows_its_text(shown: str) -> None:
    data = rows(["y", "x"])
    model = ps.fit(data, "y")
    makers: dict[str, Callable[[], Any]] = {
        "plan": lambda: ps.plan(rows=10_000, columns=5),
        "diagnosis": lambda: ps.diagnose(data, "y", n_partitions=2),
        "summary": model.summary,
        "table": lambda: ps.table([model]),
        "path": lambda: ps.summarise(data, ["y", "x"], partition_by="shuffle", n_partitions=3).ridge_path("y", folds=3),
        "certificate": lambda: model.certificate,
        "test": lambda: model.test("x = 0"),
    }
    made = makers[shown]()
    assert repr(made) == str(made)
    assert in_notebook(made).startswith(("<pre ", "<table>", "<p>"))


def test_text_goes_to_its_file_in_a_notebook_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rich believes to be in a notebook it would show the text there, a second time."""
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    text = io.StringIO()
    text_console(text, 80).print("once")
    assert text.getvalue() == "once\n"


def test_every_form_of_a_summary_has_the_same_numbers(tmp_path: Path) -> None:
    model = ps.fit(rows(["y", "x", "50%_&"]), ["y", "x"])
    summary = model.summary(stars=True)
    text = summary.to_csv()
    assert text is not None
    read = list(csv.DictReader(io.StringIO(text)))
    frame = summary.to_frame()
    for line in read:
        for name in ("coefficient", "standard_error", "t_value", "p_value", "lower", "upper"):
            assert float(line[name]) == frame.loc[(line["target"], line["name"]), name]
    summary.to_csv(tmp_path / "fit.csv")
    assert (tmp_path / "fit.csv").read_text() == text
    latex = summary.to_latex()
    assert latex.count(r"\begin{tabular}") == 2
    assert latex.count(r"50\%\_\&") == 2
    for row in summary.rows:
        assert row.cells()[0] in latex
        assert row.cells()[1] in summary.to_html()
    assert {line["intervals_of"] for line in read} == {"truth"}
    said = r"\multicolumn{7}{l}{Standard errors, tests and 95\% intervals are for the true coefficients.}"
    assert latex.count(said) == 2
    assert "* p < 0.05" in str(summary)
    assert "* p < 0.05" not in str(model.summary())


def test_long_names_are_shown_to_their_ends() -> None:
    """They end in the level, without which rows could not be told apart."""
    name = "C(the_zone_of_the_pickup, contr.treatment('somewhere_in_the_old_harbour'))"
    names = [f"{name}[T.{level}]" for level in ("airport", "airfield")]
    shown = str(ps.fit(rows(["y", *names]), "y").summary())
    assert "…" not in shown
    heads = [line[:60].rstrip() for line in shown.splitlines() if line.startswith("  ")]
    assert "".join(heads).replace(" ", "").count("[T.air") == 2
    assert all(end in "".join(heads).replace(" ", "") for end in ("[T.airport]", "[T.airfield]"))


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        (0.98755, 0.0070668, "0.98755"),
        (0.0070668, 0.0070668, "0.00707"),
        (-1e-5, 0.1, "0.000"),
        (0.9996, 0.9996, "1.00"),
        (123456.7, 25.3, "123456.7"),
        (123456.7, 2500.3, "123457"),
        (2.0109e-5, 7.0827e-8, "2.01090e-05"),
        (1.2e9, 3.3e7, "1.2000e+09"),
        (0.0, 1e-9, "0"),
        (2 / 3, None, "0.66667"),
        (5e-324, 5e-324, "4.94e-324"),
    ],
)
def test_digits_that_the_error_leaves(value: float, error: float | None, shown: str) -> None:
    assert estimate_text(value, error) == shown


def test_summaries_are_a_table_of_partitions() -> None:
    data = rows(["y", "<b>"]).append_column("g", pa.array(np.arange(200) % 30))
    page = in_notebook(ps.summarise(data, partition_by="g"))
    assert "30 partitions, 200 rows" in page
    assert page.count("<tr>") == 22
    assert "… 10 more" in page
    assert "<b>" not in page


class _Shell:
    kernel = object()


def test_a_notebook_has_a_bar_once_a_second_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, page: HTML) -> None:
            shown.append(page.data)

    clock = iter([0.0, 0.5, 2.0, 2.0, 2.1, 2.1, 3.0])
    monkeypatch.setattr("IPython.get_ipython", _Shell)
    monkeypatch.setattr("IPython.display.display", lambda page, display_id: Handle())
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    with RowProgress(1000) as progress:
        progress.advance(100)  # half a second: nothing yet
        assert shown == []
        progress.advance(300)
        progress.advance(100)  # a tenth of a second later: the browser is not told again
    assert shown == ['reading rows <progress value="400" max="1000"></progress> 400 of 1,000', ""]


def results(outputs: list[Any]) -> list[Any]:
    assert {output.output_type for output in outputs} <= {"execute_result", "display_data"}
    assert all(output.data["text/html"] == "" for output in outputs if output.output_type == "display_data")
    return [output for output in outputs if output.output_type == "execute_result"]


@pytest.mark.slow
def test_the_notebook_runs_and_every_table_is_there_once() -> None:
    path = Path(__file__).parents[2] / "examples" / "trips.ipynb"
    notebook = nbformat.read(path, 4)
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    # A bar of progress, taken away again, is an output too where reading took longer than a second.
    outputs = [results(cell.outputs) for cell in notebook.cells if cell.cell_type == "code"]
    assert [len(shown) for shown in outputs] == [1] * len(outputs)
    pages = ["".join(shown[0].data.get("text/html", "")) for shown in outputs]
    assert sum("<table>" in page for page in pages) == 3
    assert sum("<pre " in page for page in pages) == 2
    # What stands in the file is what comes out: the same seeds, and digits that errors leave.
    kept = [results(cell.outputs) for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    for old, new in zip(kept[:6], outputs[:6], strict=True):
        assert old[0].data == new[0].data


def test_summaries_are_shown_in_one_line(tmp_path: Path) -> None:
    """A bare sketch tells what it is of; its numbers are asked for as an array."""
    data = rows(["y", *(f"x{i}" for i in range(12))])
    sketch = ps.sketch(data, target="y", sketch_size=60, site="north", random_state=1)
    assert repr(sketch) == (
        "Summary(gaussian, 60 × 14 for 200 rows, columns: (intercept), x0, x1, x2, x3, x4, x5, x6, …; site north)"
    )
    assert in_notebook(sketch).startswith("<p>Summary(gaussian")
    bounds = dict.fromkeys(("y", "x0"), (-9.0, 9.0))
    promise: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "bounds": bounds, "ledger": tmp_path / "ledger.jsonl"}
    promised = ps.sketch(data.select(["y", "x0"]), target="y", site="north", **promise)
    assert repr(promised).startswith("NoisySummary(sums of products with noise, ε = 1, δ = 1e-06, columns: ")
    with pytest.raises(TypeError, match="one array for each partition"):
        np.asarray(ps.summarise(data))
