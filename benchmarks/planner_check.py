"""Are plans right? Every candidate of many settings is planned, fitted and timed: `python -m benchmarks planner`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.problem import DATA, TARGET, Problem
from benchmarks.quiet import now, wait_for_quiet
from partsketch.engines.local import LocalEngine
from partsketch.fitting import fit_source
from partsketch.options import FitOptions
from partsketch.planner.calibration import Calibration
from partsketch.planner.choosing import make_plan, options_from
from partsketch.planner.machine import describe_machine
from partsketch.planner.measuring import measure
from partsketch.planner.plan import Candidate, Plan
from partsketch.planner.survey import Survey, look
from partsketch.simulate import draw_excess_losses, partition_factors
from partsketch.sketches.base import all_sketches
from partsketch.sources import open_source
from partsketch.sources.arrays import array_source
from partsketch.sources.base import Source
from partsketch.theory import PartitionMoments, pooled_moments

_PAGE = Path(__file__).resolve().parent.parent / "docs" / "plan.md"
_DRAWS = 2000
#: Candidates timed in a setting: the exact ones and the quickest others, as predicted.
_MOST_TIMED = 8
#: Candidates predicted to take longer are not timed: they would take the time of all others together.
_LONGEST_SECONDS = 2.0
_PATIENCE_SECONDS = 0.3


@dataclass(frozen=True)
class Setting:
    """One question to the planner."""

    problem: Problem
    storage: str
    partitions: int
    max_excess: float

    @property
    def name(self) -> str:
        """The setting in a phrase."""
        where = "" if self.storage == "memory" else f", {self.storage}"
        rows, width = self.problem.rows, self.problem.width
        return f"{rows:,} × {width}{where}, k = {self.partitions}, at most {self.max_excess:.0%}"


def settings(quick: bool) -> Iterator[Setting]:
    """Yield the settings: small and large, narrow and wide, in memory and in files, few and many partitions."""
    sizes = [(3_000, 5), (20_000, 8), (20_000, 50), (200_000, 10), (200_000, 50), (40_000, 120), (1_000_000, 20)]
    for rows, width in sizes[:3] if quick else sizes:
        for partitions, excess in ((4, 0.02), (16, 0.1)):
            yield Setting(Problem(rows, width), "memory", partitions, excess)
    files = [("Parquet", 400_000, 20), ("CSV", 50_000, 10), ("Feather", 400_000, 20)]
    for storage, rows, width in files[:0] if quick else files:
        yield Setting(Problem(rows, width), storage, 8, 0.05)


def run(quick: bool) -> dict[str, Any]:
    """Calibrate, plan, fit, and return everything that was measured."""
    started = time.perf_counter()
    calibration = measure(describe_machine())
    results = []
    for setting in settings(quick):
        results.append(_check(setting, calibration, repeats=1 if quick else 3))
        print(f"{setting.name}: {_line(results[-1])}", flush=True)
    result = {"settings": results, "calibration": calibration.to_dict(), "seconds": time.perf_counter() - started}
    return {**summary(results), **result}


def _check(setting: Setting, calibration: Calibration, repeats: int) -> dict[str, Any]:
    source, X, y = _open(setting)
    options = FitOptions("exact", setting.partitions, "order", "spread", "gaussian", None, True, 1)
    survey = look(source, options)
    plan = _plan(setting, survey, calibration)
    chosen = _timed(plan.candidates)
    times = _times(source, options, chosen, repeats)
    on_one_core = replace(calibration, cores=1, speedup=1.0)
    alone = {_key(one): one.seconds for one in _plan(setting, survey, on_one_core).candidates}
    factors = partition_factors(np.column_stack([np.ones(len(X)), X]), y, [setting.partitions])
    parts = factors[setting.partitions]
    entries = []
    for candidate, (seconds, others, processor) in zip(chosen, times, strict=True):
        entry = {
            "method": candidate.method,
            "sketch": candidate.sketch,
            "sketch_size": candidate.sketch_size,
            "predicted_seconds": candidate.seconds,
            "seconds": seconds,
            "others_share": others,
            "processor_seconds": processor,
            "predicted_processor_seconds": alone[_key(candidate)],
            "within_limits": not candidate.breaks,
            "recommended": candidate == plan.recommended,
            "excess": candidate.excess,
            "excess_kind": candidate.excess_kind,
        }
        entries.append(entry)
    drawn = list(_draw(setting, plan.candidates, parts))
    return {"setting": setting.name, "candidates": entries, "drawn": drawn, "reason": plan.reason}


def _draw(setting: Setting, candidates: Sequence[Candidate], parts: list[PartitionMoments]) -> Iterator[dict[str, Any]]:
    """Yield the losses that are called exact, beside the mean of draws; timed or not."""
    for candidate in candidates:
        if candidate.excess_kind != "exact" or candidate.sketch_size is None:
            continue
        rng = np.random.default_rng(7)
        losses = draw_excess_losses(
            candidate.method, parts, candidate.sketch_size, _DRAWS, rng, n_sketches=setting.partitions
        )
        losses = losses / pooled_moments(parts).loss
        yield {
            "method": candidate.method,
            "sketch_size": candidate.sketch_size,
            "excess": candidate.excess,
            "drawn_excess": float(losses.mean()),
            "drawn_standard_error": float(losses.std(ddof=1) / np.sqrt(_DRAWS)),
        }


def _plan(setting: Setting, survey: Survey, calibration: Calibration) -> Plan:
    limits = {"max_excess": setting.max_excess, "certified": True}
    return make_plan(survey, limits, partitions=setting.partitions, calibration=calibration, with_extras=False)


def _key(candidate: Candidate) -> tuple[str, str | None, int | None]:
    return candidate.method, candidate.sketch, candidate.sketch_size


def _open(setting: Setting) -> tuple[Source, Any, Any]:
    chunks = list(setting.problem.chunks())
    X, y = np.vstack([chunk[0] for chunk in chunks]), np.concatenate([chunk[1] for chunk in chunks])
    if setting.storage == "memory":
        return array_source(X, y, None, None, [TARGET]), X, y
    return open_source(str(_file(setting, X, y)), target=TARGET), X, y


def _file(setting: Setting, X: Any, y: Any) -> Path:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet

    path = DATA / f"planner-{setting.problem.name}.{setting.storage.lower()}"
    if not path.exists():
        DATA.mkdir(parents=True, exist_ok=True)
        table = pa.table({**{f"x{i}": X[:, i] for i in range(X.shape[1])}, TARGET: y})
        if setting.storage == "Parquet":
            pyarrow.parquet.write_table(table, path, row_group_size=100_000)
        elif setting.storage == "Feather":
            pyarrow.feather.write_feather(table, path)
        else:
            pyarrow.csv.write_csv(table, path)
    return path


def _timed(candidates: Sequence[Candidate]) -> list[Candidate]:
    first = [one for one in candidates if one.sketch is None]
    others = [one for one in candidates if one.sketch is not None and (one.seconds or 0) <= _LONGEST_SECONDS]
    others.sort(key=lambda one: (len(one.breaks), one.seconds))
    # One of every kind of sketch before a second of any.
    kinds = [sketch.kind for sketch in all_sketches() if sketch.is_random]
    quickest = [next((one for one in others if one.sketch == kind), None) for kind in kinds]
    ordered = [one for one in quickest if one is not None]
    ordered += [one for one in others if one not in ordered]
    return first + ordered[: _MOST_TIMED - len(first)]


def _times(
    source: Source, options: FitOptions, candidates: Sequence[Candidate], repeats: int
) -> list[tuple[float, float, float]]:
    """Return for every candidate its best time, the share that others had then, and its least processor time.

    Candidates take turns, and each is warmed up once.
    """
    engine = LocalEngine()
    asked = [options_from(candidate, options) for candidate in candidates]
    best = [(float("inf"), 0.0)] * len(candidates)
    processor = [float("inf")] * len(candidates)
    for one in asked:
        fit_source(source, one, engine)
    for _ in range(repeats):
        for number, one in enumerate(asked):
            wait_for_quiet(_PATIENCE_SECONDS if repeats > 1 else 0.0)
            earlier = now()
            fit_source(source, one, engine)
            later = now()
            best[number] = min(best[number], (later.wall - earlier.wall, later.others_share(earlier)))
            processor[number] = min(processor[number], later.own - earlier.own)
    return [(*times, own) for times, own in zip(best, processor, strict=True)]


def summary(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the shares that the goals are about."""
    timed = [entry for result in results for entry in result["candidates"] if entry["predicted_seconds"]]
    ratios = [entry["predicted_seconds"] / entry["seconds"] for entry in timed]
    processor = [entry["predicted_processor_seconds"] / entry["processor_seconds"] for entry in timed]
    regrets = []
    for result in results:
        within = [entry["seconds"] for entry in result["candidates"] if entry["within_limits"]]
        taken = [entry["seconds"] for entry in result["candidates"] if entry["recommended"]]
        if within and taken:
            regrets.append(taken[0] / min(within))
    drawn = [entry for result in results for entry in result["drawn"]]
    errors = [abs(entry["excess"] - entry["drawn_excess"]) / entry["drawn_standard_error"] for entry in drawn]
    return {
        "fits_timed": len(ratios),
        "within_factor_two": float(np.mean([0.5 <= ratio <= 2 for ratio in ratios])),
        "ratio_quantiles": [float(value) for value in np.quantile(ratios, [0.05, 0.25, 0.5, 0.75, 0.95])],
        "processor_time_within_factor_two": float(np.mean([0.5 <= ratio <= 2 for ratio in processor])),
        "others_share": float(np.median([entry["others_share"] for entry in timed])),
        "recommendations": len(regrets),
        "recommended_within_1.3": float(np.mean([regret <= 1.3 for regret in regrets])),
        "largest_regret": float(max(regrets)),
        "excesses_drawn": len(errors),
        "excess_within_3_standard_errors": float(np.mean([error <= 3 for error in errors])),
        "largest_excess_error": float(max(errors)),
    }


