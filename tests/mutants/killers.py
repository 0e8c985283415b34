"""Which test saw a mutant last: it is tried first the next time, so that most runs take seconds."""

from __future__ import annotations

import json
import re
from pathlib import Path

PATH = Path(__file__).with_name("killers.json")

_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+\.py(?:::.*?)?)(?: - .*)?$", re.MULTILINE)


def failures(output: str) -> list[str]:
    """Return the tests that pytest's short summary says have failed."""
    return _FAILED.findall(output)


class Killers:
    """Mutant → test, kept in a file, which is written after every change."""

    def __init__(self, path: Path = PATH) -> None:
        self._path = path
        self._known: dict[str, str] = json.loads(path.read_text("utf-8")) if path.exists() else {}

    @property
    def known(self) -> dict[str, str]:
        """All mutants with the tests that saw them last."""
        return dict(self._known)

    def of(self, mutant: str) -> str:
        """Return the test that saw this mutant last; empty when none is known."""
        return self._known.get(mutant, "")

    def remember(self, mutant: str, test: str) -> None:
        """Keep the test that has seen a mutant; an empty one forgets it."""
        if self._known.get(mutant, "") == test:
            return
        self._known.pop(mutant, None)
        if test:
            self._known[mutant] = test
        text = json.dumps(dict(sorted(self._known.items())), indent=0, ensure_ascii=False)
        self._path.write_text(text + "\n", "utf-8")
