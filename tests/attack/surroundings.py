"""Full disks, closed streams, read-only folders, odd terminals, missing libraries: one sentence, old files untouched.

The exit code is 2; for a broken pipe it is 1, and nothing is said.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.attack.case import Case, Fault
from tests.attack.forked import can_mount, mount, run_forked
from tests.attack.judges import Ended, fingerprints, judge_ended
from tests.attack.material import ALLOW, COMMANDS, command, is_whole, lay_out, numbers, run_once, write

#: Commands and the file that each writes in the folder for outputs; large ones need more than a full disk has.
WRITERS = {
    "fit --model": (["fit", "{data}", "-t", "{target}", "--method", "average", "-k", "8", "--model"], "out.json"),
    "fit --report": (["fit", "{data}", "-t", "{target}", "--report"], "out.html"),
    "predict": (["predict", "{model}", "{data}", "-o"], "out.csv"),
    "predict to Parquet": (["predict", "{model}", "{data}", "-o"], "out.parquet"),
    "sketch": (["sketch", "{data}", "-t", "{target}", "-m", "400", "--seed", "1", *ALLOW, "-o"], "out.psk"),
    "sketch parts": (
        ["sketch", "{data}", "-k", "8", "-m", "40", "--seed", "1", *ALLOW, "-o"],
        "out-{{partition}}.psk",
    ),
    "summarise": (["summarise", "{data}", "--partition-by", "shuffle", "-k", "8", "-o"], "out.psk"),
    "ask --report": (["ask", "{kept}", "--compare", "{list}", "--report"], "out.html"),
    "ledger": (
        ["sketch", "{data}", "-t", "{target}", "--site", "n", "--epsilon", "1", "--bounds", "{bounds}", *ALLOW]  # noqa: RUF005
        + ["-o", "{out}.psk", "--ledger"],
        "out.jsonl",
    ),
    "combine --model": (["combine", "{north}", "{south}", "-t", "{target}", "--model"], "out.json"),
    "report": (["report", "{model}", "-o"], "out.html"),
    "keep": (["fit", "{data}", "-t", "{target}", "--method", "stack", "-m", "400", "--checkpoint"], "out-kept"),
}


def cases(seed: int) -> Iterator[Case]:
    """Yield a command and what is wrong around it."""
    draw = random.Random(seed)
    ways: list[Callable[[random.Random], Case]] = [
        _streams,
        _streams,
        _terminals,
        _terminals,
        _libraries,
        _limits,
        _lost_folder,
    ]
    if can_mount():
        ways += [_full_disk, _full_disk, _read_only]
    while True:
        yield draw.choice(ways)(draw)


def _arguments(name: str, places: dict[str, str], outputs: Path) -> list[str]:
    words, file = WRITERS[name]
    return [word.format(**places) for word in [*words, str(outputs / file)]]


def _full_disk(draw: random.Random) -> Case:
    name = draw.choice(list(WRITERS))
    return Case(f"{name} on a full disk of 64 kB", partial(_attack_disk, name, True))


def _read_only(draw: random.Random) -> Case:
    name = draw.choice(list(WRITERS))
    return Case(f"{name} in a folder that cannot be written", partial(_attack_disk, name, False))


def _attack_disk(name: str, full: bool, folder: Path) -> Fault | None:
    places = lay_out(folder)
    disk = folder / "disk"
    disk.mkdir()
    old = disk / WRITERS[name][1]
    # A ledger is added to: one that is there must be one.
    content = b"" if old.suffix == ".jsonl" else b"old"
    arguments = _arguments(name, places, disk)
    run_once()

    def prepare() -> None:
        mount("tmpfs", "size=64k", str(disk))
        if name != "keep":
            old.write_bytes(content)
        if full:
            _fill(disk / "filler")
        else:
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)

    def finish() -> None:
        found = [path.name for path in disk.rglob("*") if not path.name.startswith("checkpoint")]
        found = sorted(name for name in found if not name.endswith(".lock"))
        wanted = [*(["filler"] if full else []), old.name]
        if name == "keep":
            assert not [path for path in found if path.endswith(".part")], found
        else:
            assert old.read_bytes() == content, "the old file is gone"
            assert found == sorted(wanted), found

    ended = run_forked(arguments, prepare, finish)
    return ended if isinstance(ended, Fault) else judge_ended(ended, "refuse", {2})


def _fill(path: Path) -> None:
    """Write a file until the disk is full."""
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


def _streams(draw: random.Random) -> Case:
    name, way = draw.choice(list(COMMANDS)), draw.choice(("pipe", "full", "closed", "closed error", "all closed"))
    as_json = draw.random() < 0.4
    return Case(f"{name} with a standard output that is {way}", partial(_attack_stream, name, way, as_json))


def _attack_stream(name: str, way: str, as_json: bool, folder: Path) -> Fault | None:
    places = lay_out(folder)
    arguments = [*command(name, places), *(["--json"] if as_json and name != "explore" else [])]
    before = fingerprints(sorted(folder.rglob("*")))
    run_once()

    def prepare() -> None:
        if way == "full":
            full = os.open("/dev/full", os.O_WRONLY)
            os.dup2(full, 1)
        for number, stream in ((1, "stdout"), (2, "stderr")):
            if way in (("closed", "all closed") if number == 1 else ("closed error", "all closed")):
                os.close(number)
                setattr(sys, stream, None)

    ended = run_forked(arguments, prepare, read=way != "pipe")
    if isinstance(ended, Fault):
        return ended
    after = fingerprints(before)
    if before != after:
        return Fault("input changed", f"by {arguments} with {way}")
    if any(path.name.endswith(".part") for path in folder.rglob("*")):
        return Fault("left behind", f"by {arguments} with {way}")
    if way == "pipe":
        # Warnings are told before results are, and nobody needs to read those.
        said = [line for line in ended.err.splitlines() if not line.startswith("Warning: ")]
        return None if (ended.code, said) == (1, []) else Fault("traceback", repr(ended))
    if way == "closed error":
        return judge_ended(ended, "accept", {0})
    if way == "all closed":
        return None if ended.code == 2 else Fault("wrong accept", repr(ended))
    return judge_ended(ended, "refuse", {2})


def _terminals(draw: random.Random) -> Case:
    encoding = draw.choice(("ascii", "ascii", "latin-1", "cp1252", "utf-8", "utf-16"))
    columns = draw.choice(("", "1", "0", "20", "40", "80", "250", "-3", "abc", "99999999999999999999", "²"))
    name, as_json = draw.choice(["fit", "fit averages", "diagnose", "plan", "sketch"]), draw.random() < 0.4
    colour = draw.choice(("", "NO_COLOR", "FORCE_COLOR", "TERM"))
    return Case(
        f"{name} on a terminal of {encoding}, {columns!r} columns, {colour}",
        partial(_attack_terminal, name, encoding, columns, colour, as_json),
    )


def _attack_terminal(name: str, encoding: str, columns: str, colour: str, as_json: bool, folder: Path) -> Fault | None:
    places = lay_out(folder)
    path = Path(places["data"])
    rows = numbers()
    write(rows.rename_columns(["größe", "日本", "y", "w"]), path)
    arguments = [*command(name, places), *(["--json"] if as_json else [])]
    run_once()

    def prepare() -> None:
        for variable in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
            os.environ.pop(variable, None)
        if columns:
            os.environ["COLUMNS"] = columns
        if colour:
            os.environ[colour] = "dumb" if colour == "TERM" else "1"
        sys.stdout = io.TextIOWrapper(open(1, "wb", closefd=False), encoding)  # noqa: SIM115
        sys.stderr = io.TextIOWrapper(open(2, "wb", closefd=False), encoding)  # noqa: SIM115

    ended = run_forked(arguments, prepare)
    if isinstance(ended, Fault):
        return ended
    if encoding == "utf-16":
        ended = Ended(ended.code, ended.out.replace("\0", "").replace("\ufffd", ""), ended.err.replace("\0", ""))
        return None if ended.code in (0, 2) and "Traceback" not in ended.err else Fault("traceback", repr(ended))
    fault = judge_ended(ended, "accept", {0})
    if fault is not None or as_json or not columns.isascii() or not columns.isdigit() or name == "plan":
        return fault
    width = max(40, min(int(columns), 10_000)) or 140
    longest = max(len(line) for line in ended.out.splitlines())
    wrapped = [line for line in ended.out.splitlines() if len(line) > (width if int(columns) else 140)]
    # Written-out letters of an ASCII terminal are longer than the letters were; tables cannot be narrower than a word.
    roomy = encoding == "utf-8" and int(columns) >= 80
    return Fault("sentence", f"{longest} wide for {columns}: {wrapped}") if roomy and wrapped else None


def _libraries(draw: random.Random) -> Case:
    library = draw.choice(("jinja2", "matplotlib", "distributed", "ray", "pyspark", "pandas"))
    asks = {
        "jinja2": (["report", "{model}", "-o", "{out}.html"], ["fit", "{data}", "-t", "y", "--report",
        "{out}.html"], ["explore", "--no-browser"]),
        "matplotlib": (["reproduce", "-o", "{out}-study", "--quick"],),
        "distributed": (["fit", "{data}", "-t", "y", "--engine", "dask"],),
        "ray": (["fit", "{data}", "-t", "y", "--engine", "ray"],),
        "pyspark": (["fit", "{data}", "-t", "y", "--engine", "spark"],),
        "pandas": (["fit", "{data}", "-t", "y", "--summary"],),
    }  # fmt: skip
    words = draw.choice(asks[library])
    return Case(f"{words[0]} without {library}", partial(_attack_library, library, words))


def _attack_library(library: str, words: list[str], folder: Path) -> Fault | None:
    places = lay_out(folder)
    run_once()

    def prepare() -> None:
        from partsketch.report.explorer.page import page
        from partsketch.report.page.writer import environment

        # What was made with the library before is forgotten.
        environment.cache_clear()
        page.cache_clear()
        for name in [name for name in sys.modules if name.partition(".")[0] == library]:
            del sys.modules[name]
        # None in the place of a module makes its import fail as that of one that is not there.
        sys.modules[library] = None  # type: ignore[assignment]

    ended = run_forked([word.format(**places) for word in words], prepare)
    if isinstance(ended, Fault):
        return ended
    fault = judge_ended(ended, "accept" if library == "pandas" else "refuse", {0, 2})
    if fault is None and library != "pandas" and "pip install" not in ended.err:
        return Fault("sentence", ended.err)
    return fault


def _limits(draw: random.Random) -> Case:
    name, what, most = draw.choice(list(WRITERS)), draw.choice(("files", "size")), draw.choice((4, 8, 16, 32))
    return Case(f"{name} with at most {most} {what}", partial(_attack_limit, name, what, most))


def _attack_limit(name: str, what: str, most: int, folder: Path) -> Fault | None:
    places = lay_out(folder)
    disk = folder / "disk"
    disk.mkdir()
    run_once()

    def prepare() -> None:
        kind, value = (resource.RLIMIT_NOFILE, most) if what == "files" else (resource.RLIMIT_FSIZE, 64 * most)
        resource.setrlimit(kind, (value, resource.getrlimit(kind)[1]))
        # Python cuts off the bytecode of what it imports now, and every later process would fail to read it.
        sys.dont_write_bytecode = True

    ended = run_forked(_arguments(name, places, disk), prepare)
    if isinstance(ended, Fault):
        return ended
    broken = [
        path
        for path in disk.rglob("*")
        if path.name.endswith(".part") or (ended.code == 0 and name != "keep" and not is_whole(path))
    ]
    return judge_ended(ended) or (Fault("left behind", f"{broken}") if broken else None)


def _lost_folder(draw: random.Random) -> Case:
    name = draw.choice(list(COMMANDS))
    relative = draw.random() < 0.5
    return Case(f"{name} in a folder that was removed, relative={relative}", partial(_attack_lost, name, relative))


def _attack_lost(name: str, relative: bool, folder: Path) -> Fault | None:
    places = lay_out(folder)
    lost = folder / "lost"
    lost.mkdir()
    if relative:
        places = {key: value if key == "target" else Path(value).name for key, value in places.items()}
    run_once()

    def prepare() -> None:
        os.chdir(lost)
        lost.rmdir()

    ended = run_forked(command(name, places), prepare)
    return ended if isinstance(ended, Fault) else judge_ended(ended)
