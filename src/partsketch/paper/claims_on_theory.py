"""Claims about formulas: Lemma 2.1, Theorems 3.1 and 3.3, Remark 3.4."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from partsketch.paper.claims import FAILS, HOLDS, Question, Verdict, within_chance
from partsketch.paper.drawing import column

if TYPE_CHECKING:
    from partsketch.paper.study import Study

_ROUNDING = 1e-9

Measured = tuple[str, Verdict] | None


def _lower_bound(study: Study) -> Measured:
    averages = study.rows("figure-5", "averages")
    if not averages:
        return None
    d = cast(int, averages[0]["d"])
    # With one partition D = d exactly; the bound is put to the test by several.
    designs = [row for row in study.rows("figure-5", "designs") if row["k"] != 1]
    relative = [value / d for value in column(designs, "divergence")]
    house = [row for row in study.rows("figure-5", "data") if row["k"] != 1]
    relative += [value / cast(int, row["d"]) for value, row in zip(column(house, "divergence"), house, strict=True)]
    smallest = min(relative)
    measured = f"smallest D/d among {len(relative)} partitionings of random designs and House, k > 1: {smallest:.4f}"
    return measured, Verdict(HOLDS if smallest >= 1 - _ROUNDING else FAILS)


def _equality(study: Study) -> Measured:
    copies = study.rows("figure-5", "copies")
    if not copies:
        return None
    distance = max(abs(cast(float, row["divergence"]) / cast(int, row["d"]) - 1) for row in copies)
    measured = (
        f"largest |D/d − 1| for k copies of one partition, k up to {max(column(copies, 'k')):.0f}: {distance:.1e}"
    )
    return measured, Verdict(HOLDS if distance <= _ROUNDING else FAILS)


def _burg(study: Study) -> Measured:
    averages = study.rows("figure-5", "averages")
    if not averages:
        return None
    d = float(cast(int, averages[0]["d"]))
    distances = []
    for row in (*study.rows("figure-5", "designs"), *study.rows("figure-5", "data")):
        if row["burg_divergence"] is not None and row["k"] != 1:
            gap = cast(float, row["divergence"]) - float(cast(float, row.get("d", d)))
            distances.append(abs(cast(float, row["burg_divergence"]) / gap - 1))
    measured = f"largest |BD/(D − d) − 1| in {len(distances)} partitionings: {max(distances):.1e}"
    return measured, Verdict(HOLDS if max(distances) < 1e-4 else FAILS)


def _one_partition(study: Study) -> Measured:
    cells = [cell for cell in study.rows("figure-4", "cells") if cell["k"] == 1]
    if not cells:
        return None
    formulas: dict[tuple[str, int], dict[str, float]] = {}
    for cell in cells:
        place = (str(cell["design"]), cast(int, cell["sketch_size"]))
        formulas.setdefault(place, {})[str(cell["estimator"])] = cast(float, cell["formula"])
    distance = max(abs(pair["partition"] / pair["whole"] - 1) for pair in formulas.values())
    measured = f"largest |B_θ/B_β − 1| at k = 1 over {len(formulas)} designs and sketch sizes: {distance:.1e}"
    return measured, Verdict(HOLDS if distance <= _ROUNDING else FAILS)


def _theorem(estimator: str) -> Callable[[Study], Measured]:
    def measure(study: Study) -> Measured:
        cells = [cell for cell in study.rows("figure-4", "cells") if cell["estimator"] == estimator]
        if not cells:
            return None
        distances = column(cells, "z")
        beyond = sum(abs(value) > 2 for value in distances)
        measured = (
            f"{len(cells)} cells of k, m and design: largest distance {max(map(abs, distances)):.1f} standard errors, "
            f"{beyond} beyond 2 (about {0.05 * len(cells):.1f} expected by chance)"
        )
        return measured, within_chance(distances)

    return measure


def _given_data(study: Study) -> Measured:
    distances, cells = [], 0
    for name in study.units("figure-1-larger"):
        exact = {row["k"]: row for row in study.rows("figure-1-larger", "curves", name)}
        for row in study.rows("figure-1-larger", "summaries", name):
            # With ten draws of a skewed loss a standard error is too rough to count in.
            if row["estimator"] in ("whole", "partition") and cast(int, row["draws"]) >= 20:
                cells += 1
                formula = cast(float, exact[row["k"]][str(row["estimator"])])
                distances.append((cast(float, row["mean"]) - formula) / cast(float, row["standard_error"]))
    if not distances:
        return None
    measured = f"{cells} means of draws at m = 2d on real data: largest distance {max(map(abs, distances)):.1f} s.e."
    return measured, within_chance(distances)


def _expected_divergence(study: Study) -> Measured:
    rows = [row for row in study.rows("figure-5", "averages") if row["design"] == "iid" and row["k"] != 1]
    if not rows:
        return None
    distances = [
        (cast(float, row["divergence_over_d"]) - cast(float, row["expected_over_d"]))
        / cast(float, row["standard_error"])
        for row in rows
    ]
    measured = (
        f"k from 2 to {max(column(rows, 'k')):.0f}: largest distance {max(map(abs, distances)):.1f} standard errors"
    )
    return measured, within_chance(distances)


_CHANCE = "holds when no mean is more than 4 standard errors from the formula"

THEORY_QUESTIONS: tuple[Question, ...] = (
    Question(
        "divergence-bound",
        "Lemma 2.1",
        "D ≥ d.",
        "holds when the smallest D/d is not below 1 − 10⁻⁹",
        _lower_bound,
        {HOLDS: "D − d is an average of Burg divergences, and none of them is negative."},
    ),
    Question(
        "divergence-equality",
        "Lemma 2.1",
        "D = d when all partitions have the same Gram matrix.",
        "holds when |D/d − 1| ≤ 10⁻⁹",
        _equality,
        {HOLDS: "Every G_i G_j⁻¹ is then the identity."},
    ),
    Question(
        "burg",
        "Section 2",
        "D is a leading term of the average Burg divergence BD.",
        "holds when BD = D − d up to a relative 10⁻⁴ of rounding",
        _burg,
        {
            HOLDS: "More than a leading term: over all ordered pairs the log determinants cancel, so BD = D − d.",
        },
    ),
    Question(
        "one-partition",
        "after Theorem 3.3",
        "B_θ = B_β at k = 1.",
        "holds when they agree up to 10⁻⁹",
        _one_partition,
        {HOLDS: "With one partition D = d and both estimators sketch all rows."},
    ),
    Question(
        "theorem-3.1",
        "Theorem 3.1, Remark 3.2",
        "The expected excess loss of β̄ is B_β.",
        _CHANCE,
        _theorem("whole"),
        {HOLDS: "Averages over fresh noise and sketches agree with the formula; the noise was not Gaussian."},
    ),
    Question(
        "theorem-3.3",
        "Theorem 3.3",
        "The expected excess loss of θ̄ is B_θ.",
        _CHANCE,
        _theorem("partition"),
        {HOLDS: "It holds for like and unlike partitions, as long as every partition has full rank."},
    ),
    Question(
        "given-data",
        "extension of Theorems 3.1 and 3.3",
        "Given the data, the expectations hold with ranks in place of d, singular partitions included.",
        _CHANCE + " (data sets with at least 20 draws per k)",
        _given_data,
        {HOLDS: "The row space of a sketch is that of its rows, so everything happens in r_i dimensions."},
    ),
    Question(
        "expected-divergence",
        "Remark 3.4",
        "E[D]/d = (n − (d+1))/(n − k(d+1)) for Gaussian rows.",
        _CHANCE,
        _expected_divergence,
        {HOLDS: "It is the mean of an inverse Wishart matrix."},
    ),
)
