"""Tables of text as LaTeX and as HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence

from partsketch.common.text import plain

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "²": r"\textsuperscript{2}", "…": r"\dots{}",
}  # fmt: skip


def latex_text(text: str) -> str:
    """Return text with the signs of LaTeX escaped."""
    return "".join(_LATEX.get(character, character) for character in plain(text))


def html_text(text: str) -> str:
    """Make text fit for a page: control characters written out, signs of HTML escaped."""
    return html.escape(plain(text))


def latex_table(head: Sequence[str], lines: Sequence[Sequence[str]], foot: Sequence[Sequence[str]] = ()) -> str:
    """Return a tabular environment with the rules of the package booktabs; names stand left, numbers right."""
    below = [r"\midrule", *(_spanning(row) for row in foot)] if foot else []
    body = [r"\toprule", _row(head), r"\midrule", *map(_row, lines), *below, r"\bottomrule"]
    return "\n".join([rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}", *body, r"\end{tabular}"])


def _spanning(row: Sequence[str]) -> str:
    """Return a line of a table; one with a single text has no columns, which that would make too wide."""
    if len(row) > 1 and not any(row[1:]):
        return rf"\multicolumn{{{len(row)}}}{{l}}{{{latex_text(row[0])}}} \\"
    return _row(row)


def _row(cells: Sequence[str]) -> str:
    return " & ".join(map(latex_text, cells)) + r" \\"


def html_table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table element; the first cell of every line is its heading, numbers stand right."""
    headings = "".join(f"<th>{html_text(cell)}</th>" for cell in head)
    right = ' style="text-align: right"'
    body = "\n".join(
        f"<tr><th>{html_text(row[0])}</th>" + "".join(f"<td{right}>{html_text(c)}</td>" for c in row[1:]) + "</tr>"
        for row in lines
    )
    return f"<table>\n<thead><tr>{headings}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
