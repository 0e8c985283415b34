"""Measures workloads: every repeat goes through all contestants of a case in turn, each in a process of its own."""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.problem import DATA
from benchmarks.verdicts import in_words
from benchmarks.workloads import WORKLOADS
from benchmarks.workloads.base import Case, Workload

RESULTS = Path(__file__).resolve().parent / "results"
QUICK_RESULTS = DATA / "quick-results"
_ROOT = Path(__file__).resolve().parent.parent
_PACKAGES = (
    *("partsketch", "numpy", "scipy", "scikit-learn", "scikit-learn-intelex", "pyarrow", "numba", "statsmodels"),
    *("dask", "dask-ml", "ray", "pyspark", "polars-ols", "h2o"),
)
_TIMEOUT_SECONDS = 900


def results_folder(quick: bool) -> Path:
    """Return where results go: those of quick runs are not kept in the repository."""
    return QUICK_RESULTS if quick else RESULTS


def run(names: Sequence[str], repeats: int, quick: bool, command: str, only: Sequence[str] = ()) -> None:
    """Measure workloads, or only some of their cases beside those that were saved, and save one JSON file for each."""
    for name in names or list(WORKLOADS):
        workload = WORKLOADS[name]
        path = results_folder(quick) / f"{name}.json"
        load_before = os.getloadavg()[0]
        measured: dict[str, Any] = {}
        for case in workload.cases(quick):
            if only and case.name not in only:
                continue
            measured[case.name] = _run_case(workload, case, repeats, quick)
            result = {
                "workload": name,
                "quick": quick,
                "repeats": repeats,
                "command": command,
                "load_before_and_after": [round(load_before, 2), round(os.getloadavg()[0], 2)],
                **environment(),
                "cases": measured,
            }
            # After every case: a long run that is broken off has not been in vain.
            save(_beside(path, result) if only else result, path)


def _beside(path: Path, result: dict[str, Any]) -> dict[str, Any]:
    """Return the saved results with some cases measured anew, each of which tells its own origin."""
    origin = {name: value for name, value in result.items() if name not in ("workload", "quick", "cases")}
    measured = {name: {**case, "origin": origin} for name, case in result["cases"].items()}
    if not path.exists():
        return {**result, "cases": measured}
    saved: dict[str, Any] = json.loads(path.read_text())
    cases = {**saved["cases"], **measured}
    order = [case.name for case in WORKLOADS[result["workload"]].cases(result["quick"])]
    return {**saved, "cases": {name: cases[name] for name in order if name in cases}}


def save(result: dict[str, Any], path: Path) -> None:
    """Write results as JSON, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(result, indent=1) + "\n")
    unfinished.rename(path)


def environment() -> dict[str, Any]:
    """Return when, where and with what something is measured."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": _machine(),
        "versions": _versions(),
        "revision": _revision(),
    }


def _run_case(workload: Workload, case: Case, repeats: int, quick: bool) -> dict[str, Any]:
    print(f"{workload.name} / {case.name}: making data", flush=True)
    case.make()
    reports: dict[str, list[dict[str, Any]]] = {contestant.name: [] for contestant in case.contestants}
    failures: dict[str, str] = {}
    for repeat in range(repeats):
        for contestant in case.contestants:
            if contestant.name in failures:
                continue
            report = _measure(workload.name, case.name, contestant.name, quick)
            if isinstance(report, str):
                failures[contestant.name] = report
                print(f"  {contestant.label}: failed: {report}", flush=True)
                continue
            reports[contestant.name].append(report)
            figures = " ".join(f"{key}={value:.2g}" for key, value in report["figures"].items())
            print(
                f"  {repeat + 1}/{repeats} {contestant.label}: {min(report['seconds']):.3f} s, "
                f"cpu {min(report['cpu_seconds']):.3f} s, others {min(report['others_share']):.0%}, "
                f"peak {report['peak_bytes'] / 1e9:.2f} GB {figures}",
                flush=True,
            )
    contestants: dict[str, Any] = {}
    for contestant in case.contestants:
        entry: dict[str, Any] = {"label": contestant.label, "role": contestant.role}
        if contestant.name in failures:
            entry["failed"] = failures[contestant.name]
        else:
            entry.update(_summary(reports[contestant.name]))
        contestants[contestant.name] = entry
    for absent in case.absent:
        contestants[absent.name] = {"label": absent.label, "role": "rival", "not_applicable": absent.reason}
    return {"title": case.title, "main": case.main, "in_memory": case.in_memory, "contestants": contestants}


def _measure(workload: str, case: str, contestant: str, quick: bool) -> dict[str, Any] | str:
    """Return what the worker reports, or in one line why it failed."""
    arguments = [sys.executable, "-m", "benchmarks.worker", workload, case, contestant, "quick" if quick else "full"]
    try:
        done = subprocess.run(arguments, cwd=_ROOT, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        return f"not finished after {_TIMEOUT_SECONDS} s"
    if done.returncode:
        if done.returncode < 0:
            # Only the kernel's signal 9 hints at memory; any other was sent by somebody.
            return f"ended by signal {-done.returncode}" + (" (out of memory?)" if done.returncode == -9 else "")
        lines = done.stderr.strip().splitlines()
        return in_words(lines[-1]) if lines else f"ended with code {done.returncode}"
    report: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return report


def _summary(reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    seconds = [second for report in reports for second in report["seconds"]]
    others = [share for report in reports for share in report["others_share"]]
    return {
        "best_seconds": min(seconds),
        "others_share_at_best": others[seconds.index(min(seconds))],
        "best_cpu_seconds": min(second for report in reports for second in report["cpu_seconds"]),
        "median_seconds": statistics.median(seconds),
        "all_seconds": [report["seconds"] for report in reports],
        "all_others_shares": [[round(share, 3) for share in report["others_share"]] for report in reports],
        "warm_up_seconds": min(report["warm_up_seconds"] for report in reports),
        "peak_bytes": max(report["peak_bytes"] for report in reports),
        "extra_bytes": max(max(0, report["peak_bytes"] - report["before_bytes"]) for report in reports),
        **reports[-1]["figures"],
    }


def _machine() -> dict[str, Any]:
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": model,
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": memory,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _revision() -> str:
    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=_ROOT, capture_output=True, text=True).stdout.strip()

    changed = " with changes" if git("status", "--porcelain", "--", "src") else ""
    return (git("rev-parse", "--short", "HEAD") or "unknown") + changed
