"""Sites that share sketches, plans, diagnoses, the study's data, and what a page needs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import partsketch as ps

from .rows import TARGET, exact_coefficients, matrix, table


def test_sketch_files_become_a_model(tmp_path: Path) -> None:
    for site, start in (("north", 0), ("south", 1000), ("west", 2000)):
        summary = ps.sketch(table().slice(start, 1000), TARGET, sketch="triangular", site=site)
        summary.save(tmp_path / f"{site}.psk")
    files = [tmp_path / f"{site}.psk" for site in ("north", "south", "west")]
    model = ps.combine(files, TARGET)
    np.testing.assert_allclose(model.column_coefficients[:, 0], exact_coefficients(), rtol=0, atol=1e-12)


def test_gaussian_sketches_of_sites(tmp_path: Path) -> None:
    made = [
        ps.sketch(table().slice(start, 1500), TARGET, site=str(start), sketch_size=200, random_state=1)
        for start in (0, 1500)
    ]
    model = ps.combine(made, TARGET, method="stack")
    # 400 sketch rows for 4 columns and noise of one: errors have a deviation below 0.1.
    np.testing.assert_allclose(model.column_coefficients[:, 0], exact_coefficients(), rtol=0, atol=0.5)


def test_a_plan_recommends_exact_least_squares() -> None:
    plan = ps.plan(table(), TARGET, n_partitions=4)
    assert "exact" in str(plan)
    assert ps.fit(table(), TARGET, method="auto", n_partitions=4, random_state=0).record.options["method"] == "exact"


def test_a_diagnosis_names_the_row_that_matters() -> None:
    values = matrix()
    values[1234, 1] = 900.0
    found = ps.diagnose(values, TARGET, n_partitions=4)
    assert 1234 in [row.row for row in found.influential_rows]
    assert found.advice


def test_a_page(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    models = [ps.fit(table(), TARGET, method=method, random_state=0) for method in ("exact", "partition")]
    ps.write_report(models, tmp_path / "page.html", table())
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("<svg") > 2
    assert "https://" not in page.replace("https://www.w3.org", "")
