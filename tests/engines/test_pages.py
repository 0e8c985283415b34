"""The pages on clusters are carried out on those that are there: to start others takes longer than all else in them."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from partsketch.cli import run
from tests.reading_room import ON_CLUSTERS, ROOT, steps_of

pytestmark = [
    pytest.mark.xdist_group("clusters"),
    # PySpark says so whenever it is loaded; pandas is not used here.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    # Ray Data sets its own deprecated settings when it makes its defaults.
    pytest.mark.filterwarnings("ignore:`use_:DeprecationWarning"),
]


@pytest.mark.parametrize("cluster", ON_CLUSTERS)
def test_blocks_of_a_page_run_in_order(
    cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """An engine takes the cluster that its process has, and leaves it running."""
    request.getfixturevalue(f"{cluster}_engine")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    steps = steps_of(ROOT / "docs" / f"{cluster}.md")
    assert {kind for kind, _ in steps} <= {"python", "command"}
    for kind, text in steps:
        if kind == "python":
            exec(compile(text, f"{cluster}.md", "exec"), names)
        else:
            assert run(shlex.split(text)[1:]) == 0, text
