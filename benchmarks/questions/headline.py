"""One pass over a folder of Parquet files in bounded memory, then ten thousand regressions from what it left.

    python -m benchmarks.questions.headline [--rows 100000000] [--folder /tmp]

The files are made in a folder that is removed again. The pass and the questions run in a process of their own, so that
its peak of memory is theirs. A trial of fewer rows is printed, and leaves the results of the whole run as they are.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import shlex
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.questions.running import COLUMNS, FEATURES, all_specifications
from benchmarks.quiet import now

ROWS = 100_000_000
GROUPS = 200
_FILE_ROWS = 2_500_000
_SPECIFICATIONS = 10_000
NAME = "questions-headline"


def make_files(folder: Path, rows: int) -> None:
    """Write rows of 20 features, a target and a group, as many to a file as fit memory well."""
    slopes, levels = np.random.default_rng(1).normal(size=COLUMNS), np.random.default_rng(2).normal(size=GROUPS)
    for number, start in enumerate(range(0, rows, _FILE_ROWS)):
        rng = np.random.default_rng([3, number])
        count = min(_FILE_ROWS, rows - start)
        values = rng.standard_normal((COLUMNS, count), dtype=np.float32)
        group = rng.integers(0, GROUPS, count, dtype=np.int32)
        target = slopes.astype(np.float32) @ values + levels[group] + rng.standard_normal(count, dtype=np.float32)
        columns = dict(zip(FEATURES, values, strict=True))
        table = pa.table({**columns, "y": target.astype(np.float32), "g": group})
        # Random digits cannot be compressed.
        pq.write_table(table, folder / f"{number:05d}.parquet", compression="none", use_dictionary=False)


def summarise_and_ask(folder: Path, answers: Any) -> None:
    """Make the summaries, save them, ask them; send what it took."""
    import partsketch as ps
    from partsketch.questions.specifications import compare

    begin = now()
    summaries = ps.summarise(str(folder), [*FEATURES, "y"], partition_by="g")
    passed = now()
    summaries.save(folder / "rows.psk")
    before = now()
    models = compare(ps.read_summaries(folder / "rows.psk"), all_specifications(_SPECIFICATIONS))
    after = now()
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    answers.send(
        {
            "rows": sum(summaries.row_counts),
            "groups": len(summaries),
            "pass_seconds": passed.wall - begin.wall,
            "pass_processor_seconds": passed.own - begin.own,
            "others": after.others_share(begin),
            "specifications": len(models),
            "ask_seconds": after.wall - before.wall,
            "ask_processor_seconds": after.own - before.own,
            "peak_bytes": 1024 * int(found[1]) if found else None,
            "summaries_bytes": (folder / "rows.psk").stat().st_size,
        }
    )


def measured(rows: int, where: Path | None) -> dict[str, Any]:
    """Make the files, measure, and remove the folder."""
    folder = Path(tempfile.mkdtemp(prefix="partsketch-headline-", dir=where))
    try:
        start = time.perf_counter()
        make_files(folder, rows)
        made = time.perf_counter() - start
        size = sum(path.stat().st_size for path in folder.glob("*.parquet"))
        print(f"{rows:,} rows in {size / 1e9:.1f} GB of Parquet, made in {made:.0f} s", flush=True)
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=summarise_and_ask, args=(folder, there))
        process.start()
        there.close()
        result: dict[str, Any] = here.recv()
        process.join()
        return {**result, "data_bytes": size, "columns": COLUMNS}
    finally:
        shutil.rmtree(folder)


def stated(result: dict[str, Any]) -> str:
    """Return minutes and megabytes in a sentence."""
    peak = "" if result["peak_bytes"] is None else f" and {result['peak_bytes'] / 1e6:,.0f} MB of memory"
    return (
        f"{result['rows']:,} rows in {result['data_bytes'] / 1e6:,.0f} MB: {result['groups']} groups summarised in "
        f"{result['pass_seconds'] / 60:.2f} minutes{peak}, {result['summaries_bytes'] / 1e6:.1f} MB left; "
        f"{result['specifications']:,} regressions from it in {result['ask_seconds'] / 60:.2f} minutes"
    )


def main() -> None:
    """Parse, measure, save."""
    from benchmarks.runner import RESULTS, environment, save

    parser = argparse.ArgumentParser(prog="python -m benchmarks.questions.headline", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--folder", type=Path, help="where the files are made; default: the system's temporary folder")
    arguments = parser.parse_args()
    command = shlex.join(["python", "-m", "benchmarks.questions.headline", *sys.argv[1:]])
    result = {**environment(), "command": command, **measured(arguments.rows, arguments.folder)}
    if arguments.rows >= ROWS:
        save(result, RESULTS / f"{NAME}.json")
    print(stated(result))
    print(json.dumps({name: value for name, value in result.items() if name not in ("machine", "versions")}))


if __name__ == "__main__":
    main()
