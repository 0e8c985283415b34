"""The ledger of a site: what was promised of which rows, entered before a file exists, and what it is in all.

One line of JSON for each release. The file is written whole, flushed and renamed, while a lock beside it keeps other
writers out; a release that is killed before its file is there has been entered all the same.
"""

from __future__ import annotations

import json
import math
import os
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from partsketch.common.errors import InputError, reason_of
from partsketch.common.files import check_output, shown, write_atomically
from partsketch.common.plain_data import FieldError, read_as
from partsketch.common.reading import read_at_most
from partsketch.theory.gaussian_mechanism import gaussian_epsilon, gaussian_scale

#: Where releases are entered unless somebody says otherwise.
USUAL_LEDGER = "partsketch-ledger.jsonl"
_LARGEST_LEDGER = 1 << 28
#: Characters that nobody sees, besides those of format: fillers, selectors of variants, an empty Braille cell.
_UNSEEN = {*map(chr, (0x34F, 0x115F, 0x1160, 0x2800, *range(0x180B, 0x1810), *range(0xFE00, 0xFE10)))}
_UNSEEN |= {*map(chr, range(0xE0100, 0xE01F0))}
#: Seconds to wait for another writer.
_PATIENCE = 30.0


@dataclass(frozen=True)
class Entry:
    """One release.

    Attributes
    ----------
    site, label
        Whose rows, and which.
    epsilon, delta
        What was promised.
    columns
        Columns of the file, the ones left out.
    release
        The random name of the file.
    time
        When, in UTC.
    """

    site: str
    label: str
    epsilon: float
    delta: float
    columns: tuple[str, ...]
    release: str
    time: str

    @property
    def rho(self) -> float:
        """Cost in zero-concentrated differential privacy."""
        return 1 / (2 * gaussian_scale(self.epsilon, self.delta) ** 2)


@dataclass(frozen=True)
class Spent:
    """What the releases of one set of rows are in all.

    Attributes
    ----------
    releases
        How many there are.
    rho
        Sum of their costs in zero-concentrated differential privacy.
    epsilon, delta
        The promise that holds for all of them together, at the smallest δ among them: a larger one would make ε look
        smaller than it was promised to be.
    in_ledger, at_worst
        How many releases the ledger has in all, and what ε would be were all of them of these rows, under other names.
    """

    releases: int
    rho: float
    epsilon: float
    delta: float
    in_ledger: int
    at_worst: float

    @property
    def sentence(self) -> str:
        """All of it in plain words."""
        times = "once" if self.releases == 1 else f"{self.releases} times"
        told = (
            f"These rows were released {times}: ε = {self.epsilon:.4g} at δ = {self.delta:g} in all "
            f"(ρ = {self.rho:.4g} by zCDP)."
        )
        if self.in_ledger == 1:
            return f"{told} The ledger begins with it: releases that were entered elsewhere are not counted."
        if self.in_ledger == self.releases:
            return told
        return (
            f"{told} The ledger has {self.in_ledger:,} releases: were all of these rows, under other sites or labels, "
            f"it would be ε = {self.at_worst:.4g}."
        )


def read_ledger(path: Path) -> list[Entry]:
    """Return all entries of a ledger; none where there is no file yet."""
    if not path.exists():
        return []
    entries = []
    for number, line in enumerate(_lines(path), start=1):
        try:
            entry: Entry = read_as(Entry, json.loads(line), "entry", {})
            gaussian_scale(entry.epsilon, entry.delta)
        except (ValueError, RecursionError, FieldError) as error:
            raise InputError(
                f"Line {number} of the ledger {shown(path)} cannot be read ({reason_of(error)}): mend it, since what "
                "is spent is not known without it."
            ) from error
        entries.append(entry)
    return entries


def _lines(path: Path) -> list[str]:
    try:
        text = read_at_most(path, _LARGEST_LEDGER, "a ledger").decode()
    except UnicodeDecodeError as error:
        raise InputError(f"The ledger {shown(path)} is not text in UTF-8.") from error
    if text and not text.endswith("\n"):
        raise InputError(f"The ledger {shown(path)} is cut short: mend its last line.")
    return text.split("\n")[:-1]


