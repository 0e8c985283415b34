"""The documentation site: it builds without a warning, its links lead somewhere, every command has a page."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from benchmarks.series import plot_growth

import partsketch
import partsketch.simulate
from partsketch.cli import COMMANDS

# One process makes what they all look at.
pytestmark = pytest.mark.xdist_group("site")

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "-q", "-b", "html"]
    done = subprocess.run(
        [*command, "-d", str(folder / "trees"), str(DOCS), str(folder / "html")], text=True, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


class _Links(HTMLParser):
    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := values.get(name))}
        for name in ("href", "src"):
            if value := values.get(name):
                self.links.append(value)


def test_links_lead_somewhere_and_nothing_is_loaded_from_outside(site: Path) -> None:
    pages = {path: _Links(path) for path in site.rglob("*.html")}
    assert len(pages) > 20
    broken = []
    for page, found in pages.items():
        for link in found.links:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https", "mailto", "data"):
                continue
            path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if not path.exists():
                broken.append(f"{page.name}: {link}")
            elif parts.fragment and path in pages and parts.fragment not in pages[path].anchors | {""}:
                broken.append(f"{page.name}: {link} (no such place on that page)")
    assert broken == []


def test_markdown_links_of_the_repository_lead_somewhere() -> None:
    broken = []
    pages = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
    for page in [*pages, *DOCS.glob("*.md"), *(ROOT / "benchmarks").glob("*.md")]:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            parts = urlsplit(link)
            if not parts.scheme and parts.path and not (page.parent / unquote(parts.path)).exists():
                broken.append(f"{page.name}: {link}")
    assert broken == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_page_that_shows_it(command: str) -> None:
    assert f"partsketch {command}" in (DOCS / f"{command}.md").read_text()


def test_every_page_is_in_the_navigation(site: Path) -> None:
    front = _Links(site / "index.html")
    for page in DOCS.glob("*.md"):
        if page.stem != "index":
            assert f"{page.stem}.html" in front.links


def test_a_plot_of_the_benchmarks_is_the_same_file_every_time(tmp_path: Path) -> None:
    """Names inside an SVG file are drawn at random unless they are told not to be."""
    for name in ("first.svg", "second.svg"):
        plot_growth(ROOT / "benchmarks" / "results", tmp_path / name)
    assert (tmp_path / "first.svg").read_bytes() == (tmp_path / "second.svg").read_bytes()


def test_everything_public_is_in_the_api_reference(site: Path) -> None:
    page = _Links(site / "api.html")
    missing = [name for name in partsketch.__all__ if f"partsketch.{name}" not in page.anchors]
    # Modules have sections of their own, and a version no page.
    assert set(missing) <= {"theory", "simulate", "__version__"}
    for module in (partsketch.theory, partsketch.simulate):
        names = {f"{module.__name__}.{name}" for name in module.__all__ if callable(getattr(module, name))}
        assert names <= page.anchors


def test_formulas_are_typeset_without_scripts(site: Path) -> None:
    page = (site / "mathematics.html").read_text()
    assert page.count("<math") > 50
    # A macron as an accent is drawn onto the letter; averages and what they are averages of must look different.
    assert "ˉ" not in page
    assert page.count("<mo>¯</mo>") > 5
    assert not any("mathjax" in link.lower() for link in _Links(site / "mathematics.html").links)
