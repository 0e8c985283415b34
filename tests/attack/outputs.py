"""Outputs that must not be written: inputs under any name, devices, pipes, folders, places that are not there.

Refused before anything is written; where the path is fine, strange as it may look, the file is written whole.
"""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Literal

from tests.attack.case import Case, Fault
from tests.attack.judges import CONTROL, fingerprints, judge_ended, run_command
from tests.attack.material import ALLOW, lay_out, outputs_of

Verdict = Literal["refuse", "accept"]

#: Commands that write, with the option whose file is attacked last, the ending it needs, and the files they read.
WRITERS: dict[str, tuple[list[str], str, tuple[str, ...]]] = {
    "fit --model": (["fit", "{data}", "-t", "y", "--model"], ".json", ("data",)),
    "fit --report": (["fit", "{data}", "-t", "y", "--report"], ".html", ("data",)),
    "fit two --model": (["fit", "{folder}/ro*.parquet", "-t", "y", "--method", "average", "--model"], ".json",
    ("data",)),
    "predict -o": (["predict", "{model}", "{data}", "-o"], ".parquet", ("data", "model")),
    "predict -o text": (["predict", "{model}", "{data}", "-o"], ".csv", ("data", "model")),
    "sketch -o": (["sketch", "{data}", "-t", "y", "--seed", "1", "--site", "n", *ALLOW, "-o"], ".psk", ("data",)),
    "combine --model": (["combine", "{north}", "{south}", "-t", "y", "--model"], ".json", ("north", "south")),
    "combine * --model": (["combine", "{folder}/*th.psk", "-t", "y", "--model"], ".json", ("north", "south")),
    "summarise -o": (["summarise", "{data}", "-o"], ".psk", ("data",)),
    "ask --model": (["ask", "{kept}", "-t", "y", "--model"], ".json", ("kept",)),
    "answer -o": (["refine", "answer", "{rounds}/question-1.psq", "{data}", "--site", "north", *ALLOW, "-o"], ".psa",
    ("data",)),
    "step --model": (["refine", "step", "{rounds}", "{answer}", "{folder}/south.psa", "--model"], ".json",
    ("answer",)),
    "ask --report": (["ask", "{kept}", "--compare", "{list}", "--report"], ".html", ("kept", "list")),
    "promise -o": (["sketch", "{data}", "-t", "y", "--site", "n", "--epsilon", "1", "--bounds", "{bounds}", "--ledger",
    "{out}.jsonl", *ALLOW, "-o"], ".psk", ("data", "bounds")),
    "promise --ledger": (["sketch", "{data}", "-t", "y", "--site", "n", "--epsilon", "1", "--bounds", "{bounds}",
    *ALLOW, "-o", "{out}.psk", "--ledger"], ".jsonl", ("data", "bounds")),
    "report -o": (["report", "{model}", "-d", "{data}", "-o"], ".html", ("data", "model")),
}  # fmt: skip


def _is_input(name: str) -> Callable[[Path, dict[str, str], str, random.Random], tuple[Path, Verdict]]:
    def way(folder: Path, places: dict[str, str], ending: str, draw: random.Random) -> tuple[Path, Verdict]:
        target = Path(places[name])
        if draw.random() < 0.3:
            return target, "refuse"
        other = folder / f"other{ending}"
        roundabout = (
            lambda: folder / "." / target.name,
            lambda: folder / ".." / folder.name / target.name,
            lambda: Path(os.path.relpath(target)),
            lambda: _linked(other.symlink_to, other, target),
            lambda: _linked(other.symlink_to, other, Path(target.name)),
            lambda: _linked(other.hardlink_to, other, target),
            lambda: _chain(folder, other, target),
            lambda: _linked_folder(folder) / target.name,
        )
        return draw.choice(roundabout)(), "refuse"

    return way


def _linked(link: Callable[[Path], None], other: Path, target: Path) -> Path:
    link(target)
    return other


def _chain(folder: Path, other: Path, target: Path) -> Path:
    (folder / "between").symlink_to(target)
    other.symlink_to(folder / "between")
    return other


def _linked_folder(folder: Path) -> Path:
    (folder / "way").symlink_to(folder, target_is_directory=True)
    return folder / "way"


def _pipe(folder: Path, places: dict[str, str], ending: str, draw: random.Random) -> tuple[Path, Verdict]:
    path = folder / f"pipe{ending}"
    os.mkfifo(path)
    return path, "refuse"


def _socket(folder: Path, places: dict[str, str], ending: str, draw: random.Random) -> tuple[Path, Verdict]:
    path = folder / f"s{ending}"
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))
    return path, "refuse"


def _folder(folder: Path, places: dict[str, str], ending: str, draw: random.Random) -> tuple[Path, Verdict]:
    path = folder / f"folder{ending}"
    path.mkdir()
    return path, "refuse"


