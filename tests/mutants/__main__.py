"""`python -m tests.mutants`: which faults do the tests not see?"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.mutants.killers import Killers
from tests.mutants.outcomes import Outcome, Outcomes
from tests.mutants.reading import Mutant, MutantError, faults_of, read_mutants
from tests.mutants.running import Workshops

#: This part of all mutants must be killed; the others must be explained.
LEAST_KILLED = 0.95

#: What is returned when the minutes are over before all mutants were tried.
UNFINISHED = 3


def main() -> int:
    """Try the mutants; return 0 when enough are killed and every other one is explained."""
    asked = _parser().parse_args()
    everything, killers = read_mutants(), Killers()
    faults = faults_of(everything, killers.known)
    for fault in faults:
        print(f"Error: {fault}", file=sys.stderr)
    if faults:
        return 2
    if asked.check:
        print(f"{len(everything)} mutants can be put in.")
        return 0
    chosen = [one for one in everything if not asked.only or any(text in f"{one.id} {one.file}" for text in asked.only)]
    chosen = chosen[asked.part[0] - 1 :: asked.part[1]]
    if not chosen:
        print("Error: no mutant has such an id or file.", file=sys.stderr)
        return 2
    try:
        with tempfile.TemporaryDirectory(prefix="mutants-") as name:
            return _try_out(chosen, killers, asked, asked.folder or Path(name))
    except MutantError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", action="append", metavar="TEXT", help="only mutants with this in their id or file")
    parser.add_argument("--part", type=_part, default=(1, 1), metavar="I/N", help="only the I-th of N parts of them")
    parser.add_argument("--jobs", type=int, default=2, help="how many at once")
    parser.add_argument("--check", action="store_true", help="only see whether all of them can be put in")
    parser.add_argument("--folder", type=Path, help="keep outcomes and compiled code here, and go on where they end")
    parser.add_argument("--minutes", type=float, default=float("inf"), help=f"stop then, and return {UNFINISHED}")
    return parser


def _part(text: str) -> tuple[int, int]:
    number, _, count = text.partition("/")
    if not 1 <= int(number) <= int(count):
        raise ValueError(text)
    return int(number), int(count)


def _try_out(chosen: Sequence[Mutant], killers: Killers, asked: argparse.Namespace, folder: Path) -> int:
    started, outcomes = time.monotonic(), Outcomes(folder / "outcomes.json")
    named = {mutant.id: mutant for mutant in chosen}
    open_ones = [mutant for mutant in chosen if outcomes.of(mutant) is None]
    with Workshops(asked.jobs, folder.resolve()) as workshops:
        until = started + 60.0 * asked.minutes
        done = workshops.try_all(open_ones, killers.of, lambda: time.monotonic() < until)
        for number, outcome in enumerate(done, len(chosen) - len(open_ones) + 1):
            outcomes.keep(outcome)
            killers.remember(outcome.mutant, outcome.killer)
            print(_line(outcome, named[outcome.mutant], number, len(chosen)), flush=True)
        tried = [known for mutant in chosen if (known := outcomes.of(mutant)) is not None]
        if len(tried) < len(chosen):
            print(f"{len(chosen) - len(tried)} are left.")
            return UNFINISHED
        print("\nThe tests that saw them, on the program as it is", flush=True)
        failing = workshops.failing_anyway(sorted({one.killer for one in tried if one.killer}))
    for test in failing:
        print(f"Error: {test} sees nothing, it fails on the program as it is.", file=sys.stderr)
    return 2 if failing else _conclusion(tried, named, time.monotonic() - started)


def _line(outcome: Outcome, mutant: Mutant, number: int, count: int) -> str:
    file = mutant.file.removeprefix("src/partsketch/")
    return f"{number:4d}/{count}  {outcome.result:9s} {outcome.seconds:6.1f} s  {mutant.id:42s} {file}"


def _conclusion(outcomes: Sequence[Outcome], named: dict[str, Mutant], seconds: float) -> int:
    results = {one.mutant: one.result for one in outcomes}
    hung = [named[one] for one, result in results.items() if result == "hung"]
    survived = [named[one] for one, result in results.items() if result == "survived"]
    unexplained = [mutant for mutant in survived if not mutant.equivalent]
    endless = [mutant for mutant in hung if not mutant.hangs]
    wrong = [mutant for mutant in named.values() if mutant.equivalent and mutant not in survived]
    wrong += [mutant for mutant in named.values() if mutant.hangs and mutant not in hung]
    killed = len(outcomes) - len(survived) - len(endless)
    for mutant in unexplained:
        print(f"survived: {mutant.id} ({mutant.file}): {mutant.breaks}")
    for mutant in hung:
        print(f"hung: {mutant.id} ({mutant.file}): {mutant.hangs or 'nobody knows why'}")
    for mutant in survived:
        if mutant.equivalent:
            print(f"equivalent: {mutant.id} ({mutant.file}): {mutant.equivalent}")
    for mutant in wrong:
        print(f"explained in vain: {mutant.id} is {results[mutant.id]}, take its explanation out.")
    print(f"on {', '.join(sorted({one.revision for one in outcomes}))}:")
    print(
        f"{killed} killed ({len(hung) - len(endless)} of them hang), {len(unexplained)} survived, "
        f"{len(endless)} hung, {len(survived) - len(unexplained)} equivalent ({seconds / 60:.1f} min)"
    )
    return int(bool(unexplained or wrong or endless) or killed < LEAST_KILLED * len(outcomes))


if __name__ == "__main__":
    sys.exit(main())
