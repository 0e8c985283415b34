"""A question to the sites: coefficients at which each is to say where its own rows would move them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.model.coordinates import Coordinates
from partsketch.sites.rounds import round_file
from partsketch.sites.rounds.round_file import is_count, is_digest, is_flag, is_name, is_names, is_numbers, is_table
from partsketch.sources.encoding import Encoding
from partsketch.summaries.tasks import INTERCEPT

FloatArray = NDArray[np.float64]

#: A site and the label of its rows.
SiteName = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Question:
    """Coefficients, and what is needed to understand them; no data.

    Attributes
    ----------
    number
        Which round, from 1.
    columns, targets
        Names: features (the intercept first, if there is one), and targets.
    encoding
        Levels of text columns.
    weighted
        Whether rows have weights.
    centre, unit
        What each column (features, then targets) is measured from and in: of the stacked sketches, not of any row.
    coefficients
        In these coordinates, shape (features, targets).
    sites
        Who is asked: site and label of every sketch.
    preconditioner
        SHA-256 of the stacked sketches that the rounds start from.
    """

    number: int
    columns: tuple[str, ...]
    targets: tuple[str, ...]
    encoding: Encoding
    weighted: bool
    centre: FloatArray
    unit: FloatArray
    coefficients: FloatArray
    sites: tuple[SiteName, ...]
    preconditioner: str

    @property
    def free(self) -> int:
        """1 with an intercept, else 0."""
        return int(self.columns[:1] == (INTERCEPT,))

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features without the intercept."""
        return self.columns[self.free :]

    @property
    def coordinates(self) -> Coordinates:
        """The coordinates of the coefficients."""
        return Coordinates(len(self.columns), self.free, self.centre, self.unit)

    @property
    def digest(self) -> str:
        """The checksum of its file, by which answers name it."""
        return round_file.digest_of(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return the question as plain data."""
        return {
            "format": "partsketch question",
            "version": round_file.VERSION,
            "round": self.number,
            "columns": list(self.columns),
            "targets": list(self.targets),
            "levels": [[column, list(levels)] for column, levels in self.encoding.levels],
            "drop_first": self.encoding.drop_first,
            "weighted": self.weighted,
            "centre": self.centre.tolist(),
            "unit": self.unit.tolist(),
            "coefficients": self.coefficients.tolist(),
            "sites": [list(pair) for pair in self.sites],
            "preconditioner": self.preconditioner,
        }

    def save(self, path: str | PathLike[str]) -> None:
        """Write the question, whole or not at all."""
        round_file.save(self.to_dict(), Path(path))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Question:
        """Read a question that `save` wrote."""
        values = round_file.load(Path(path), "question", _RULES)
        fault = _fault(values)
        if fault:
            raise InputError(f"{path} is not a valid question: {fault}.")
        levels = tuple((column, tuple(names)) for column, names in values["levels"])
        return cls(
            number=values["round"],
            columns=tuple(values["columns"]),
            targets=tuple(values["targets"]),
            encoding=Encoding(levels, values["drop_first"]),
            weighted=values["weighted"],
            centre=np.array(values["centre"], dtype=np.float64),
            unit=np.array(values["unit"], dtype=np.float64),
            coefficients=np.array(values["coefficients"], dtype=np.float64),
            sites=tuple((site, label) for site, label in values["sites"]),
            preconditioner=values["preconditioner"],
        )


def _fault(values: dict[str, Any]) -> str | None:
    """Return what does not go together in a question, or None."""
    columns, targets = values["columns"], values["targets"]
    width = len(columns) + len(targets)
    if not columns or not targets or set(columns) & set(targets) or INTERCEPT in (*columns[1:], *targets):
        return "its columns and targets are no regression"
    if len(values["centre"]) != width or len(values["unit"]) != width:
        return "'centre' and 'unit' have not one number per column"
    if any(not unit > 0 or math.frexp(unit)[0] != 0.5 for unit in values["unit"]):
        return "'unit' has a number that is no power of two"
    if any(values["centre"]) and (columns[0] != INTERCEPT or values["centre"][0] != 0):
        return "'centre' takes something off without a column of ones, or off the ones"
    if np.shape(values["coefficients"]) != (len(columns), len(targets)):
        return "'coefficients' have not one row per column and one number per target in it"
    if not values["sites"]:
        return "it asks nobody"
    return None


def _is_pairs(value: Any) -> bool:
    distinct = isinstance(value, list) and len({str(pair) for pair in value}) == len(value)
    return distinct and all(isinstance(pair, list) and len(pair) == 2 and all(map(is_name, pair)) for pair in value)


def _is_levels(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and is_name(pair[0]) and is_names(pair[1]) for pair in value
    )


_RULES: dict[str, round_file.Rule] = {
    "round": is_count(1),
    "columns": is_names,
    "targets": is_names,
    "levels": _is_levels,
    "drop_first": is_flag,
    "weighted": is_flag,
    "centre": is_numbers,
    "unit": is_numbers,
    "coefficients": is_table,
    "sites": _is_pairs,
    "preconditioner": is_digest,
}
