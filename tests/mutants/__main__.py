"""`python -m tests.mutants`: which faults do the tests not see?"""

from __future__ import annotations

import argparse
import sys
import time

from tests.mutants.reading import MutantError, faults_of, read_mutants
from tests.mutants.running import Outcome, try_all

#: This part of all mutants must be killed; the others must be explained.
LEAST_KILLED = 0.95


def main() -> int:
    """Try the mutants; return 0 when enough are killed and every other one is explained."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", action="append", metavar="TEXT", help="only mutants with this in their id or file")
    parser.add_argument("--jobs", type=int, default=2, help="how many at once")
    parser.add_argument("--quick", action="store_true", help="do not see first whether all tests pass without them")
    parser.add_argument("--check", action="store_true", help="only see whether all of them can be put in")
    asked = parser.parse_args()
    everything = read_mutants()
    faults = faults_of(everything)
    for fault in faults:
        print(f"Error: {fault}", file=sys.stderr)
    if faults:
        return 2
    if asked.check:
        print(f"{len(everything)} mutants can be put in.")
        return 0
    chosen = [one for one in everything if not asked.only or any(text in f"{one.id} {one.file}" for text in asked.only)]
    if not chosen:
        print("Error: no mutant has such an id or file.", file=sys.stderr)
        return 2
    started = time.monotonic()
    outcomes: list[Outcome] = []
    try:
        for outcome in try_all(chosen, asked.jobs, asked.quick):
            outcomes.append(outcome)
            print(_line(outcome, len(outcomes), len(chosen)), flush=True)
    except MutantError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    return _conclusion(outcomes, time.monotonic() - started)


def _line(outcome: Outcome, number: int, count: int) -> str:
    mutant = outcome.mutant
    file = mutant.file.removeprefix("src/partsketch/")
    return f"{number:4d}/{count}  {outcome.result:9s} {outcome.seconds:6.1f} s  {mutant.id:42s} {file}"


def _conclusion(outcomes: list[Outcome], seconds: float) -> int:
    survived = [outcome.mutant for outcome in outcomes if outcome.result == "survived"]
    equivalent = [mutant for mutant in survived if mutant.equivalent]
    unexplained = [mutant for mutant in survived if not mutant.equivalent]
    wrong = [one.mutant for one in outcomes if one.result != "survived" and one.mutant.equivalent]
    killed = len(outcomes) - len(survived)
    print()
    for mutant in unexplained:
        print(f"survived: {mutant.id} ({mutant.file}): {mutant.breaks}")
    for mutant in equivalent:
        print(f"equivalent: {mutant.id} ({mutant.file}): {mutant.equivalent}")
    for mutant in wrong:
        print(f"explained in vain: {mutant.id} was seen by a test, take its explanation out.")
    print(f"{killed} killed, {len(unexplained)} survived, {len(equivalent)} equivalent ({seconds / 60:.1f} min)")
    return int(bool(unexplained or wrong) or killed < LEAST_KILLED * len(outcomes))


if __name__ == "__main__":
    sys.exit(main())
