"""Settings of the documentation site: Sphinx with Markdown pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from partsketch._version import __version__

project = "partsketch"
author = "The partsketch developers"
copyright = author
release = version = __version__

extensions = ["myst_parser", "sphinx_copybutton"]
myst_enable_extensions = ["colon_fence"]
# Headings are link targets, as on other renderers of Markdown.
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"partsketch {release}"
# No network: everything that a page needs is in the folder that is built.
html_theme_options = {"top_of_page_buttons": []}
exclude_patterns = ["_build"]
nitpicky = True


def list_other_pages(app: Any, name: str, source: list[str]) -> None:
    """Put pages that the index does not name at the end of its navigation, so that none is forgotten."""
    if name == "index":
        pages = sorted(path.stem for path in Path(app.srcdir).glob("*.md"))
        others = [page for page in pages if page != "index" and not re.search(rf"^{page}$", source[0], re.MULTILINE)]
        source[0] = source[0].replace("(other pages)", "\n".join(others))


def setup(app: Any) -> None:
    """Connect the above."""
    app.connect("source-read", list_other_pages)
