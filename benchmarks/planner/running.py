"""The whole check, with progress."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.planner.checking import check
from benchmarks.planner.memory import check_memory
from benchmarks.planner.results import summary
from benchmarks.planner.settings import data_sets
from partsketch.planner.machine import describe_machine
from partsketch.planner.measurement import measure


def run(quick: bool) -> dict[str, Any]:
    """Calibrate, plan, fit, and return everything that was measured."""
    begin = time.perf_counter()
    calibration = measure(describe_machine())
    print(f"calibrated in {time.perf_counter() - begin:.1f} s: {calibration.sentence()}", flush=True)
    checked = []
    for data in data_sets(quick):
        checked.append(check(data, calibration, repeats=1 if quick else 3))
        print(f"{time.perf_counter() - begin:4.0f} s  {data.name}: {len(checked[-1]['fits'])} fits", flush=True)
        for line in _lines(checked[-1]):
            print(f"        {line}", flush=True)
    memory = []
    for peak in check_memory(quick):
        memory.append(peak)
        sizes = f"predicted {peak['predicted_bytes'] / 1e6:.1f} MB, measured {peak['bytes'] / 1e6:.1f} MB"
        print(f"{time.perf_counter() - begin:4.0f} s  {peak['fit']}: {sizes}", flush=True)
    return {
        **summary(checked, memory),
        "checked": checked,
        "memory": memory,
        "calibration": calibration.to_dict(),
        "seconds": time.perf_counter() - begin,
    }


def _lines(checked: dict[str, Any]) -> list[str]:
    """Return what is worth a look: recommendations, and times that were far off."""
    lines = []
    for setting in checked["settings"]:
        name = setting["setting"].rsplit(": ", 1)[1]
        if setting["recommended"] is None:
            lines.append(f"{name}: nothing recommended")
            continue
        times = f"{setting['predicted_seconds']:.4f} s predicted, {setting['seconds']:.4f} s taken"
        lines.append(f"{name}: {setting['recommended']}, {times}")
        if setting["loss_allowed"] and setting["seconds"] > 1.3 * setting["quickest_seconds"]:
            lines.append(f"    quicker: {setting['quickest']}, {setting['quickest_seconds']:.4f} s")
    for fit in checked["fits"]:
        if not 0.5 <= fit["predicted_seconds"] / fit["seconds"] <= 2:
            what = " ".join(str(fit[part]) for part in ("method", "sketch", "sketch_size") if fit[part] is not None)
            lines.append(f"off: {what}: {fit['predicted_seconds']:.4f} s predicted, {fit['seconds']:.4f} s taken")
    return lines
