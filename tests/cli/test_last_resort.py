"""An error that nobody foresaw is one sentence and exit code 70, in every command; a closed stream is foreseen."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from partsketch.cli import COMMANDS as ALL_COMMANDS
from partsketch.cli import main, run
from partsketch.cli.last_resort import quiet_threads
from tests.attack.material import COMMANDS, command, lay_out

#: Where each command is in the middle of its work.
MIDDLE = {
    "fit": "partsketch.model.build.build_model",
    "predict": "partsketch.model.model.Model.predict_blocks",
    "sketch": "partsketch.sites.sketch.gather",
    "combine": "partsketch.sites.combine.combine_summaries",
    "summarise": "partsketch.sites.sketch.gather",
    "ask": "partsketch.questions.fit.model_of",
    "inspect": "partsketch.report.summaries_table.print_summaries",
    "refine": "partsketch.sites.rounds.rounds.Rounds.begin",
    "report": "partsketch.report.page.writer.coefficient_table",
    "plan": "partsketch.planner.candidates.make_candidates",
    "diagnose": "partsketch.planner.diagnosis.api.standardise",
    "explore": "partsketch.report.explorer.numbers.minimal_loss",
    "reproduce": "partsketch.paper.reproduce.run_study",
    "completion": "click.shell_completion.get_completion_class",
}


def _arguments(name: str, folder: Path) -> list[str]:
    if name == "reproduce":
        return ["reproduce", "--output", str(folder / "study"), "--quick"]
    first = next(known for known, words in COMMANDS.items() if words[0] == name)
    return command(first, lay_out(folder))


def _patched(monkeypatch: pytest.MonkeyPatch, place: str, error: BaseException) -> None:
    """Make a function raise, wherever it has been imported to."""

    def fails(*arguments: object, **keywords: object) -> None:
        raise error

    owner, _, name = place.rpartition(".")
    try:
        holder: object = importlib.import_module(owner)
    except ModuleNotFoundError:
        module, _, owner = owner.rpartition(".")
        holder = getattr(importlib.import_module(module), owner)
    original = getattr(holder, name)
    monkeypatch.setattr(holder, name, fails)
    for other in [other for key, other in sys.modules.items() if key.startswith("partsketch.")]:
        if getattr(other, name, None) is original:
            monkeypatch.setattr(other, name, fails)


def test_every_command_is_tried() -> None:
    assert set(MIDDLE) == set(ALL_COMMANDS)


@pytest.mark.parametrize("name", MIDDLE)
def test_an_unforeseen_error_is_one_sentence(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = _arguments(name, tmp_path)
    _patched(monkeypatch, MIDDLE[name], KeyError("a \x1b[31mfault"))
    assert run(arguments) == 70
    errors = capsys.readouterr().err
    assert errors.splitlines()[-1].startswith(f"Error: partsketch {name} failed unexpectedly while ")
    assert "while starting" not in errors, "every room has its step"
    assert "--debug" in errors
    assert "KeyError" in errors
    assert "Traceback" not in errors
    assert "\x1b" not in errors
    assert run([*arguments, "--debug"]) == 70
    assert "Traceback (most recent call last)" in capsys.readouterr().err
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith(".part")]


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (MemoryError(), 2, "needs more memory than there is (while fitting)"),
        (OSError(28, "No space left on device"), 2, "while fitting: No space left on device."),
        (OSError(5, "Input/output error", "x.bin"), 2, "met a failure of x.bin while fitting"),
        (ModuleNotFoundError("No module named 'numba.core'", name="numba.core"), 2, "needs numba (while fitting), and"),
        (KeyboardInterrupt(), 130, "Stopped."),
        (BrokenPipeError(), 1, ""),
    ],
)
def test_what_the_system_refuses(
    error: BaseException, code: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr("partsketch.cli.last_resort.silence", lambda stream: None)
    arguments = _arguments("fit", tmp_path)
    _patched(monkeypatch, MIDDLE["fit"], error)
    assert run(arguments) == code
    # An interrupted terminal shows ^C, which gets a line of its own.
    errors = capfd.readouterr().err.removeprefix("\n")
    assert words in errors
    assert errors.count("\n") == (1 if words else 0)


def _streams(prepare: Callable[[], object], *arguments: str) -> tuple[int, str]:
    ended = subprocess.run(
        [sys.executable, "-m", "partsketch", *arguments],
        capture_output=True,
        text=True,
        preexec_fn=prepare,
        timeout=60,
        check=False,
    )
    return ended.returncode, ended.stderr


def test_streams_that_take_nothing() -> None:
    """In real processes, whose last flush counts too; the help is enough, for it is printed as everything else."""
    sizes = ["explore", "--json"]
    code, errors = _streams(lambda: os.close(1), *sizes)
    assert (code, errors) == (2, "Error: The standard output is closed: lead it to a file or to /dev/null.\n")
    code, errors = _streams(lambda: os.dup2(os.open("/dev/full", os.O_WRONLY), 1) and None, *sizes)
    assert code == 2
    assert errors == "Error: partsketch explore met a failure while printing the result: No space left on device.\n"
    reader, writer = os.pipe()
    os.close(reader)
    assert _streams(lambda: os.dup2(writer, 1) and None, *sizes) == (1, "")
    os.close(writer)


def test_a_worker_that_ends_before_its_work_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    def fails() -> None:
        raise RuntimeError("a fault")

    before = threading.excepthook
    with quiet_threads(debug=False):
        worker = threading.Thread(target=fails)
        worker.start()
        worker.join()
    assert capfd.readouterr().err == ""
    assert threading.excepthook is before


def test_too_few_addresses(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Libraries end the process (`cannot allocate memory for thread-local data`) or wait for ever: nobody asks them."""
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (800_000 * 1024, resource.RLIM_INFINITY))
    with pytest.raises(SystemExit) as ended:
        main(["fit", "rows.csv", "--target", "y"])
    assert ended.value.code == 2
    printed = capsys.readouterr().err
    assert printed == "Error: The process may use less than 1 GB of addresses: raise the limit (ulimit -v).\n"
