"""A summary in units of its columns, of which the triangle is there before the rows are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from partsketch.summaries.summary import Summary

FloatArray = NDArray[np.float64]


class Scaled(Summary):
    """A sketch in units of its columns: the triangle is there, all rows are made when somebody looks at them."""

    @classmethod
    def made(
        cls, summary: Summary, columns: tuple[str, ...], rows: FloatArray, triangle: FloatArray, unit: FloatArray
    ) -> Scaled:
        """Return the summary of these columns, as they are before they are divided by units."""
        new = object.__new__(cls)
        new.__dict__.update(summary.__dict__, columns=columns, centre=np.zeros(len(columns)))
        new.__dict__.update(triangle=triangle / unit, _rows=rows, _unit=unit)
        del new.__dict__["matrix"]
        return new

    @property
    def height(self) -> int:
        """Rows of the matrix."""
        return len(self.__dict__["_rows"])

    def __getattr__(self, name: str) -> FloatArray:
        # Only called for what is not there.
        if name != "matrix":
            raise AttributeError(name)
        self.__dict__["matrix"] = divided(self.__dict__["_rows"], self.__dict__["_unit"])
        return self.matrix


def divided(rows: FloatArray, unit: FloatArray) -> FloatArray:
    """Return rows in units, which nobody can write to: a summary need not copy them."""
    matrix = rows / unit
    matrix.flags.writeable = False
    return matrix
