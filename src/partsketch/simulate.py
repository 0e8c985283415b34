"""Draws of estimators without the rows: the public name of `partsketch.theory.simulate`."""

from partsketch.theory.simulate import (
    METHODS,
    bartlett_factors,
    draw_coefficients,
    draw_excess_losses,
    draw_sketches,
    partition_factors,
)

__all__ = [
    "METHODS",
    "bartlett_factors",
    "draw_coefficients",
    "draw_excess_losses",
    "draw_sketches",
    "partition_factors",
]
