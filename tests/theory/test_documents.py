"""The Python blocks of the mathematics and errata pages run and print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCUMENTS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", ["mathematics.md", "errata.md"])
def test_python_blocks_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCUMENTS / name).read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, name, "exec"), {})
        assert capsys.readouterr().out.strip()
