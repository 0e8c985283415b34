"""Claims drawn from the formulas: who wins for i.i.d. rows, the shape of the gap, the high-probability bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from partsketch.paper.claims import FAILS, HOLDS, PARTLY, Question, Verdict, judge
from partsketch.paper.designs import DESIGNS
from partsketch.paper.designs import TITLES as DESIGN_TITLES
from partsketch.paper.drawing import column
from partsketch.paper.results import Row

if TYPE_CHECKING:
    from partsketch.paper.study import Study

Measured = tuple[str, Verdict] | None


def _iid_outperforms(study: Study) -> Measured:
    averages = [row for row in study.rows("figure-5", "averages") if row["k"] != 1]
    if not averages:
        return None
    words, cases = [], {"D = d (partitions with equal Gram matrices)": _threshold_above_one(averages)}
    for name in DESIGNS:
        rows = [row for row in averages if row["design"] == name]
        wins = [cast(float, row["gap"]) > 0 for row in rows]
        words.append(f"{DESIGN_TITLES[name]}: B_θ < B_β in the mean for {sum(wins)} of {len(wins)} values of k")
        cases[f"rows are {'i.i.d.' if name == 'iid' else 'heterogeneous'}"] = all(wins)
    iid = [row for row in averages if row["design"] == "iid"]
    middle = iid[len(iid) // 2]
    words.append(
        f"at k = {middle['k']} it needs D/d ≤ {middle['largest_winning_divergence_over_d']:.3f}, "
        f"i.i.d. rows have {middle['divergence_over_d']:.3f}"
    )
    return "; ".join(words), judge(cases)


def _threshold_above_one(rows: list[Row]) -> bool:
    return all(cast(float, row["largest_winning_divergence_over_d"]) > 1 for row in rows)


def _has_inverted_u(values: list[float]) -> bool:
    """Whether values rise and then fall: an interior maximum that is above both ends."""
    top = values.index(max(values))
    return 0 < top < len(values) - 1 and values[0] < values[top] > values[-1]


def _inverted_u(study: Study) -> Measured:
    rows = [row for row in study.rows("figure-5", "averages") if row["design"] == "iid"]
    if not rows:
        return None
    k = [f"{value:.0f}" for value in column(rows, "k")]
    corrected, simulated, printed = (column(rows, name) for name in ("gap_corrected", "gap", "gap_printed"))
    good = {"the gap is B_β − B_θ": _has_inverted_u(corrected)}
    measured = (
        f"corrected gap {corrected[0]:.1f} at k = {k[0]}, {corrected[len(k) // 2]:.1f} at k = {k[len(k) // 2]}, "
        f"{corrected[-1]:.1f} at k = {k[-1]} (simulated {simulated[-1]:.1f}); printed formula "
        f"{printed[0]:.0f}, {printed[len(k) // 2]:.0f}, {printed[-1]:.0f}, "
        f"{'with' if _has_inverted_u(printed) else 'also without'} a maximum inside this range"
    )
    return measured, judge(good)


def _bound_probability(study: Study) -> Measured:
    rows = study.rows("figure-7", "sizes")
    if not rows:
        return None
    shares, delta = column(rows, "share_below_bound"), cast(float, rows[0]["delta"])
    measured = f"share of sketches below B'_θ: at least {min(shares):.3f}, required {1 - delta:.2f}"
    return measured, Verdict(HOLDS if min(shares) >= 1 - delta else FAILS)


def _proxy(study: Study) -> Measured:
    rows, limit = study.rows("figure-7", "sizes"), study.rows("figure-7", "ratios")
    if not rows:
        return None
    ratios = column(rows, "ratio")
    near = [row for row in limit if cast(float, row["ratio"]) <= 2]
    if max(ratios) <= 2:
        verdict = Verdict(HOLDS)
    elif near:
        first = min(near, key=lambda row: cast(float, row["sketch_rows_per_column"]))
        condition = (
            f"m ≥ {first['sketch_rows_per_column']:,.0f} d and p ≥ {first['rows_per_sketch_row']:,} m (ratio ≤ 2)"
        )
        verdict = Verdict(PARTLY, condition)
    else:
        verdict = Verdict(FAILS)
    heights = [cast(int, row["sketch_size"]) / cast(int, row["d"]) for row in rows]
    measured = (
        f"B'_θ/B_θ from {min(ratios):.1f} to {max(ratios):.0f} for m/d from {heights[0]:.0f} to {heights[-1]:.0f}; "
        f"in the limit p ≫ m ≫ d down to {min(column(limit, 'ratio')):.2f}"
    )
    return measured, verdict


CONCLUSION_QUESTIONS: tuple[Question, ...] = (
    Question(
        "iid-outperforms",
        "after Theorem 3.3",
        "B_θ ≤ B_β if D is close to d, which may be common if data are i.i.d. sampled.",
        "each case holds when B_θ < B_β in the mean for every k > 1",
        _iid_outperforms,
        {
            PARTLY: "B_θ ≤ B_β at D = d, but rows that are merely i.i.d. have a D above d by just enough to lose.",
            HOLDS: "D stays below the threshold.",
            FAILS: "D is above the threshold.",
        },
    ),
    Question(
        "inverted-u",
        "after Remark 3.4",
        "As k grows the gap E[B_β − B_θ] first increases and then decreases.",
        "holds when the corrected gap has an interior maximum above both ends",
        _inverted_u,
        {
            FAILS: "The printed F multiplies its first term by k where B_β divides by k. With the right term the gap "
            "is never positive and falls with k; simulation agrees.",
        },
    ),
    Question(
        "bound-probability",
        "Remark 3.5",
        "With probability at least 1 − δ the out-of-sample excess loss of θ̄ is below B'_θ.",
        "holds when the share of sketches below the bound is at least 1 − δ for every m",
        _bound_probability,
        {HOLDS: "The bound takes the worst case of two norms at once, so it is hardly ever approached."},
    ),
    Question(
        "bound-proxy",
        "after Remark 3.5",
        "B'_θ can be a high-probability proxy of B_θ.",
        "holds when B'_θ ≤ 2 B_θ at every m of the experiment, only when m and p are so large that it is",
        _proxy,
        {
            PARTLY: "The logarithms and roots that the argument ignores vanish slowly; at sizes one would sketch to, "
            "the bound is many times the expectation, while the sketches themselves stay within a few per cent of it.",
        },
    ),
)
