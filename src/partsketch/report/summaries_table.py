"""What summaries hold, for the terminal and as plain data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from partsketch.common.text import plain
from partsketch.common.units import bytes_text
from partsketch.questions.summaries import Summaries

#: More partitions than this are cut in the middle.
_MOST_ROWS = 20


def describe_summaries(name: str, summaries: Summaries) -> dict[str, Any]:
    """Return what a file of summaries tells, as plain data."""
    return {
        "file": name,
        "partitions": [
            {"name": partition, "rows": rows}
            for partition, rows in zip(summaries.names, summaries.row_counts, strict=True)
        ],
        "columns": list(summaries.columns),
        "targets": list(summaries.about.targets),
        "weighted": summaries.about.weighted,
        "levels": {column: list(levels) for column, levels in summaries.about.encoding.levels},
        "rows": sum(summaries.row_counts),
    }


def print_summaries(name: str, summaries: Summaries) -> None:
    """Print partitions, rows and columns."""
    from partsketch.common.terminal import terminal_console

    console = terminal_console()
    count, rows = len(summaries), sum(summaries.row_counts)
    size = f", {bytes_text(Path(name).stat().st_size)}" if Path(name).is_file() else ""
    console.print(plain(f"{name}: {rows:,} rows in {count:,} partition{'' if count == 1 else 's'}{size}"))
    console.print(plain(f"columns: {', '.join(summaries.columns)}"))
    if summaries.about.weighted:
        console.print("rows carry sample weights")
    pairs = list(zip(summaries.names, summaries.row_counts, strict=True))
    shown = pairs if count <= _MOST_ROWS else [*pairs[:10], *pairs[-5:]]
    for place, (partition, behind) in enumerate(shown):
        if count > _MOST_ROWS and place == 10:
            console.print(f"  … {count - 15:,} more")
        console.print(plain(f"  {partition}: {behind:,} rows"))
