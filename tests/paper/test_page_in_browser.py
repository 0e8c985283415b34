"""The page in a real browser: no errors, every figure drawn, usable at 400 pixels and on paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from partsketch.paper.figures import FIGURES
from tests.paper.conftest import QuickRun

# One process makes what they all look at.
pytestmark = pytest.mark.xdist_group("study")

#: Counts pixels that are not white in what the browser made of an image.
INKED = """image => {
  const canvas = document.createElement('canvas');
  canvas.width = 300; canvas.height = Math.max(1, Math.round(300 * image.naturalHeight / image.naturalWidth));
  const context = canvas.getContext('2d');
  context.fillStyle = 'white'; context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  const data = context.getImageData(0, 0, canvas.width, canvas.height).data;
  let inked = 0;
  for (let i = 0; i < data.length; i += 4) if (Math.min(data[i], data[i + 1], data[i + 2]) < 225) inked += 1;
  return inked / (data.length / 4);
}"""


def opened(browser: Any, run: QuickRun, width: int) -> tuple[Any, list[str]]:
    page = browser.new_page(viewport={"width": width, "height": 900})
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on(
        "request", lambda request: None if request.url.startswith(("file:", "data:")) else messages.append(request.url)
    )
    page.goto((run.folder / "index.html").as_uri(), wait_until="load")
    return page, messages


@pytest.mark.parametrize("width", [1200, 400])
def test_every_figure_is_drawn_without_errors(browser: Any, quick_run: QuickRun, width: int) -> None:
    page, messages = opened(browser, quick_run, width)
    images = page.query_selector_all("figure img")
    assert len(images) == len(FIGURES)
    for image in images:
        assert image.evaluate("image => image.complete && image.naturalWidth > 0")
        assert image.evaluate(INKED) > 0.01
        assert image.bounding_box()["width"] > 0.85 * width - 80
    assert messages == []
    page.close()


def test_usable_at_400_pixels(browser: Any, quick_run: QuickRun) -> None:
    page, _ = opened(browser, quick_run, 400)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert page.evaluate("parseFloat(getComputedStyle(document.body).fontSize)") >= 14
    # Figures change to panels below one another: taller than wide.
    for image in page.query_selector_all("figure img"):
        box = image.bounding_box()
        assert box["height"] > box["width"]
    # The table of claims becomes a list of cards within the screen.
    for cell in page.query_selector_all(".claims td"):
        box = cell.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 400
    page.close()


def test_claims_are_readable_and_links_lead_somewhere(browser: Any, quick_run: QuickRun) -> None:
    page, _ = opened(browser, quick_run, 1200)
    assert len(page.query_selector_all(".claims tbody tr")) == len(quick_run.answer["claims"])
    for claim in quick_run.answer["claims"]:
        assert claim["verdict"] in page.text_content(f"[id='claim-{claim['name']}'] .verdict")
    for link in page.query_selector_all("nav a"):
        assert page.query_selector(f"[id='{link.get_attribute('href')[1:]}']") is not None
    page.close()


def test_usable_in_print(browser: Any, quick_run: QuickRun, tmp_path: Path) -> None:
    page, messages = opened(browser, quick_run, 1200)
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    paper = page.pdf(path=str(tmp_path / "page.pdf"), format="A4", margin={"left": "15mm", "right": "15mm"})
    assert paper.startswith(b"%PDF")
    # Every figure on paper, none cut: at least one page for each two figures, and not one page per row.
    assert 5 <= paper.count(b"/Type /Page\n") + paper.count(b"/Type /Page ") + paper.count(b"/Type /Page/") <= 40
    page.set_viewport_size({"width": 680, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= 680
    assert messages == []
    page.close()
