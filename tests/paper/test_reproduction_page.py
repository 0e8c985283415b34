"""The page in docs/ shows every figure and every claim of the study, and stays small."""

from __future__ import annotations

import re
from pathlib import Path

from partsketch.paper.claims import check_claims
from partsketch.paper.figures import FIGURES
from partsketch.paper.settings import quick_study
from partsketch.paper.study import Study

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reproduction.md").read_text()


def test_every_figure_is_shown() -> None:
    shown = re.findall(r"!\[[^\]]{15,}\]\(figures/([\w-]+)\.png\)", PAGE)
    assert shown == list(FIGURES)
    files = list((DOCS / "figures").glob("figure-*"))
    assert {file.name for file in files} == {f"{name}.png" for name in FIGURES}
    assert sum(file.stat().st_size for file in files) < 2_000_000


def test_every_claim_is_there_with_its_rule() -> None:
    for claim in check_claims(Study(quick_study(), {})):
        assert claim.statement in PAGE
        assert f"- *{claim.name}*: {claim.rule}." in PAGE
