"""Coefficients of whose noise robust errors see nothing: rows that fit exactly, or one cluster, determine them alone.

Robust errors learn of the noise by residuals. A row that alone determines a coefficient has none, and the scores of a
cluster that alone determines one add up to nothing: the noise is there, and the errors are too small all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from partsketch.model.inference import Inference
from partsketch.model.sentences import listed

FloatArray = NDArray[np.float64]

_ROUNDING = 2.0**-52
#: A direction in which the scores have a smaller part than this of their largest squares has none: rounding leaves
#: 1e-16 for each column, and noise that differs by a million between rows or clusters leaves 1e-12.
_NOTHING = 1e-13
#: What errors do not see of a coefficient's variance, were the noise even: a tenth makes them a twentieth too small.
_FELT = 0.1


def unseen_noise(
    kind: str,
    spread: FloatArray,
    directions: FloatArray,
    names: Sequence[str],
    most: int,
    noise: float,
    loss_of_digits: float = 1.0,
) -> list[str]:
    """Say of which coefficients errors see no noise.

    Parameters
    ----------
    kind
        Of the errors.
    spread
        Lines whose squares add up to the covariance of γ, coordinates in which the Gram matrix is the identity.
    directions
        B with β = B γ, a line for each of `names`.
    most
        Directions that scores have at most: fewer than the rank where there are few clusters.
    noise
        Variance of the residuals in the same unit: what each direction would have, were the noise even.
    loss_of_digits
        By how much the rounding of the squares was multiplied before they got here.
    """
    nothing = max(_NOTHING, _ROUNDING * loss_of_digits)
    products = spread.T @ spread
    if _is_positive(products, 2 * nothing * max(float(np.trace(products)), noise)):
        return []
    squares, vectors = np.linalg.eigh(products)
    # Where one cluster determines each coefficient nothing but rounding is left at all.
    largest = squares.max(initial=noise)
    unseen = vectors[:, squares <= nothing * largest]
    rank = len(squares)
    if rank - unseen.shape[1] >= min(rank, most):
        return []
    # Only shares count: columns may be in any unit, and one that adds nothing has no direction.
    lengths = np.abs(directions).max(axis=1, keepdims=True)
    directions = np.divide(directions, lengths, out=np.zeros_like(directions), where=lengths > 0)
    whole = np.einsum("ij,ij->i", directions, directions)
    hidden = np.einsum("ij,ij->i", directions @ unseen, directions @ unseen)
    # Of fewer clusters than columns some directions are empty by their number; the others stand out.
    felt = hidden > (_FELT if most >= rank else 0.5) * whole
    found = [name for name, is_felt in zip(names, felt.tolist(), strict=True) if is_felt]
    if not found:
        return []
    alone, have = ("rows that fit exactly", "such rows have")
    if not kind.startswith("HC"):
        alone, have = "the rows of one cluster", "one cluster has"
    several = "s" * (len(found) > 1)
    # The bootstrap draws with the same scores, and mostly finds nothing significant where one cluster decides.
    so = "no test or interval of it holds" if kind == "wild" else "intervals are too narrow"
    return [
        f"Errors of {'CRV1' if kind == 'wild' else kind} see no noise in the coefficient{several} of {listed(found)}: "
        f"{alone} alone determine {'them' if several else 'it'}, and {so}. Ask for 'iid', or leave columns out that "
        f"only {have}."
    ]


def _is_positive(products: FloatArray, least: float) -> bool:
    """Tell quickly whether all eigenvalues are above half of `least`: rounding of Cholesky's factor is far below."""
    try:
        np.linalg.cholesky(products - least * np.eye(len(products)))
    except np.linalg.LinAlgError:
        return False
    return bool(np.isfinite(least))


def without_noise(inference: Inference, kind: str, freedom: float) -> Inference | None:
    """Return errors of zero for a fit that leaves nothing but rounding, of which errors must not be made; else None."""
    if inference.noise_variance != 0 or inference.standard_errors is None:
        return None
    return replace(inference, degrees_of_freedom=freedom, vcov=kind)
