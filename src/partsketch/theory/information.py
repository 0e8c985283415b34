"""How much a Gaussian sketch can tell about the rows, in the sense of information theory."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from partsketch.common.errors import InputError
from partsketch.common.linalg.solve import RANK_TOLERANCE, sketch_rounding
from partsketch.common.special import digamma
from partsketch.theory.arguments import require_count

#: log(2πe): twice the entropy, in nats, of a normal variable of variance one.
LOG_TWO_PI_E = math.log(2 * math.pi * math.e)


@dataclass(frozen=True)
class InformationBound:
    """A bound on the mutual information between a Gaussian sketch and the rows.

    Attributes
    ----------
    bits_per_entry
        Bound, divided by the number of entries of the data.
    total_bits
        Bound on the information about all entries together.
    dependence
        −log det of the columns' second moments, each scaled to one, per column, in nats: 0 for orthogonal columns,
        large for nearly dependent ones. Estimated without bias from the sketch; NaN when it has fewer rows than
        columns.
    covered_by_paper
        Whether `(m/2n) log(2πeγ²)` holds as it stands, in units in which γ = 1; otherwise the bound is a larger one.
    """

    bits_per_entry: float
    total_bits: float
    dependence: float
    covered_by_paper: bool


def sketch_information_bound(sketch: ArrayLike, row_count: int, known_columns: int = 0) -> InformationBound:
    """Bound the mutual information I(SA; A) for a Gaussian S that stays secret.

    Given A, the m rows of SA are independent normal vectors with covariance AᵀA/m, so

        I(SA; A) = h(SA) − h(SA | A) ≤ (m/2) (Σ_j log(n γ_j²) − E log det AᵀA)

    when entries of column j have mean squares of at most γ_j²: a normal law has the largest entropy of all with the
    same second moments, and independent entries have more than dependent ones. Whenever the bracket is at most
    q log(2πe), q the number of columns, this is the bound `(m/2n) log(2πeγ²)` per entry (Zhou, Lafferty and Wasserman;
    Bartan and Pilanci) in units in which γ = 1. The bracket is estimated from the sketch; where it is larger, it is
    used instead.

    Parameters
    ----------
    sketch : array of shape (m, q)
        SA.
    row_count : int
        Rows n of A.
    known_columns : int
        Leading columns that are no secret (a column of ones): they do not count as entries.

    Returns
    -------
    InformationBound
        In bits; valid for secret Gaussian S and rows drawn from a law with these second moments.
    """
    matrix = np.asarray(sketch, dtype=np.float64)
    require_count("row_count", row_count)
    if matrix.ndim != 2 or matrix.shape[0] < 1 or matrix.shape[1] <= known_columns:
        raise InputError(f"a sketch has shape {matrix.shape}: pass a matrix with columns besides the known ones.")
    size, entries = matrix.shape[0], row_count * (matrix.shape[1] - known_columns)
    norms = np.linalg.norm(matrix, axis=0)
    scaled = matrix[:, norms > 0] / norms[norms > 0]
    if scaled.shape[1] == 0:
        return InformationBound(0.0, 0.0, 0.0, True)
    columns, dependence = scaled.shape[1], math.nan
    if size >= columns:
        from scipy.linalg import qr

        diagonal = np.abs(np.diagonal(qr(scaled, mode="r", pivoting=True)[0]))
        # Columns that follow from others add nothing to what the others tell.
        columns = int(np.sum(diagonal > RANK_TOLERANCE + sketch_rounding(row_count)))
        # E log det of a Wishart matrix and E log of a chi-square variable: what the sketch adds to both by chance.
        chance = float(np.sum(digamma((size - np.arange(columns)) / 2)) - columns * digamma(size / 2))
        dependence = (-2.0 * float(np.sum(np.log(diagonal[:columns]))) + chance) / columns
    covered = not dependence > LOG_TWO_PI_E
    per_column = LOG_TWO_PI_E if covered else dependence
    total = size * columns * per_column / 2 / math.log(2)
    return InformationBound(total / entries, total, dependence, covered)
