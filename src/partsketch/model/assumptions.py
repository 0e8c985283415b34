"""What the standard errors of a model take for granted, in sentences."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from partsketch.common.cluster_names import split_names
from partsketch.common.errors import PartsketchWarning
from partsketch.model.sentences import listed
from partsketch.summaries.tasks import INTERCEPT

if TYPE_CHECKING:
    from partsketch.model.model import Model

#: Clusters below which a reader is told how little errors rest on.
_FEW_CLUSTERS = 10


def assumptions(model: Model) -> list[str]:
    """Say which levels were absorbed, whether there is noise at all, and what errors take for granted of it."""
    known = dict.fromkeys(inference.vcov for inference in model.inferences if inference.standard_errors is not None)
    asked = split_names(str(model.record.options.get("vcov", "")).partition(":")[2])
    few = [*_few_clusters(model), *_inverted(model)]
    absorbed = model.record.reasons.get("absorb")
    before = [] if absorbed is None else [f"{absorbed}."]
    perfect = ", ".join(
        target for number, target in enumerate(model.target_names) if fits_without_residuals(model, number)
    )
    if perfect:
        before.append(
            f"The features give {perfect} without a residual, up to rounding: there is no noise that tests and "
            "intervals could be of. Look whether a feature was made of the target."
        )
    before += _not_told_apart(model)
    if asked:
        told = f"Standard errors take the values of column {asked[0]!r} for clusters ({', '.join(known)})."
        if len(asked) > 1:
            told = f"Standard errors allow noise that rows of the same {asked[0]!r} or {asked[1]!r} share (CRV1)."
        return [*before, told, *few] if known else before
    said = {
        **{kind: f"Standard errors allow noise of another variance in every row ({kind})." for kind in known},
        "iid": "",
        "CRV1": "Standard errors take partitions for clusters (CRV1).",
        "CRV3": "Standard errors take partitions for clusters (CRV3, the jackknife).",
        "wild": f"P-values and intervals are of the wild cluster bootstrap{_how(model)}; standard errors are CRV1.",
    }
    return [*before, *(said[vcov] for vcov in known if said[vcov]), *few]


def _how(model: Model) -> str:
    """Return in brackets how the bootstrap was made."""
    made = next((inference.wild for inference in model.inferences if inference.wild is not None), None)
    return "" if made is None else f" ({made.draws:,} draws, {made.weights.capitalize()} weights, seed {made.seed})"


def _not_told_apart(model: Model) -> list[str]:
    """Say that errors of aliased columns are not those of coefficients of their own."""
    if all(inference.standard_errors is None for inference in model.inferences):
        return []
    shared = [alias for alias in model.record.aliased if any(other != INTERCEPT for other in alias[1])]
    if not shared:
        return []
    names = listed(_aliased_together(shared))
    return [
        f"The rows do not tell the coefficients of {names} apart: their errors, tests and intervals are "
        "those of the solution of least norm, and the true coefficients may be others."
    ]


def _aliased_together(aliased: Sequence[tuple[str, tuple[str, ...]]]) -> list[str]:
    return list(dict.fromkeys(name for column, others in aliased for name in (*others, column)))


def warn_of_restrictions(model: Model, matrix: NDArray[np.float64]) -> None:
    """Warn that a test is on coefficients which the rows do not tell apart."""
    shared = _aliased_together(model.record.aliased)
    used = [name for name, column in zip(model.column_names, matrix.T, strict=True) if column.any() and name in shared]
    if used:
        warnings.warn(
            f"The rows do not tell the coefficients of {listed(shared)} apart, and the test is on {listed(used)}: it "
            "is of the solution of least norm, and says something of the true coefficients only where all solutions "
            "have the same restricted sums. Leave aliased columns out and fit again.",
            PartsketchWarning,
            stacklevel=4,
        )


def fits_without_residuals(model: Model, number: int) -> bool:
    """Tell whether nothing is left of a target but rounding."""
    inference = model.inferences[number]
    return inference.standard_errors is not None and inference.noise_variance == 0


def _inverted(model: Model) -> list[str]:
    """Say what intervals are that do not rest on standard errors, and what one without ends means."""
    every = [inference.inverted for inference in model.inferences if inference.inverted is not None]
    if not every:
        return []
    told = [
        "Intervals and p-values are of inverted tests, which hold however large the noise is: all values that are not "
        "rejected."
    ]
    if any(kept.interval(0.95).tolist()[0][1] == float("inf") for kept in every):
        told.append(
            "From -inf to inf: the noise leaves nothing known, and every interval that covers would have to be without "
            "ends here; it takes more rows, fewer columns or a larger epsilon."
        )
    return told


def _few_clusters(model: Model) -> list[str]:
    """Say how little errors by cluster rest on, where clusters are few."""
    for inference in model.inferences:
        freedom = inference.degrees_of_freedom
        if inference.vcov in ("CRV1", "CRV3") and freedom is not None and freedom + 1 < _FEW_CLUSTERS:
            clusters = int(freedom) + 1
            # With absorbed levels, and for clusters of two columns, there is no CRV3.
            two = len(split_names(str(model.record.options.get("vcov", "")).partition(":")[2])) > 1
            wider = inference.vcov == "CRV1" and model.record.options.get("absorb") is None and not two
            other = "" if not wider else "; CRV3 is wider, and safer"
            return [
                f"There are {clusters} clusters only: t has {clusters - 1} degree{'s' if clusters > 2 else ''} of "
                f"freedom, and errors of so few are rough and mostly too small{other}."
            ]
    return []
