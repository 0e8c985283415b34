"""From saved measurements of the driver to the tables of `docs/scale.md`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.driver.simulation import SEGMENT_ROWS, Assumptions, simulate, tree_aggregate_bytes
from benchmarks.quiet import BUSY_SHARE

COLUMNS = 100
ROWS = (1e9, 1e11, 1e13)
WORKERS = (10, 100, 1000)


def parts(result: Mapping[str, Any]) -> dict[str, str]:
    """Return the generated tables."""
    machine = result["machine"]
    origin = (
        f"{result['date'][:10]}, `{result['command']}`; {machine['processor']}, {machine['cores']} cores; revision "
        f"{result['revision']}."
    )
    return {
        "driver": "\n".join(["", *_driver(result), "", origin, "", ""]),
        "scale": "\n".join(["", *_assumed(result), "", *_scale(result), "", ""]),
    }


def _driver(result: Mapping[str, Any]) -> Iterator[str]:
    yield "| results | columns | partitions | results a second | of one core's time | others | memory | target | |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---|"
    for line in result["lines"]:
        rate, of_core = line["reported"] / line["seconds"], line["reported"] / line["processor_seconds"]
        asked = f"{line['least_rate']:,.0f}" if line["least_rate"] else ""
        verdict = "" if not asked else "reached" if rate >= line["least_rate"] else "**not reached**"
        if asked and line["others"] > 2 * BUSY_SHARE:
            verdict += ", but others were using the machine"
        yield (
            f"| {line['reported']:,}: {line['what']} | {line['features']} | {line['partitions']:,} | {rate:,.0f} | "
            f"{of_core:,.0f} | {line['others']:.0%} | {line['peak_bytes'] / 1e6:,.0f} MB | {asked} | {verdict} |"
        )
    few, many = result["lines"][:2]
    each = (many["peak_bytes"] - few["peak_bytes"]) / (many["tasks"] - few["tasks"])
    piece = 8 * (many["features"] + 2) * (many["features"] + 3)
    yield ""
    yield (
        f"With {many['tasks'] / few['tasks']:.3g} times the tasks memory goes from {few['peak_bytes'] / 1e6:,.0f} MB "
        f"to {many['peak_bytes'] / 1e6:,.0f} MB: {each:.0f} bytes for each further task, which are its number and "
        f"where it begins; its result would be {piece:,} bytes."
    )


def assumptions(result: Mapping[str, Any]) -> Assumptions:
    """Return the costs that were measured: of a task, and of a result of a fit of `COLUMNS` columns."""
    line = next(line for line in result["lines"] if line["features"] == COLUMNS)
    return Assumptions(COLUMNS + 2, result["task"]["parquet"], line["processor_seconds"] / line["reported"])


def _assumed(result: Mapping[str, Any]) -> Iterator[str]:
    cost = assumptions(result)
    yield f"- A task, {SEGMENT_ROWS:,} rows of {COLUMNS} columns from Parquet on one core: {cost.task_seconds:.3f} s."
    yield f"- A piece at the driver: {1e6 * cost.piece_seconds:.0f} µs and {cost.piece_bytes / 1e3:.0f} kB."
    yield f"- Rows in Parquet: {result['task']['parquet_bytes_per_row']:.0f} bytes each."


def _scale(result: Mapping[str, Any]) -> Iterator[str]:
    cost = assumptions(result)
    yield "| rows | workers | time | limit | workers busy | link busy | driver busy | to the driver | treeAggregate |"
    yield "|---:|---:|---:|---|---:|---:|---:|---:|---:|"
    for rows in ROWS:
        moved = tree_aggregate_bytes(rows, result["task"]["parquet_bytes_per_row"], cost.columns)
        for workers in WORKERS:
            fit = simulate(rows, workers, cost)
            busy = [f"{fit.work[name] / fit.seconds:.0%}" for name in ("workers", "network", "driver")]
            yield (
                f"| {_power(rows)} | {workers:,} | {_time(fit.seconds)} | {fit.limit} | {' | '.join(busy)} | "
                f"{_bytes(fit.sent_bytes)} | {_bytes(moved)} |"
            )


def _power(rows: float) -> str:
    return f"1e{len(f'{rows:.0f}') - 1}"


def _time(seconds: float) -> str:
    for size, name in ((86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {name}"
    return f"{seconds:.1f} s"


def _bytes(count: float) -> str:
    for size, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if count >= size:
            return f"{count / size:.3g} {name}"
    return f"{count / 1e3:.3g} kB"
