"""How long fits take: candidates take turns, each at its best."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.quiet import BUSY_SHARE, now, wait_for_quiet
from partsketch import LocalEngine
from partsketch.fitting.fit import fit_source
from partsketch.fitting.options import FitOptions
from partsketch.sources.base import Source

#: A turn of a short fit is this long: one run of a millisecond says more of the scheduler than of the fit.
_TURN_SECONDS = 0.05
_MOST_RUNS = 25
#: A fit that has run for so long in all gets no further turn: long runs are disturbed less, and there are many.
_ENOUGH_SECONDS = 2.5
_PATIENCE_SECONDS = 0.3


@dataclass(frozen=True)
class Timing:
    """Shortest time of a fit on the wall and on the processor, and the share that others had in its quietest turn."""

    seconds: float = float("inf")
    processor_seconds: float = float("inf")
    others_share: float = float("inf")


def time_fits(source: Source, asked: Sequence[FitOptions], repeats: int) -> list[Timing]:
    """Return the times of fits that take turns, every one warmed up by a turn; in quick runs nothing is waited for."""
    engine = LocalEngine()
    best, spent = [Timing() for _ in asked], [0.0 for _ in asked]
    for turn in range(1 + repeats):
        for number, options in enumerate(asked):
            if spent[number] > _ENOUGH_SECONDS:
                continue
            begin = time.perf_counter()
            best[number], share = _turn(source, options, engine, best[number], 1 if turn == 0 else _MOST_RUNS)
            spent[number] += time.perf_counter() - begin
            if repeats > 1 and share > BUSY_SHARE:
                wait_for_quiet(_PATIENCE_SECONDS)
    return best


def _turn(
    source: Source, options: FitOptions, engine: LocalEngine, best: Timing, most_runs: int
) -> tuple[Timing, float]:
    """Return the best so far, and the share that others had in this turn."""
    seconds, processor = best.seconds, best.processor_seconds
    begin = now()
    end = begin.wall + _TURN_SECONDS
    runs = 0
    while runs == 0 or (runs < most_runs and time.perf_counter() < end):
        wall, own = time.perf_counter(), time.process_time()
        fit_source(source, options, engine)
        seconds = min(seconds, time.perf_counter() - wall)
        processor = min(processor, time.process_time() - own)
        runs += 1
    share = now().others_share(begin)
    return Timing(seconds, processor, min(best.others_share, share)), share
