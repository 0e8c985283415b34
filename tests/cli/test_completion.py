"""Shell completion: the scripts are those of the shells, and completing really completes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from partsketch.cli import run


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_name_the_program(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"_PARTSKETCH_COMPLETE={shell}_complete" in script
    assert run(["completion", shell, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["script"] + "\n" == script


def test_an_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", "csh"]) == 2
    assert "csh" in capsys.readouterr().err


# The bash of macOS is older, that of Windows lives in another system.
@pytest.mark.skipif(sys.platform != "linux" or shutil.which("bash") is None, reason="needs bash 4.4 on Linux")
@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("partsketch re", {"refine", "report", "reproduce"}),
        ("partsketch fit --meth", {"--method"}),
        ("partsketch fit --method st", {"stack"}),
        ("partsketch fit --sketch s", {"srht", "sparse_sign"}),
        ("partsketch sketch rows.csv --sketch t", {"triangular"}),
    ],
)
def test_bash_completes(typed: str, expected: set[str], tmp_path: Path) -> None:
    """Source the script in a real bash and ask its function for completions."""
    program = tmp_path / "partsketch"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m partsketch "$@"\n')
    program.chmod(0o755)
    words = typed.split(" ")
    script = (
        "source <(partsketch completion bash)\n"
        f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; COMP_LINE='{typed}'\n"
        "_partsketch_completion partsketch\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=60)
    assert set(done.stdout.split()) == expected, done.stderr
