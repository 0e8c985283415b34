"""What may be asked of the noise: names, checked and written as one text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from partsketch.common.cluster_names import joined_names, split_names
from partsketch.common.errors import InputError

#: Noise of a variance of its own in every row, and how errors of it are weighed.
HC = ("HC0", "HC1", "HC2", "HC3")
#: Noise that hangs together within the values of a column.
CRV = ("CRV1", "CRV3")
IID = "iid"
#: What other programs call these.
_ELSEWHERE = {
    "hetero": "'HC1'",
    "robust": "'HC1'",
    "nonrobust": "'iid'",
    "cluster": "{'CRV1': column} (--vcov CRV1:column)",
    "standard": "'iid'",
    "hc": "'HC1'",
}
#: A row that leaves less than this of itself to the others determines a coefficient alone.
_ALONE = 1e-9


def read_vcov(given: Any) -> str:
    """Return what was given as text: "iid", "HC1", or "CRV1:city" for {"CRV1": "city"}."""
    if isinstance(given, Mapping) and len(given) == 1:
        ((kind, column),) = given.items()
        if isinstance(column, list | tuple) and all(isinstance(name, str) for name in column):
            column = joined_names(column)
        given = f"{kind}:{column}" if isinstance(column, str) else given
    if given in (IID, *HC):
        return str(given)
    kind, colon, column = str(given).partition(":")
    if kind in CRV and colon and column:
        return f"{kind}:{joined_names(_columns(kind, column))}"
    if kind in CRV:
        raise InputError(
            f"vcov={kind!r} needs the column of the clusters: write {{{kind!r}: 'city'}} (--vcov {kind}:city)."
        )
    if str(given).lower() in _ELSEWHERE:
        raise InputError(f"vcov is {given!r}: what others call so is {_ELSEWHERE[str(given).lower()]} here.")
    raise InputError(
        f"vcov is {given!r}: choose 'iid', {', '.join(map(repr, HC))}, {{'CRV1': column}} or {{'CRV3': column}} "
        "(--vcov CRV1:column)."
    )


def _columns(kind: str, text: str) -> tuple[str, ...]:
    names = split_names(text)
    if not names or len(names) > 2 or len(set(names)) < len(names):
        raise InputError(
            f"vcov={kind + ':' + text!r}: name one column of clusters, or two as in 'city + year'; a name with a plus "
            "stands in backticks."
        )
    if kind == "CRV3" and len(names) > 1:
        raise InputError("vcov='CRV3' leaves out the clusters of one column in turn: ask for 'CRV1' of two.")
    return names


def row_alone(kind: str, least: float, number: int) -> None:
    """Refuse a row that leaves nothing of itself to the others."""
    if least < _ALONE:
        raise InputError(
            f"Row {number} alone determines a coefficient, and vcov={kind!r} asks what the others say without "
            "it: ask for 'HC1', or leave the column out that only this row has."
        )


def kind_of(vcov: str) -> str:
    """Return the kind without the column of the clusters."""
    return vcov.partition(":")[0]


def clusters_of(vcov: str) -> tuple[str, ...]:
    """Return the columns of the clusters: none, one or two."""
    return split_names(vcov.partition(":")[2])
