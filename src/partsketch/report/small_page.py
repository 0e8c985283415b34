"""A page of one figure or two and a table: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

from partsketch.common.files import write_atomically

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: #1a1a1a;
  background: #fff; }
svg { width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; fill: #1a1a1a; }
.bar { stroke: #767676; stroke-width: 1.5; fill: none; } .point { fill: #0b5cad; }
.zero { stroke: #1a1a1a; stroke-dasharray: 4 3; }
.rule { stroke: #e2e2e2; } .axis { stroke: #767676; fill: none; } .chosen { stroke: #b3400e; stroke-dasharray: 5 3; }
.curve { fill: none; stroke: #0b5cad; stroke-width: 2; } .thin { fill: none; stroke-width: 1.5; }
.dot { stroke-linecap: round; } .in { stroke: #1a1a1a; } .out { stroke: #d5d5d5; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; } td, th { padding: 0.2rem 0.8rem; text-align: right; }
th:first-child, td:first-child { text-align: left; }
"""


def write_page(title: str, heading: str, parts: Iterable[str], path: Path) -> None:
    """Write a page; `parts` are its elements as HTML."""
    body = "\n".join(parts)
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{escape(title)}</title><style>{_STYLE}</style></head><body>
<h1>{escape(heading)}</h1>
{body}
</body></html>
"""
    write_atomically(path, page.encode())


def picture(label: str, width: int, height: int, parts: Iterable[str]) -> str:
    """Return an SVG figure with words for those who cannot see it."""
    named = escape(label, quote=True)
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{named}">{"".join(parts)}</svg>'


def scrolling(table: str) -> str:
    """Return a table that may be wider than the page."""
    return f'<div class="scroll" tabindex="0" role="group" aria-label="Table">{table}</div>'