def _device(folder: Path, places: dict[str, str], ending: str, draw: random.Random) -> tuple[Path, Verdict]:
    path = folder / f"device{ending}"
    path.symlink_to(draw.choice(("/dev/null", "/dev/full", "/dev/zero", "/dev/stdout")))
    return path, "refuse"


def _nowhere(folder: Path, places: dict[str, str], ending: str, draw: random.Random) -> tuple[Path, Verdict]:
    loop = folder / f"loop{ending}"
    loop.symlink_to(loop)
    (folder / f"lost{ending}").symlink_to(folder / "no" / "where")
    wrong = (
        folder / "no" / f"out{ending}", loop, folder / f"lost{ending}", Path(places["north"]) / f"out{ending}",
        folder / ("n" * 300 + ending), Path("/proc") / f"out{ending}",
        folder / ("d" * 200) / ("e" * 200) / f"o{ending}",
        Path("/".join(["x" * 100] * 60)) / f"out{ending}", folder / f"out\udcff{ending}", Path(f"/sys/out{ending}"),
    )  # fmt: skip
    return draw.choice(wrong), "refuse"


def _strange(folder: Path, places: dict[str, str], ending: str, draw: random.Random) -> tuple[Path, Verdict]:
    names = (
        "new\nline",
        "\x1b[31mred",
        "with space",
        "-dash",
        "üñí",
        "日本",
        "{x}",
        "[a]",
        "%s",
        "n" * 240,
        ".hidden",
        "\u202ertl",
        "'q\"",
    )
    path = folder / (draw.choice(names) + ending)
    return path, "accept"


def _there(folder: Path, places: dict[str, str], ending: str, draw: random.Random) -> tuple[Path, Verdict]:
    """An older output, by itself or behind a link: replaced, and the link stays."""
    old = folder / f"old{ending}"
    old.write_bytes(b"old")
    old.chmod(draw.choice((0o600, 0o644, 0o664)))
    if draw.random() < 0.5:
        return old, "accept"
    link = folder / f"link{ending}"
    link.symlink_to(draw.choice((old, Path(old.name), folder / f"new{ending}")))
    return link, "accept"


def cases(seed: int) -> Iterator[Case]:
    """Yield commands that write, and where they are told to."""
    draw = random.Random(seed)
    while True:
        name = draw.choice(list(WRITERS))
        ways = [_is_input(place) for place in WRITERS[name][2]]
        others = [_pipe, _socket, _folder, _device, _nowhere, _nowhere, _strange]
        # A ledger is added to: one that is there must be a ledger.
        way = draw.choice([*ways, *ways, *others, *([] if name == "promise --ledger" else [_there])])
        inner = draw.randrange(1 << 30)
        yield Case(f"{name} {way.__name__.strip('_')} {inner}", partial(_attack, name, way, inner))


def _attack(
    name: str, way: Callable[[Path, dict[str, str], str, random.Random], tuple[Path, Verdict]], inner: int, folder: Path
) -> Fault | None:
    places = lay_out(folder)
    words, ending, _ = WRITERS[name]
    output, verdict = way(folder, places, ending, random.Random(inner))
    # An ending that says no format would be refused for that reason alone.
    arguments = [word.format(**places) for word in words] + [f"./{output}" if str(output)[0] == "-" else str(output)]
    there = [path for path in sorted(folder.rglob("*")) if not path.is_relative_to(folder / "way")]
    before = fingerprints(path for path in there if verdict == "refuse" or path not in _written(output))
    mode = os.stat(output).st_mode if verdict == "accept" and output.exists() else None
    ended = run_command(arguments)
    fault = judge_ended(ended, verdict)
    if fault is not None:
        return fault
    after = fingerprints(before)
    changed = [str(path) for path in before if before[path] != after[path]]
    if changed:
        return Fault("input changed", f"{changed} by {arguments}")
    new = {path for path in folder.rglob("*") if not path.is_relative_to(folder / "way")} - set(there)
    if new - (_entered(name, folder) if verdict == "refuse" else {*_written(output), *outputs_of(folder)}):
        return Fault("left behind", f"{sorted(map(str, new))} by {arguments}")
    if verdict == "accept" and (not output.exists() or output.stat().st_size < 100):
        return Fault("wrong refusal", f"{output} was not written by {arguments}: {ended.out}")
    if mode is not None and os.stat(output).st_mode != mode:
        return Fault("input changed", f"permissions of {output} by {arguments}")
    return Fault("raw control", repr(ended)) if CONTROL.search(ended.out + ended.err) else None


def _entered(name: str, folder: Path) -> set[Path]:
    """Return what a refused command may leave: a release is entered before its file is written, never too late."""
    return {folder / "out.jsonl", folder / "out.jsonl.lock"} if name == "promise -o" else set()


def _written(output: Path) -> list[Path]:
    """Return the file that is written, behind a link what it leads to, and the lock that stays beside a ledger."""
    place = Path(os.path.realpath(output)) if output.is_symlink() else output
    return [place, Path(f"{place}.lock")] if place.suffix == ".jsonl" else [place]
