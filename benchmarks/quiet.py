"""How busy the machine is with other work: waited out before a run, and recorded for every run."""

from __future__ import annotations

import os
import resource
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

#: Above this share of all cores taken by others a run is not called quiet.
BUSY_SHARE = 0.1
_LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Clock:
    """Seconds so far: on the wall, of this process with those it started, and of everybody (stolen time included)."""

    wall: float
    own: float
    everybody: float

    def others_share(self, earlier: Clock) -> float:
        """Return the share of all cores that others had since then."""
        cores = os.cpu_count() or 1
        taken = (self.everybody - earlier.everybody) - (self.own - earlier.own)
        return max(0.0, taken / ((self.wall - earlier.wall) * cores))


def now() -> Clock:
    """Read the clocks."""
    # user nice system idle iowait irq softirq steal
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    busy = sum(fields) - fields[3] - fields[4]
    own = time.process_time() + _of_children()
    return Clock(time.perf_counter(), own, busy / os.sysconf("SC_CLK_TCK"))


def _of_children() -> float:
    """Return the processor seconds of all processes that descend from this one, such as the workers of a cluster."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = ended.ru_utime + ended.ru_stime
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has just ended
            # user, system, and the same of its own children that have ended
            seconds += sum(process.cpu_times()[:4])
    return seconds


def wait_for_quiet(patience: float) -> float:
    """Wait until others leave the machine alone, or patience ends; return the seconds waited."""
    begin = time.perf_counter()
    while True:
        earlier = now()
        time.sleep(_LOOK_SECONDS)
        waited = time.perf_counter() - begin
        if now().others_share(earlier) <= BUSY_SHARE or waited >= patience:
            return waited
