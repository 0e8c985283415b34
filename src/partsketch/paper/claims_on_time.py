"""Claims about time: what is quicker than what, and how it scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from partsketch.paper.claims import FAILS, HOLDS, PARTLY, Question, Verdict, judge
from partsketch.paper.clock import fitted_slope
from partsketch.paper.data_sets import TITLES
from partsketch.paper.drawing import column
from partsketch.paper.results import Row

if TYPE_CHECKING:
    from partsketch.paper.study import Study

Measured = tuple[str, Verdict] | None

_ALL = ("ols", "ols_gram", "ols_factor")
_EXACT = ("partition_ols", "partition_gram", "partition_factor")
_OLS_NAMES = {"ols": "lstsq", "ols_gram": "normal equations", "ols_factor": "partsketch's factor"}


def _seconds(rows: Sequence[Row], estimator: str, k: int = 1, key: str = "seconds") -> float:
    (value,) = [cast(float, row[key]) for row in rows if row["estimator"] == estimator and row["k"] == k]
    return value


#: Estimators that are timed, in words: first those whose time depends on n, then those that depend on k.
ESTIMATORS = {
    "ols": "OLS on all rows",
    "whole": "β̂ᵢ, Gaussian sketch of all rows",
    "srht": "β̂ᵢ, SRHT of all rows",
    "partition": "θ̂ᵢ, Gaussian sketch of a partition",
    "partition_fast": "θ̂ᵢ, partsketch's Gaussian sketch",
    "partition_ols": "exact OLS on a partition (lstsq)",
    "partition_gram": "exact OLS on a partition (normal equations)",
    "partition_factor": "exact OLS on a partition (partsketch)",
}
_COMPLEXITY = {"ols": "O(nd²)", "whole": "O(mdn)", "srht": "O(nd log n)"}
_COMPLEXITY |= {
    name: "O(mdn/k)" if name in ("partition", "partition_fast") else "O(nd²/k)" for name in list(ESTIMATORS)[3:]
}


def slopes(study: Study) -> list[Row]:
    """Fit log time against log k (Figure 2) and log n (Figure 3), and set the paper's exponents beside it.

    The sketching stage alone is fitted too: the fit itself takes O(md²) whatever k is, a floor that bends the curve.
    """
    out = []
    for name in study.units("figure-2"):
        rows = study.rows("figure-2", "times", name)
        out += [_slope(name, [row for row in rows if row["estimator"] == e], "k", -1) for e in list(ESTIMATORS)[3:]]
    for name in study.units("figure-3"):
        rows = study.rows("figure-3", "times", name)
        out += [_slope(name, [row for row in rows if row["estimator"] == e], "n", 1) for e in list(ESTIMATORS)[:3]]
    return out


def _slope(name: str, rows: Sequence[Row], variable: str, exponent: int) -> Row:
    estimator = str(rows[0]["estimator"])
    slope, fit = fitted_slope(column(rows, variable), column(rows, "seconds"))
    entry: Row = {"data_set": name, "estimator": estimator, "complexity": _COMPLEXITY[estimator], "variable": variable}
    entry = {**entry, "exponent": exponent, "slope": slope, "r_squared": fit}
    sketched = estimator in ("whole", "srht", "partition", "partition_fast")
    return {**entry, **_stage(rows, variable)} if sketched else entry


def _stage(rows: Sequence[Row], variable: str) -> Row:
    slope, fit = fitted_slope(column(rows, variable), column(rows, "sketching_seconds"))
    return {"sketching_slope": slope, "sketching_r_squared": fit}


def _falls(study: Study) -> Measured:
    found = [row for row in slopes(study) if row["estimator"] == "partition" and row["variable"] == "k"]
    if not found:
        return None
    cases, words = {}, []
    for row in found:
        total, stage = cast(float, row["slope"]), cast(float, row["sketching_slope"])
        title = TITLES[str(row["data_set"])]
        words.append(f"{title}: slope {total:.2f} (R² {row['r_squared']:.2f}), sketching alone {stage:.2f}")
        whole = -1.3 <= total <= -0.7 and cast(float, row["r_squared"]) >= 0.95
        alone = -1.3 <= stage <= -0.7 and cast(float, row["sketching_r_squared"]) >= 0.95
        cases[title if whole else f"{title}, sketching alone"] = whole or alone
    if all(cases.values()) and any("alone" in name for name in cases):
        return "; ".join(words), Verdict(PARTLY, "; ".join(cases))
    return "; ".join(words), judge(cases)


def _slower_than_ols(study: Study) -> Measured:
    ratios: dict[str, dict[str, float]] = {exact: {} for exact in _ALL}
    for name in study.units("figure-2"):
        rows = study.rows("figure-2", "times", name)
        for exact in _ALL:
            ratios[exact][TITLES[name]] = _seconds(rows, "whole") / _seconds(rows, exact)
    if not ratios["ols"]:
        return None
    cases, words = {}, []
    for exact, found in ratios.items():
        slower = [title for title, ratio in found.items() if ratio > 1]
        where = "" if len(slower) in (0, len(found)) else f" (on {' and '.join(slower)})"
        cases[f"OLS is solved by {_OLS_NAMES[exact]}{where}"] = bool(slower)
        words.append(f"{_OLS_NAMES[exact]} " + ", ".join(f"{ratio:.1f}× on {title}" for title, ratio in found.items()))
    verdict = judge(cases)
    if verdict.word == HOLDS and any("(on" in name for name in cases):
        verdict = Verdict(PARTLY, "; ".join(cases))
    return "time of β̂ᵢ over that of OLS on all rows: by " + "; by ".join(words), verdict


def _cheaper_with_large_k(study: Study) -> Measured:
    cases, words = {}, []
    for name in study.units("figure-2"):
        rows = study.rows("figure-2", "times", name)
        counts = sorted(cast(int, row["k"]) for row in rows if row["estimator"] == "partition")
        quick = [k for k in counts if _seconds(rows, "partition", k) < _seconds(rows, "ols")]
        always = [k for k in counts if all(later in quick for later in counts if later >= k)]
        cases[f"{TITLES[name]} from k = {always[0]}" if always else TITLES[name]] = bool(always)
        words.append(f"{TITLES[name]}: " + (f"from k = {always[0]} on" if always else "never"))
    if not cases:
        return None
    verdict = Verdict(HOLDS) if all(cases.values()) else judge(cases)
    return "quicker than lstsq on all rows, " + "; ".join(words), verdict


def _never_cheaper_than_exact(study: Study) -> Measured:
    cases, words = {}, []
    for name in study.units("figure-2"):
        rows = study.rows("figure-2", "times", name)
        counts = sorted(cast(int, row["k"]) for row in rows if row["estimator"] == "partition")
        for sketch, label in (("partition", "NumPy"), ("partition_fast", "partsketch's sketch")):
            ratios = [_seconds(rows, sketch, k) / min(_seconds(rows, exact, k) for exact in _EXACT) for k in counts]
            cases[f"{TITLES[name]} ({label})"] = min(ratios) > 1
            words.append(f"{TITLES[name]}, {label}: {min(ratios):.1f} to {max(ratios):.1f} times")
    return ("time of θ̂ᵢ over that of the quickest exact OLS on the same partition; " + "; ".join(words),
            judge(cases)) if cases else None  # fmt: skip


def _hadamard(study: Study) -> Measured:
    rows = study.rows("figure-3", "times")
    if not rows:
        return None
    size = cast(int, rows[0]["sketch_size"])
    ratios = {}
    for n in sorted({cast(int, row["n"]) for row in rows}):
        here = [row for row in rows if row["n"] == n]
        ratios[n] = _seconds(here, "srht", key="sketching_seconds") / _seconds(here, "whole", key="sketching_seconds")
    words = ", ".join(f"{ratio:.2f} at n = {n:,}" for n, ratio in ratios.items())
    far = [ratio for n, ratio in ratios.items() if n >= 8 * size]
    near = [ratio for n, ratio in ratios.items() if n < 8 * size]
    cases = {"n ≥ 8m (SRHT faster)": max(far) < 1, "n < 8m (SRHT not faster)": min(near) >= 1}
    return f"time to sketch, SRHT over Gaussian: {words}", judge(cases)


def _most_efficient(study: Study) -> Measured:
    rows = study.rows("figure-3", "times")
    if not rows:
        return None
    cases, words = {}, []
    for n in sorted({cast(int, row["n"]) for row in rows if row["estimator"] == "partition"}, reverse=True):
        here = [row for row in rows if row["n"] == n]
        last = max(cast(int, row["k"]) for row in here)
        best = min(_seconds(here, name) for name in ("whole", "srht", "ols"))
        ratio = _seconds(here, "partition", last) / best
        cases[f"n = {n}"] = ratio < 1
        words.append(f"n = {n}: {ratio:.2f} of the best other at k = {last}")
    return "; ".join(words), judge(cases)


TIME_QUESTIONS: tuple[Question, ...] = (
    Question(
        "polynomial-time",
        "Figure 2",
        "The time of θ̂ᵢ falls polynomially in k, as O(mdn/k).",
        "a data set counts when log time against log k has a slope within 0.3 of −1 and R² ≥ 0.95, in all or, failing "
        "that, in its sketching stage alone",
        _falls,
        {
            HOLDS: "Sketching dominates, and its work is in proportion to the partition's rows.",
            PARTLY: "Sketching scales as stated; solving the m × d problem takes the same time at every k and becomes "
            "the floor. (A straight line under a logarithmic y axis alone would be exponential; both axes must be "
            "logarithmic.)",
            FAILS: "Fixed costs dominate.",
        },
    ),
    Question(
        "whole-slower",
        "Figure 2",
        "β̂ᵢ takes more time than OLS on all rows.",
        "a case counts when the median time of β̂ᵢ is above that of OLS; three ways to solve OLS are timed",
        _slower_than_ols,
        {
            HOLDS: "O(mdn) with m > d is more than O(nd²).",
            PARTLY: "O(mdn) with m > d is more than O(nd²), but constants matter: lstsq solves by singular values, "
            "many times the work of one product XᵀX, so a sketch can beat it. Against the normal equations the order "
            "shows.",
            FAILS: "The solvers of OLS that were timed have larger constants than a product with a Gaussian matrix.",
        },
    ),
    Question(
        "partition-quicker",
        "Figure 2",
        "θ̂ᵢ is more efficient than OLS on all rows for large k.",
        "a data set counts when θ̂ᵢ is quicker than lstsq on all rows from some k on",
        _cheaper_with_large_k,
        {HOLDS: "It reads n/k rows instead of n; exact OLS on those rows does too, see the next claim."},
    ),
    Question(
        "never-cheaper",
        "not in the paper",
        "A dense Gaussian sketch of a partition is never cheaper than the cheapest way to solve the partition exactly.",
        "a case counts when θ̂ᵢ took longer, at every k, than the quickest of lstsq, normal equations and partsketch's "
        "factor",
        _never_cheaper_than_exact,
        {
            HOLDS: "mpd multiplications with m > d, and mp random numbers, against pd²/2 multiplications for XᵀX. "
            "(Slower exact ways exist: singular values, or a factor that stays right when XᵀX does not.)",
            PARTLY: "mpd multiplications with m > d, and mp random numbers, against pd²/2: where it fails to show, "
            "both take so little that fixed costs decide.",
        },
    ),
    Question(
        "srht",
        "Appendix C",
        "SRHT is faster than a Gaussian sketch only when m ≪ n.",
        "two cases on the time to sketch: SRHT is faster at every n ≥ 8m, and not faster at every n below",
        _hadamard,
        {
            HOLDS: "nd log n against mnd. (The appendix also says that SRHT is only faster for small n, the opposite.)",
            PARTLY: "nd log n against mnd: the advantage grows as log n / m falls. Which side wins near n = m depends "
            "on how fast random numbers are made. (The appendix also says that SRHT is only faster for small n, the "
            "opposite.)",
            FAILS: "The measured order is the other way round.",
        },
    ),
    Question(
        "partition-most-efficient",
        "Appendix C",
        "θ̂ᵢ remains the most efficient method as k increases.",
        "a value of n counts when θ̂ᵢ at the largest k is quicker than β̂ᵢ (both sketches) and OLS on all rows",
        _most_efficient,
        {HOLDS: "It touches the fewest rows. It is compared with methods that use all rows."},
    ),
)
