"""Models side by side, in every form with the same numbers."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import partsketch as ps
from tests.questions.data import clustered_rows

SUMMARIES = ps.summarise(clustered_rows(), ["a", "b", "c", "y", "z"], partition_by="g")
MODELS = [
    SUMMARIES.fit("y", ["a"]),
    SUMMARIES.fit("y", ["a", "b"], vcov="CRV1", intercept="partition"),
    SUMMARIES.fit("z", ["a", "b"], alpha=2.0),
]


def test_the_terminal_shows_coefficients_errors_and_facts() -> None:
    text = str(ps.table(MODELS))
    lines = text.splitlines()
    assert lines[1].split() == ["(1)", "y", "(2)", "y", "(3)", "z"]
    row = next(line for line in lines if line.startswith("a "))
    errors = [MODELS[0].standard_errors[1], MODELS[1].standard_errors[0]]
    # Three digits of the errors, and coefficients to the same place; five digits where there is no error.
    places = [2 - int(np.floor(np.log10(error))) for error in errors]
    shown = [f"{model.coefficients[0, 0]:.{n}f}" for model, n in zip(MODELS, places, strict=False)]
    assert row.split()[1:] == [*shown, f"{MODELS[2].coefficients[0, 0]:.5g}"]
    below = lines[lines.index(row) + 1]
    assert below.split() == [f"({error:.{place}f})" for error, place in zip(errors, places, strict=True)]
    assert next(line for line in lines if line.startswith("errors")).split() == ["errors", "iid", "CRV1", "none"]
    assert "by partition" in text
    assert next(line for line in lines if line.startswith("R²")).split()[2:4] == [
        f"{MODELS[1].inferences[0].r_squared:.4f}",
        "within",
    ]
    assert "R-squared within:" in str(MODELS[1])
    assert next(line for line in lines if line.startswith("penalty")).split() == ["penalty", "2"]


def test_files_have_all_digits(tmp_path: Path) -> None:
    shown = ps.table(MODELS, ["one", "two", "three"])
    text = shown.to_csv()
    assert text is not None
    rows = {(row[0], row[1]): row[2:] for row in csv.reader(io.StringIO(text))}
    assert rows["name", "statistic"] == ["one", "two", "three"]
    assert [float(cell) for cell in rows["b", "coefficient"][1:]] == [
        float(model.coefficients[1, 0]) for model in MODELS[1:]
    ]
    assert rows["b", "standard_error"][0] == rows["b", "standard_error"][2] == ""
    shown.to_csv(tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text() == text
    frame = shown.to_frame()
    assert frame.loc[("a", "coefficient"), "two"] == MODELS[1].coefficients[0, 0]


def test_stars_say_what_they_mean() -> None:
    shown = ps.table(MODELS, stars=True)
    p_values = np.array([model.p_values[-1] for model in MODELS[:2]])
    cells = next(line for line in shown.lines() if line[0] == "b")
    marks = "*" * int((p_values[1] < np.array([0.05, 0.01, 0.001])).sum())
    assert cells[2].lstrip("-0123456789.e+") == marks
    assert "*" not in cells[3]
    for form in (str(shown), shown.to_latex().replace(r"\textless{}", "<"), shown.to_html().replace("&lt;", "<")):
        assert "* p < 0.05, ** p < 0.01, *** p < 0.001" in form
    assert "*" not in str(ps.table(MODELS))


def test_latex_and_html() -> None:
    rows = clustered_rows().rename(columns={"a": "50%_<a>&"})
    model = ps.summarise(rows, ["50%_<a>&", "y"]).fit("y")
    shown = ps.table([model])
    assert r"50\%\_\textless{}a\textgreater{}\&" in shown.to_latex()
    assert shown.to_latex().count(r"\\") == len(shown.lines()) + 1
    page = ElementTree.fromstring(shown.to_html())
    assert [cell.text for cell in page.iter("th")][2] == "50%_<a>&"


def test_what_cannot_be_shown() -> None:
    with pytest.raises(ps.InputError, match="at least one"):
        ps.table([])
    with pytest.raises(ps.InputError, match="give one for each of the 3"):
        ps.table(MODELS, ["one"])
    with pytest.raises(ps.InputError, match="digits is 0"):
        ps.table(MODELS, digits=0)


def test_absorbed_levels_and_clusters_are_named() -> None:
    rows = clustered_rows()
    model = ps.fit(rows, "y", ["a"], absorb="g", vcov={"CRV1": "g"})
    facts = {name: said for name, *said in ps.table([model]).lines() if name in ("R²", "intercept", "errors")}
    assert facts["intercept"] == ["by g"]
    assert facts["errors"] == ["CRV1 g"]
    assert facts["R²"][0].endswith(" within")


def test_a_table_may_keep_some_coefficients() -> None:
    every = ps.table(MODELS)
    some = ps.table(MODELS, keep=["b", "a"])
    assert [name for name, _ in some.coefficients] == ["b", "a"]
    assert dict(some.coefficients) == {name: dict(every.coefficients)[name] for name in ("a", "b")}
    assert some.facts == every.facts
    with pytest.raises(ps.InputError, match=r"No model has a coefficient 'd' to keep: they have 'a', 'b' and"):
        ps.table(MODELS, keep=["d"])
    with pytest.raises(ps.InputError, match=r"give a list of names, such as keep=\['a'\]"):
        ps.table(MODELS, keep="a")
    with pytest.raises(ps.InputError, match=r"goes to headings="):
        ps.table({"first": MODELS[0]})  # type: ignore[arg-type]
