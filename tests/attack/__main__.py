"""`python -m tests.attack`: attack for as long as asked, and report what was found."""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.attack.classes import CLASSES, AttackClass
from tests.attack.running import Outcome, run_class


def main() -> int:
    """Run and report; 1 if any promise was not kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--counts", action="store_true", help="the cases that an hour must have, in whatever time")
    parser.add_argument("--only", nargs="*", help="classes; default: all")
    parser.add_argument("--seed", type=int, help="default: of the clock")
    parser.add_argument("--case", type=int, help="run this one case of one class")
    parser.add_argument("--jobs", type=int, default=2, help="classes that run at once")
    parser.add_argument("--report", type=Path, help="write faults and counts to this JSON file")
    asked = parser.parse_args()
    chosen = [known for known in CLASSES if not asked.only or known.name in asked.only]
    seed = int(time.time()) if asked.seed is None else asked.seed
    if asked.case is not None:
        (outcome,) = run_class(chosen[0], seed, 0, least=1, most=1, first=asked.case)
        print(f"{outcome.case}: {'kept all promises' if outcome.fault is None else outcome.fault.kind}")
        print("" if outcome.fault is None else outcome.fault.detail)
        return int(outcome.fault is not None)
    outcomes = _attack(chosen, seed, 0.0 if asked.counts else 60 * asked.minutes, asked.jobs)
    _print(outcomes, seed)
    if asked.report is not None:
        faults = [vars(outcome) | {"fault": vars(outcome.fault)} for outcome in outcomes if outcome.fault is not None]
        asked.report.write_text(json.dumps({"seed": seed, "counts": _counts(outcomes), "faults": faults}, indent=1))
    return int(any(outcome.fault is not None for outcome in outcomes))


def _attack(chosen: list[AttackClass], seed: int, seconds: float, jobs: int) -> list[Outcome]:
    """Run classes side by side, each for its share of the time; without any time until an hour's cases are done."""
    outcomes: list[Outcome] = []
    lock = threading.Lock()
    shares = sum(known.share for known in chosen)
    # What must be done in an hour is done in part of one in part.
    part = min(1.0, seconds / 3600) if seconds else 1.0

    def run(known: AttackClass) -> None:
        for outcome in run_class(known, seed, seconds * jobs * known.share / shares, round(known.least * part)):
            with lock:
                outcomes.append(outcome)
                if outcome.fault is not None:
                    place = f"--only {known.name} --seed {seed} --case {outcome.number}"
                    print(
                        f"{outcome.fault.kind}: {outcome.case}\n  {place}\n  {outcome.fault.detail[:1500]}", flush=True
                    )

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        for ended in [pool.submit(run, known) for known in sorted(chosen, key=lambda known: -known.share)]:
            ended.result()
    return outcomes


def _counts(outcomes: list[Outcome]) -> dict[str, dict[str, int]]:
    """Return cases and faults by class, and cases by what they count as."""
    faults = [outcome for outcome in outcomes if outcome.fault is not None]
    return {
        "cases": dict(Counter(outcome.class_name for outcome in outcomes)),
        "counted": dict(Counter(outcome.counts_as for outcome in outcomes)),
        "faults": dict(Counter(outcome.fault.kind for outcome in faults if outcome.fault is not None)),
    }


def _print(outcomes: list[Outcome], seed: int) -> None:
    counts = _counts(outcomes)
    print(f"seed {seed}")
    for name, number in counts["cases"].items():
        mine = [outcome for outcome in outcomes if outcome.class_name == name]
        faulty = sum(outcome.fault is not None for outcome in mine)
        slowest = max(mine, key=lambda outcome: outcome.seconds)
        print(f"{name:20} {number:8,} cases {faulty:6,} faults, slowest {slowest.seconds:.1f} s: {slowest.case[:120]}")
    print(", ".join(f"{number:,} {name}" for name, number in counts["counted"].items()))
    kinds = ("traceback", "wrong accept", "wrong refusal", "input changed", "hang", "left behind", "raw control")
    print(", ".join(f"{kind} {counts['faults'].get(kind, 0)}" for kind in (*kinds, "sentence")))


if __name__ == "__main__":
    sys.exit(main())