def _line(result: dict[str, Any]) -> str:
    return "; ".join(
        f"{'→' if entry['recommended'] else ''}{entry['method']} {entry['sketch'] or ''} {entry['sketch_size'] or ''} "
        f"{entry['predicted_seconds']:.4f}/{entry['seconds']:.4f} "
        f"({entry['predicted_processor_seconds']:.4f}/{entry['processor_seconds']:.4f})"
        for entry in result["candidates"]
    )


def report(result: dict[str, Any]) -> str:
    """Return the goals and what was measured as lines of a Markdown table."""
    low, _, middle, _, high = result["ratio_quantiles"]
    rows = [
        ("fits timed", f"{result['fits_timed']}"),
        ("predicted time within a factor of 2 (goal 90%)", f"{result['within_factor_two']:.0%}"),
        ("predicted / measured: 5%, 50%, 95% quantile", f"{low:.2f}, {middle:.2f}, {high:.2f}"),
        (
            "the same for processor time, which other work disturbs less",
            f"{result['processor_time_within_factor_two']:.0%}",
        ),
        ("share of the machine that others had meanwhile (median)", f"{result['others_share']:.0%}"),
        ("settings with a recommendation", f"{result['recommendations']}"),
        ("recommended within 1.3 times the quickest (goal 90%)", f"{result['recommended_within_1.3']:.0%}"),
        ("largest ratio to the quickest", f"{result['largest_regret']:.2f}"),
        (f"losses called exact against {_DRAWS:,} draws", f"{result['excesses_drawn']}"),
        ("of these within three standard errors", f"{result['excess_within_3_standard_errors']:.0%}"),
        ("largest difference in standard errors", f"{result['largest_excess_error']:.1f}"),
    ]
    return "\n".join(["| check | measured |", "|---|---:|", *(f"| {name} | {value} |" for name, value in rows)])


def save(result: dict[str, Any], path: Path) -> None:
    """Write the results."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")


def write_page(result: dict[str, Any]) -> None:
    """Replace the table in docs/plan.md."""
    text = _PAGE.read_text()
    begin, end = "<!-- begin generated: planner -->\n", "<!-- end generated: planner -->"
    start, stop = text.index(begin) + len(begin), text.index(end)
    machine = result["machine"]
    where = f"{result['date'][:10]}, {machine['processor']}, {machine['cores']} cores, revision {result['revision']}."
    _PAGE.write_text(f"{text[:start]}\n{report(result)}\n\n{where}\n\n{text[stop:]}")
