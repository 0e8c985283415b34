"""What is shown: names written out, no escape sequences where none are wanted, a width that follows COLUMNS."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
import warnings
from typing import Any

import pytest

from partsketch import InputError, PartsketchWarning
from partsketch.common.terminal import terminal_console, text_console
from partsketch.common.text import plain, plain_json, sentence
from partsketch.common.units import p_value_phrase, p_value_text
from tests.attack.judges import CONTROL

HOSTILE = "a\x1b[2J\x9b31m\u202eb\n\r\t\x00\ud800\U000e0041\u2028"


def test_control_characters_are_written_out() -> None:
    assert plain(HOSTILE) == r"a\x1b[2J\x9b31m\u202eb\n\r\t\x00\ud800\U000e0041\u2028"
    assert plain("größe 日本 σ² é\u0301") == "größe 日本 σ² é\u0301"
    assert plain("a\nb\x07", keep="\n") == "a\nb\\x07"
    assert not CONTROL.search(plain("".join(map(chr, range(0x3000)))))


def test_messages_are_one_line() -> None:
    assert str(InputError(f"Column {HOSTILE} is bad.")) == f"Column {plain(HOSTILE)} is bad."
    with pytest.warns(PartsketchWarning) as caught:
        warnings.warn(f"Column {HOSTILE} is odd.", PartsketchWarning, stacklevel=1)
    assert "\x1b" not in str(caught[0].message)
    long = sentence("x" * 5000 + ": shorten it.")
    assert len(long) < 2000
    assert long.endswith("shorten it.")


def test_json_parses_to_what_it_was() -> None:
    values = {"name": HOSTILE.replace("\ud800", ""), "größe": [1.5, None, "日本 𝕏 \x7f"]}
    for ascii_only in (False, True):
        text = plain_json(json.dumps(values, ensure_ascii=False, indent=1), ascii_only)
        assert json.loads(text) == values
        assert not CONTROL.search(text)
        assert text.isascii() or not ascii_only


def test_names_are_no_markup() -> None:
    file = io.StringIO()
    text_console(file, 80).print("[red]x[/red] [/a] :smile: \x1b[2J")
    assert file.getvalue() == "[red]x[/red] [/a] :smile: \\x1b[2J\n"


@pytest.mark.parametrize(
    ("columns", "width"), [("77", 77), ("", 140), ("0", 140), ("5", 40), ("²", 140), ("9" * 30, 10_000), ("-3", 140)]
)
def test_the_width_of_a_pipe_follows_columns(
    columns: str, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Only here: the report of this test is written by the same rules.
    with monkeypatch.context() as patch:
        patch.setenv("COLUMNS", columns)
        found = terminal_console().width
    assert found == width


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_escape_sequences_on_a_terminal_that_wants_none(variables: dict[str, str]) -> None:
    assert b"\x1b" not in _on_a_terminal(variables)


def test_a_terminal_gets_styles_otherwise() -> None:
    assert b"\x1b" in _on_a_terminal({"TERM": "xterm"})


def _on_a_terminal(variables: dict[str, str]) -> bytes:
    """Return what a table and a bar of progress write to a real pseudo-terminal."""
    program = (
        "from rich.table import Table\nfrom partsketch.common.terminal import terminal_console\n"
        "from partsketch.engines import progress\nprogress._SILENT_SECONDS = -1\n"
        "with progress.RowProgress(10) as bar:\n    bar.advance(5)\n"
        "table = Table(title='t', header_style='bold red')\ntable.add_column('a')\nterminal_console().print(table)\n"
    )
    environment: dict[str, Any] = {
        name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")
    }
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=theirs, stderr=theirs, env={**environment, "TERM": "xterm", **variables}
    ) as process:
        os.close(theirs)
        written = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:
                break
            if not part:
                break
            written += part
    os.close(ours)
    assert process.returncode == 0, written
    return written


def test_p_values_are_never_nothing() -> None:
    assert [p_value_text(p) for p in (0.0, 0.0009, 0.001, 0.0421, 1.0)] == [
        "< 0.001",
        "< 0.001",
        "0.001",
        "0.042",
        "1.000",
    ]
    assert [p_value_phrase(p) for p in (0.0, 1e-17, 1e-16, 0.0421)] == [
        "p < 1e-16",
        "p < 1e-16",
        "p = 1e-16",
        "p = 0.042",
    ]
