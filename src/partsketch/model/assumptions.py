"""What the standard errors of a model take for granted, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from partsketch.model.model import Model

#: Clusters below which a reader is told how little errors rest on.
_FEW_CLUSTERS = 10


def assumptions(model: Model) -> list[str]:
    """Say what standard errors take for granted where it is not independent noise of one variance."""
    known = dict.fromkeys(inference.vcov for inference in model.inferences if inference.standard_errors is not None)
    asked = str(model.record.options.get("vcov", "")).partition(":")[2]
    few = _few_clusters(model)
    if asked:
        told = f"Standard errors take the values of column {asked!r} for clusters ({', '.join(known)})."
        return [told, *few] if known else []
    said = {
        **{kind: f"Standard errors allow noise of another variance in every row ({kind})." for kind in known},
        "iid": "",
        "CRV1": "Standard errors take partitions for clusters (CRV1).",
        "CRV3": "Standard errors take partitions for clusters (CRV3, the jackknife).",
        "wild": "P-values and intervals are of the wild cluster bootstrap; standard errors are CRV1.",
    }
    return [*(said[vcov] for vcov in known if said[vcov]), *few]


def _few_clusters(model: Model) -> list[str]:
    """Say how little errors by cluster rest on, where clusters are few."""
    for inference in model.inferences:
        freedom = inference.degrees_of_freedom
        if inference.vcov in ("CRV1", "CRV3") and freedom is not None and freedom + 1 < _FEW_CLUSTERS:
            clusters = int(freedom) + 1
            other = "" if inference.vcov == "CRV3" else "; CRV3 is wider, and safer"
            return [
                f"There are {clusters} clusters only: t has {clusters - 1} degree{'s' if clusters > 2 else ''} of "
                f"freedom, and errors of so few are rough and mostly too small{other}."
            ]
    return []