def spent_of(entries: list[Entry], site: str, label: str) -> Spent:
    """Return what was promised of these rows in all."""
    rows = _folded(site), _folded(label)
    own = [entry for entry in entries if (_folded(entry.site), _folded(entry.label)) == rows]
    if not own:
        return Spent(0, 0.0, 0.0, 0.0, len(entries), 0.0)
    delta = min(entry.delta for entry in own)
    return Spent(len(own), _rho(own), _epsilon(own, delta), delta, len(entries), _epsilon(entries, delta))


def _folded(name: str) -> str:
    """Return a name as it is compared: 'North ' is no other site than 'north', and has no budget of its own."""
    wide = unicodedata.normalize("NFKC", name).casefold()
    return " ".join("".join(c for c in wide if unicodedata.category(c) != "Cf" and c not in _UNSEEN).split())


def _rho(entries: list[Entry]) -> float:
    return math.fsum(entry.rho for entry in entries)


def _epsilon(entries: list[Entry], delta: float) -> float:
    return gaussian_epsilon(1 / math.sqrt(2 * _rho(entries)), delta)


def enter(path: Path, entry: Entry, budget: float | None) -> Spent:
    """Enter a release, unless all of them together would exceed the budget; return what is spent then."""
    check_output(path)
    # The file is replaced and not written into, which the system allows where it is protected, too.
    if path.exists() and not os.stat(path).st_mode & 0o222:
        raise InputError(f"The ledger {shown(path)} is read-only: make it writable, or name another (--ledger).")
    if path.exists() and os.stat(path).st_nlink > 1:
        # Its other name would keep what was there before, and be counted from there.
        raise InputError(f"The ledger {shown(path)} has another name (a hard link): keep one of them.")
    # A ledger only grows: what is above the budget now will be, and is refused before a lock is left beside it.
    _spent_with(entry, path, budget)
    with _locked(path):
        entries, spent = _spent_with(entry, path, budget)
        lines = "".join(f"{json.dumps(asdict(known), ensure_ascii=False)}\n" for known in entries)
        write_atomically(path, lines.encode())
    return spent


def _spent_with(entry: Entry, path: Path, budget: float | None) -> tuple[list[Entry], Spent]:
    """Return all entries with this one, and what is spent then, unless that exceeds the budget."""
    entries = [*read_ledger(path), entry]
    spent = spent_of(entries, entry.site, entry.label)
    if budget is not None and spent.epsilon > budget * (1 + 1e-9):
        before = spent_of(entries[:-1], entry.site, entry.label)
        name = " ".join(text for text in (entry.site, entry.label) if text) or "these rows"
        raise InputError(
            f"With this file {name!r} would have spent ε = {spent.epsilon:.4g} at δ = {spent.delta:g}, above the "
            f"budget of {budget:g} (before it ε = {before.epsilon:.4g}, releases: {before.releases}, ledger: "
            f"{shown(path)}): give a smaller epsilon (--epsilon), or release no more of these rows."
        )
    return entries, spent


def lock_of(path: Path) -> Path:
    """Return the file that keeps other writers of a ledger out."""
    return Path(f"{os.path.realpath(path)}.lock")


def now() -> str:
    """Return the time for an entry."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other writers out; the lock is that of the operating system, and ends with the process."""
    lock = lock_of(path)
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise InputError(f"Cannot write {shown(lock)}: {reason_of(error)}.") from error
    try:
        _take(handle, path)
        yield
    finally:
        os.close(handle)


def _take(handle: int, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # pragma: no cover (Windows)
        _take_there(handle, path)
        return
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            if time.monotonic() > until:
                raise InputError(f"Another process has been writing the ledger {shown(path)} for long.") from error
            time.sleep(0.02)


def _take_there(handle: int, path: Path) -> None:  # pragma: no cover (Windows)
    import msvcrt

    try:
        msvcrt.locking(handle, msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]
    except OSError as error:
        raise InputError(f"Another process has been writing the ledger {shown(path)} for long.") from error
