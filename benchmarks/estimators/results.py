"""From saved losses to the table of docs/estimators.md and to what became of the targets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.estimators import many_sites, noise_rules

_HEADS = {
    "average": "θ̄",
    "inverse_variance": "θ̄, inverse variance",
    "stack": "stack",
    "auto": "stack, auto",
    "orthogonal_stack": "orthogonal stack",
    "orthogonal_auto": "orthogonal, auto",
}

#: Parts of the table of coverage: noise that is measured, and estimated.
_COVERAGE = ("coverage", "coverage-estimated")

#: Targets: auto against the best column, against the bound where coefficients are shared, against the plain stack.
_NEAR_BEST, _NEAR_BOUND, _BELOW_STACK = 1.05, 1.03, 3.0


def parts(result: Mapping[str, Any]) -> dict[str, str]:
    """Return the generated parts of the page by name."""
    rows = result["rows"]
    tables = {"estimators": _table(rows), "estimators-targets": _targets(rows)}
    origins = dict.fromkeys(tables, result)
    for part, lines in (("coverage", _coverage), ("rules", noise_rules.table), ("sites", many_sites.table)):
        if part in result:
            tables[f"estimators-{part}"] = lines(result[part]["rows"])
            origins[f"estimators-{part}"] = result[part]
    if "coverage-estimated" in result:
        both = [
            {"command": part["command"], **row} for part in map(result.get, _COVERAGE) if part for row in part["rows"]
        ]
        tables["estimators-coverage"] = _coverage(both)
        origins["estimators-coverage"] = {**result["coverage-estimated"], "rows": both}
    return {name: "\n".join(["", *lines, "", _origin(origins[name])]) + "\n\n" for name, lines in tables.items()}


def _origin(result: Mapping[str, Any]) -> str:
    # Rows may have been measured again, some at a time.
    commands = dict.fromkeys(row.get("command", result["command"]) for row in result["rows"])
    return f"{result['date'][:10]}, {', '.join(f'`{command}`' for command in commands)}."


def _coverage(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    heads = ("noise", "certified / lost", "loss: 90, 95, 99%", "true coefficients", "exact least squares")
    yield "| partitions | k | m | sketch | fits | " + " | ".join(heads) + " |"
    yield "|---|---:|---:|---|---:|---|---:|---|---|---|"
    for row in rows:
        shares = (" / ".join(f"{100 * share:.1f}" for share in row[of]) for of in ("of_loss", "of_truth", "of_exact"))
        certified = f"{row['certified']:.3f} ± {row['certified_error']:.3f}"
        told = (row["name"], row["k"], row["sketch_size"], row["kind"], row["fits"], row["noise"], certified, *shares)
        yield "| " + " | ".join(map(str, told)) + " |"


def _table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    heads = [*_HEADS.values(), "bound", "auto took", "noise for auto", "bytes: coefficients, sketch, exact"]
    yield "| partitions | k | m | draws | " + " | ".join(heads) + " |"
    yield "|---|---:|---:|---:|" + "---:|" * (len(_HEADS) + 1) + "---|---|---|"
    for row in rows:
        least = min(row["losses"].values())
        cells = [_cell(row, name, least) for name in _HEADS]
        total = sum(row["taken"].values())
        taken = ", ".join(f"{name} {count / total:.0%}" for name, count in row["taken"].items())
        sent = ", ".join(f"{row['bytes'][name]:,}" for name in ("coefficients", "sketch", "exact"))
        yield (
            f"| {row['name']} | {row['k']} | {row['sketch_size']} | {row['draws']} | "
            + " | ".join([*cells, f"{100 * row['bound']:.3g}%", taken, row["noise"], sent])
            + " |"
        )


def _cell(row: Mapping[str, Any], name: str, least: float) -> str:
    if name not in row["losses"]:
        return "–"
    value = f"{100 * row['losses'][name]:.3g}% ± {100 * row['standard_errors'][name]:.1g}"
    return f"**{value}**" if row["losses"][name] == least else value


def _targets(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    heads = (
        "auto / best Gaussian", "orthogonal auto / best", "orthogonal auto / bound",
        "with estimated noise / bound", "least with estimated noise / bound", "estimated / that least",
        "Bayes without the numbers / bound",
        "stack / auto",
    )  # fmt: skip
    yield "| partitions | k | " + " | ".join(heads) + " |"
    yield "|---|---:|" + "---:|" * len(heads)
    for row in rows:
        losses = row["losses"]
        best = min(losses.values())
        plain = min(losses[name] for name in ("average", "inverse_variance", "stack", "auto") if name in losses)
        cells = [
            _judged(losses["auto"] / plain, _NEAR_BEST),
            f"{_judged(losses['orthogonal_auto'] / best, _NEAR_BEST)} ± {_error(row):.3f}",
            *_against_bound(row),
            _least(losses["stack"] / losses["auto"]) if row["name"].startswith("uneven") else "–",
        ]
        yield f"| {row['name']} | {row['k']} | " + " | ".join(cells) + " |"


def _error(row: Mapping[str, Any]) -> float:
    """Return the standard error of a ratio to the best column: zero if it is the best, else that of unlike draws."""
    best = min(row["losses"], key=row["losses"].__getitem__)
    if best == "orthogonal_auto":
        return 0.0
    shares = [row["standard_errors"][name] / row["losses"][name] for name in ("orthogonal_auto", best)]
    return float(math.hypot(*shares) * row["losses"]["orthogonal_auto"] / row["losses"][best])


def _against_bound(row: Mapping[str, Any]) -> list[str]:
    """Return what the fit loses over the bound, and over what has to be paid for noise that is not known."""
    if not row["shared"]:
        return ["–"] * 5
    over, least = row["over_if_estimated"], row["least_with_estimated_noise"]
    told = f"{row['without_numbers']:.3f}" if "without_numbers" in row else "–"
    near = "–"
    if "over_attaining" in row:
        near = f"{_judged(row['over_attaining'], _NEAR_BOUND)} ± {row['over_attaining_error']:.3f}"
    estimated = f"{over:.3f} ± {row['over_if_estimated_error']:.3f}"
    error = row.get("least_with_estimated_noise_error")
    attained = f"{least:.3f} ± {error:.3f}" if error else f"{least:.3f}"
    return [near, estimated, attained, f"{over / least:.3f}", told]


def _judged(ratio: float, most: float) -> str:
    return f"{ratio:.3f}" if ratio <= most else f"**{ratio:.3f}** (missed)"


def _least(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio >= _BELOW_STACK else f"**{ratio:.1f}** (missed)"
