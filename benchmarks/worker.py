"""One contestant in a process of its own: warm up, run, report time, memory and answer on the last line of output."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quiet import now, wait_for_quiet
from benchmarks.workloads import WORKLOADS

#: Runs are repeated in the same process until the seconds that the case allows have gone by, at most so often.
_MOST_RUNS = 5

#: Seconds of waiting for a quiet machine, for all runs of one process together.
_PATIENCE_SECONDS = 10.0


def main(workload: str, case_name: str, contestant_name: str, quick: bool) -> None:
    """Measure and print."""
    case = next(case for case in WORKLOADS[workload].cases(quick) if case.name == case_name)
    contestant = next(one for one in case.contestants if one.name == contestant_name)
    begin = time.perf_counter()
    contestant.run(contestant.prepare(case.load_small()))
    warm_up = time.perf_counter() - begin
    data = contestant.prepare(case.load())
    _forget_peak()
    before = _memory("VmRSS")
    seconds: list[float] = []
    cpu_seconds: list[float] = []
    others: list[float] = []
    patience = 0.0 if quick else _PATIENCE_SECONDS
    budget = case.budget_seconds / (10 if quick else 1)
    peak = 0
    answer = np.zeros(0)
    while not seconds or (sum(seconds) < budget and len(seconds) < _MOST_RUNS):
        patience -= wait_for_quiet(patience)
        earlier = now()
        begin = time.perf_counter()
        answer = contestant.run(data)
        seconds.append(time.perf_counter() - begin)
        later = now()
        cpu_seconds.append(later.own - earlier.own)
        others.append(later.others_share(earlier))
        peak = peak or _memory("VmHWM")
    report: dict[str, Any] = {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "others_share": others,
        "warm_up_seconds": warm_up,
        "peak_bytes": peak,
        "before_bytes": before,
        "figures": case.judge(np.asarray(answer)),
    }
    print(json.dumps(report))


def _memory(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}")


def _forget_peak() -> None:
    """Start the peak anew, so that loading and warming up do not count."""
    Path("/proc/self/clear_refs").write_text("5")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4] == "quick")
