"""The report in a real browser: what it says, sorting, filtering, the keyboard, telephones, paper, the dark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partsketch import Model, write_report
from tests.pages import accessibility_faults, opened
from tests.report.conftest import FEATURES, HOSTILE, QUOTED, Reports

NAMES = "[...document.querySelectorAll('#table tbody tr:not([hidden]) th')].map(cell => cell.textContent)"
VALUES = "[...document.querySelectorAll('#table tbody tr:not([hidden]) td:nth-child({})')].map(c => +c.dataset.value)"


def test_everything_is_there(browser: Any, reports: Reports) -> None:
    model = reports.model
    with opened(browser, reports.single) as page:
        text = page.inner_text("body")
        assert model.certificate.sentence in text
        assert page.evaluate(NAMES) == list(model.column_names)
        lower, upper = model.conf_int().T
        for column, expected in ((3, model.column_coefficients[:, 0]), (4, lower), (5, upper)):
            np.testing.assert_allclose(page.evaluate(VALUES.format(column)), expected, rtol=1e-12)
        assert page.locator("#choice svg.chart").count() == 2
        assert page.locator("#choice svg.chart .mark").count() == 2
        assert page.locator("#divergence rect[data-words]").count() == 16
        assert page.locator("#residuals svg.chart").count() == 3
        costs = page.inner_text("#costs")
        for method in ("exact", "average", "partition (this fit)", "stack", "whole"):
            assert method in costs
        record = page.inner_text("#record")
        for value in (str(model.record.seed), model.record.versions["numpy"], "remainder", "partsketch fit"):
            assert value in record


def test_several_models_side_by_side(browser: Any, reports: Reports) -> None:
    with opened(browser, reports.several) as page:
        heads = page.locator("#overview thead th").all_inner_texts()
        assert heads == ["fact", "1: partition", "2: average", "3: exact"]
        assert page.locator("#table tbody tr").count() == len(FEATURES) + 1
        # One interval per model in every row, on the scale that is shown.
        assert page.locator("#table tbody tr:nth-child(2) .units .bar").count() == 3
        assert "there are no partitions to compare" in page.inner_text("#divergence")
        assert page.locator("#record pre.command").count() == 3


def test_hostile_names_stay_text(browser: Any, reports: Reports) -> None:
    with opened(browser, reports.single) as page:
        page.on("dialog", lambda dialog: pytest.fail(f"a name was run: {dialog.message}"))
        assert page.locator("img").count() == 0
        assert page.locator("script").count() == 1
        names = page.evaluate(NAMES)
        assert HOSTILE in names
        assert QUOTED in names


def test_sorting_with_the_keyboard(browser: Any, reports: Reports) -> None:
    with opened(browser, reports.single) as page:
        button = page.get_by_role("button", name="estimate")
        button.focus()
        page.keyboard.press("Enter")
        heading = page.locator("#table th", has=button)
        assert heading.get_attribute("aria-sort") == "ascending"
        values = page.evaluate(VALUES.format(3))
        assert values == sorted(values)
        page.keyboard.press("Space")
        assert heading.get_attribute("aria-sort") == "descending"
        assert page.evaluate(VALUES.format(3)) == sorted(values, reverse=True)


def test_filters_say_how_many_are_left(browser: Any, reports: Reports) -> None:
    with opened(browser, reports.single) as page:
        page.get_by_label("Filter by name").fill("X1")
        assert page.evaluate(NAMES) == ["x1"]
        assert page.inner_text("#count") == f"1 shown of 1 that match, of {len(FEATURES) + 1} coefficients"
        page.get_by_label("Filter by name").fill("")
        page.get_by_label("only intervals without zero").check()
        lower, upper = reports.model.conf_int().T
        clear = [name for name, a, b in zip(reports.model.column_names, lower, upper, strict=True) if a > 0 or b < 0]
        assert page.evaluate(NAMES) == clear
        assert 0 < len(clear) < len(FEATURES)


def test_scale_of_the_forest_plot_can_be_changed(browser: Any, reports: Reports) -> None:
    with opened(browser, reports.single) as page:
        page.get_by_label("Scale").select_option("errors")
        assert page.locator("#table tbody tr:first-child .errors").is_visible()
        assert not page.locator("#table tbody tr:first-child .units").is_visible()


def test_heat_map_walks_with_arrow_keys(browser: Any, reports: Reports) -> None:
    with opened(browser, reports.single) as page:
        page.locator(".walk").focus()
        for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown", "ArrowUp"):
            page.keyboard.press(key)
        matrix = np.array(reports.model.outlook.divergences)
        assert f"seen from 2: 1: {matrix[1, 1] / matrix[1, 1]:.4g}" in page.inner_text("output")
        page.keyboard.press("ArrowUp")
        # Partition 0 was made larger by 1.7 in the data, about 2.9 in squares.
        value = float(page.inner_text("output").rsplit(": ", 1)[1])
        assert value == pytest.approx(matrix[0, 1] / matrix[1, 1], rel=1e-3)
        assert 2 < value < 4


def test_the_command_can_be_copied(browser: Any, reports: Reports) -> None:
    with opened(browser, reports.single) as page:
        page.get_by_role("button", name="Copy the command").click()
        page.get_by_role("button", name=re.compile("^Copied$|^Selected")).wait_for()


@pytest.mark.parametrize(("address", "width", "scheme"), [("single", 390, "dark"), ("several", 1200, "light")])
def test_accessibility(browser: Any, reports: Reports, address: str, width: int, scheme: str) -> None:
    assert accessibility_faults(browser, getattr(reports, address), width, scheme) == []


@pytest.mark.parametrize("address", ["single", "several"])
def test_fits_a_telephone(browser: Any, reports: Reports, address: str) -> None:
    with opened(browser, getattr(reports, address), 390) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.evaluate("parseFloat(getComputedStyle(document.body).fontSize)") >= 14
        for chart in page.query_selector_all("svg.chart"):
            assert chart.bounding_box()["width"] > 300
        # Estimates are seen without scrolling sideways.
        assert (
            page.evaluate("(box => box.scrollWidth - box.clientWidth)(document.querySelector('#coefficients .scroll'))")
            <= 0
        )
        # Words in charts keep at least ten pixels.
        assert page.evaluate("document.querySelector('#choice text').getBoundingClientRect().height") >= 10


def test_the_dark_is_dark_and_paper_is_white(browser: Any, reports: Reports, tmp_path: Path) -> None:
    def brightness(page: Any) -> float:
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(float(part) for part in colour.strip("rgb()").split(",")) / 3

    with opened(browser, reports.single, scheme="dark") as page:
        assert brightness(page) < 60
        page.emulate_media(media="print", color_scheme="dark")
        assert brightness(page) == 255
        assert page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
        paper = page.pdf(path=str(tmp_path / "page.pdf"), format="A4")
        assert paper.startswith(b"%PDF")
        page.set_viewport_size({"width": 680, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= 680


def test_two_thousand_coefficients_stay_usable(browser: Any, tmp_path: Path, wide_model: Model) -> None:
    path = tmp_path / "wide.html"
    write_report([wide_model], path)
    assert path.stat().st_size < 4e6
    with opened(browser, path.as_uri()) as page:
        assert page.locator("#table tbody tr:not([hidden])").count() == 50
        took = page.evaluate(
            """() => { const started = performance.now();
            document.querySelectorAll('#table thead button')[1].click();
            document.body.getBoundingClientRect(); return performance.now() - started; }"""
        )
        # A quarter of a second feels immediate; sorting takes about a tenth of that on an idle desktop machine.
        assert took < 1000
        page.emulate_media(media="print")
        shown = "[...document.querySelectorAll('#table tbody tr')].filter(row => row.offsetHeight > 0).length"
        assert page.evaluate(shown) == 2001  # paper has no button
        page.emulate_media(media="screen")
        assert page.evaluate(shown) == 50
        page.get_by_role("button", name="Show all").click()
        assert page.locator("#table tbody tr:not([hidden])").count() == 2001
        page.get_by_label("Filter by name").fill("x1999")
        assert page.evaluate(NAMES) == ["x1999"]
