"""Settings of the documentation site: Sphinx with Markdown pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

from partsketch._version import __version__

project = "partsketch"
author = "The partsketch developers"
copyright = author
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
# Headings are link targets, as on other renderers of Markdown.
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"partsketch {release}"
# No network: everything that a page needs is in the folder that is built.
html_theme_options = {"top_of_page_buttons": []}
exclude_patterns = ["_build"]
nitpicky = True
# Types of other projects have no pages here; links between our own pages are all checked.
nitpick_ignore_regex = [("py:.*", ".*")]
suppress_warnings = ["ref.python"]
html_math_renderer = "mathml"

napoleon_google_docstring = False
napoleon_use_rtype = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
# Docstrings quote names with single backticks.
default_role = "code"


def list_other_pages(app: Any, name: str, source: list[str]) -> None:
    """Put pages that the index does not name at the end of its navigation, so that none is forgotten."""
    if name == "index":
        pages = sorted(path.stem for path in Path(app.srcdir).glob("*.md"))
        others = [page for page in pages if page != "index" and not re.search(rf"^{page}$", source[0], re.MULTILINE)]
        source[0] = source[0].replace("(other pages)", "\n".join(others))


#: A bar as an accent lies on the letter below it, where nobody sees it.
_BAR = re.compile(r'<mover accent="true">((?:(?!<mover).)*?)<mo stretchy="false">ˉ</mo>', re.DOTALL)


def formula(translator: Any, node: Any) -> None:
    """Write a formula as MathML, which browsers typeset themselves: no script, no network."""
    block = isinstance(node, nodes.math_block)
    markup = _BAR.sub(r"<mover>\1<mo>¯</mo>", tex2mathml(node.astext(), as_block=block))
    translator.body.append(f'<div class="math">{markup}</div>' if block else markup)
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Connect the above."""
    app.connect("source-read", list_other_pages)
    app.add_html_math_renderer("mathml", inline_renderers=(formula, None), block_renderers=(formula, None))
