"""How long tests take: `slow_tests.txt` is written from a run, read by `conftest.py`.

`make durations` runs all tests and writes it anew. A line is the seconds of a test, all its parameters together, and
its name. What is not there takes less than `LEAST_SECONDS` or is new; what was skipped or not run keeps its line.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

TESTS = Path(__file__).parent
FILE = TESTS / "slow_tests.txt"

#: Tests that take this long are left out of `make test-quick`.
LEAST_SECONDS = 0.2


def read_durations() -> dict[str, float]:
    """Return file and function → seconds."""
    lines = (line.split() for line in FILE.read_text(encoding="utf-8").splitlines())
    return {name: float(seconds) for seconds, name in lines}


def durations_of(report: Path) -> dict[str, float]:
    """Return file and function → seconds of a run that pytest reported on with `--junitxml`."""
    found: dict[str, float] = defaultdict(float)
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("skipped") is not None and float(case.attrib["time"]) < LEAST_SECONDS:
            continue
        parts = case.attrib["classname"].split(".")
        # What follows the file is a class.
        file = next(
            path
            for end in range(len(parts), 0, -1)
            if (path := TESTS.parent.joinpath(*parts[:end])).with_suffix(".py").is_file()
        )
        function = case.attrib["name"].split("[")[0].split("@")[0]
        found[f"{file.relative_to(TESTS).as_posix()}.py::{function}"] += float(case.attrib["time"])
    return found


def still_there(name: str) -> bool:
    """Tell whether there is such a test."""
    file, function = name.split("::")
    path = TESTS / file
    return path.is_file() and f"def {function}(" in path.read_text(encoding="utf-8")


def main() -> None:
    """Write the durations of a report."""
    known = {name: seconds for name, seconds in read_durations().items() if still_there(name)}
    found = {**known, **durations_of(Path(sys.argv[1]))}
    lines = [f"{seconds:.1f} {name}\n" for name, seconds in sorted(found.items()) if seconds >= LEAST_SECONDS]
    FILE.write_text("".join(lines), encoding="utf-8")
    left = sum(seconds for seconds in found.values() if seconds < LEAST_SECONDS)
    print(f"{len(lines)} of {len(found)} tests take {LEAST_SECONDS} s or more; all others together {left:.0f} s.")


if __name__ == "__main__":
    main()
