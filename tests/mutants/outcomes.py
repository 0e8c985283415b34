"""What became of mutants, kept in a file: a run that was stopped goes on where nothing has changed since."""

from __future__ import annotations

import hashlib
import json
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.mutants.reading import ROOT, Mutant


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant.

    Attributes
    ----------
    mutant
        Its name.
    result
        "killed", "survived" or "hung".
    seconds
        How long that took.
    killer
        The test that saw it.
    revision
        The commit it was tried on.
    digest
        Of the mutant, its file and the tests that were decisive.
    """

    mutant: str
    result: str
    seconds: float
    killer: str
    revision: str
    digest: str


def digest_of(mutant: Mutant, killer: str) -> str:
    """Return a digest of all that decides on a mutant: itself, its file, and its killer or else all its tests."""
    tests = {test.partition("::")[0] for test in ((killer,) if killer else mutant.tests)}
    texts = [repr(mutant), *((ROOT / file).read_text("utf-8") for file in (mutant.file, *sorted(tests)))]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def revision() -> str:
    """Return the commit of the sources, with a plus when they differ from it."""
    commit = ["git", "describe", "--always", "--abbrev=10", "--dirty=+", "--exclude=*"]
    done = subprocess.run(commit, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


class Outcomes:
    """Outcomes in a file, which is written after every one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        kept = json.loads(path.read_text("utf-8")) if path.exists() else []
        self._known = {one["mutant"]: Outcome(**one) for one in kept}

    def of(self, mutant: Mutant) -> Outcome | None:
        """Return what became of a mutant, if that still holds."""
        known = self._known.get(mutant.id)
        if known is None:
            return None
        try:
            return known if known.digest == digest_of(mutant, known.killer) else None
        except FileNotFoundError:
            return None

    def keep(self, outcome: Outcome) -> None:
        """Keep an outcome."""
        self._known[outcome.mutant] = outcome
        lines = (json.dumps(asdict(one)) for _, one in sorted(self._known.items()))
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8")
