"""The explorer in a real browser: sliders move the numbers, the address keeps the state, figures can be saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from partsketch import theory
from partsketch.report.explorer.server import ExplorerServer
from partsketch.report.explorer.state import State
from tests.pages import accessibility_faults, opened

LOCAL = "http://127.0.0.1:"


def state_of(page: Any) -> State:
    return State.from_query(dict(parse_qsl(urlsplit(page.url).query)))


def shown_loss(page: Any, row: int) -> float:
    return float(page.locator(f"#rows tr:nth-child({row}) td:nth-child(3)").inner_text())


def ready(page: Any) -> None:
    """Wait until the page shows the answer to the sizes it was asked last."""
    page.locator("#answers[aria-busy=false]").wait_for()
    page.locator("#figure-k svg").wait_for()


def test_sliders_move_numbers_curves_command_and_address(browser: Any, server: ExplorerServer) -> None:
    with opened(browser, server.address, allowed=LOCAL) as page:
        ready(page)
        before = page.inner_html("#figure-m")
        slider = page.get_by_label("partitions k", exact=True)
        slider.focus()
        for _ in range(3):
            page.keyboard.press("PageUp")
        ready(page)
        state = state_of(page)
        assert state.k > State().k
        expected = theory.expected_whole_excess_loss(state.n, state.d, state.m, state.k, state.variance)
        assert shown_loss(page, 1) == pytest.approx(expected, rel=1e-3)
        assert page.inner_html("#figure-m") != before
        assert page.inner_text("#command") == state.plan_command()


def test_the_address_brings_a_state_back(browser: Any, server: ExplorerServer) -> None:
    wanted = State(n=30_000, d=7, k=3, m=44, variance=2.0, odd=5.0, design="odd")
    base = server.address.split("?")[0]
    with opened(browser, f"{base}?{wanted.to_query()}", allowed=LOCAL) as page:
        ready(page)
        assert state_of(page) == wanted
        divergence = theory.odd_partition_divergence(7, 3, 5.0)
        expected = theory.expected_partition_excess_loss(30_000, 7, 44, 3, 2.0, divergence)
        assert shown_loss(page, 2) == pytest.approx(expected, rel=1e-3)
        assert page.get_by_label("size of the odd partition's rows", exact=True).is_visible()
        assert not page.get_by_label("divergence D/d", exact=True).is_visible()


def test_nonsense_is_explained_and_can_be_mended(browser: Any, server: ExplorerServer) -> None:
    with opened(browser, server.address, allowed=LOCAL) as page:
        ready(page)
        page.get_by_label("rows n, as a number").fill("5")
        page.get_by_label("rows n, as a number").press("Tab")
        page.get_by_role("alert").wait_for()
        assert "rows n is 5" in page.get_by_role("alert").inner_text()
        page.get_by_label("rows n, as a number").fill("5000")
        page.get_by_label("rows n, as a number").press("Tab")
        page.get_by_role("alert").wait_for(state="hidden")


def test_figures_are_saved_with_their_state(browser: Any, server: ExplorerServer, tmp_path: Path) -> None:
    with opened(browser, server.address, allowed=LOCAL) as page:
        ready(page)
        with page.expect_download() as download:
            page.locator("#save-k").click()
        assert download.value.suggested_filename == "excess-loss-against-k.svg"
        download.value.save_as(tmp_path / "figure.svg")
    with opened(browser, (tmp_path / "figure.svg").as_uri()) as page:
        # A file of its own that a browser draws: white paper with curves on it.
        assert page.locator("polyline").count() >= 4
        assert page.evaluate("getComputedStyle(document.querySelector('polyline')).stroke") != "none"


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark")])
def test_accessible_on_desks_and_telephones(browser: Any, server: ExplorerServer, width: int, scheme: str) -> None:
    with opened(browser, server.address, width, scheme, LOCAL) as page:
        ready(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert accessibility_faults(browser, server.address, width, scheme) == []
