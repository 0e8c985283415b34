"""Standard errors when partitions are clusters: CRV1 and CRV3, from the factors of the partitions.

Everything happens in coordinates γ = T β in which the Gram matrix of all rows is the identity (T is its factor), so
that nothing is lost by columns that are nearly dependent: W_g = R_g T⁻¹, residuals r_g = R_g,y − R_g,x β, scores
W_gᵀ r_g. Where T is badly conditioned W and r are made with twice the digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from partsketch.common.changed import changed
from partsketch.common.errors import InputError
from partsketch.common.linalg.blas import triangular_factor
from partsketch.common.linalg.double_double import DoubleDouble, factor_gram
from partsketch.common.linalg.double_double_product import product
from partsketch.common.linalg.solution import Solution
from partsketch.model.held import lengths, level_held, product_held, root_kept
from partsketch.model.inference import Inference
from partsketch.model.unseen import unseen_noise, without_noise
from partsketch.questions.wild import Bootstrap, wild_bootstrap

if TYPE_CHECKING:
    from partsketch.questions.fit import Question

FloatArray = NDArray[np.float64]

#: Above this condition number doubles would lose more than three digits.
_SAFE_CONDITION = 1e3

#: A partition with a larger share of some direction than this is taken out by stacking the others, not by subtracting.
_LARGE_SHARE = 0.9

#: What the others leave of a direction, below which they do not determine it.
_NOTHING = 1e-10


@dataclass(frozen=True, eq=False)
class Scores:
    """What the partitions contribute to a fit, in coordinates in which the Gram matrix is the identity.

    Attributes
    ----------
    basis
        W, shape (k, rows, rank); the sum of WᵀW over partitions is the identity.
    residuals
        r, shape (k, rows), of one target.
    inverse
        B with β = B γ, shape (columns, rank).
    """

    basis: FloatArray
    residuals: FloatArray
    inverse: FloatArray

    @property
    def values(self) -> FloatArray:
        """Scores Wᵀr, shape (k, rank)."""
        return np.asarray(np.einsum("gij,gi->gj", self.basis, self.residuals))


def scores_of(question: Question, solution: Solution, number: int) -> Scores:
    """Return what the partitions contribute to the fit of target `number`."""
    panel, regression = question.panel, question.regression
    columns, target = panel.places(regression.features), panel.places(regression.targets)[number]
    full = solution.rank == len(columns)
    if full and solution.condition > _SAFE_CONDITION:
        return _precise_scores(question, columns, target)
    rows = panel.high[:, :, columns]
    residuals = panel.high[:, :, target] - rows @ solution.coefficients[:, number]
    if panel.low is not None:
        residuals += panel.low[:, :, target] - panel.low[:, :, columns] @ solution.coefficients[:, number]
    return Scores(rows @ solution.inverse_root, residuals, solution.inverse_root)


def score_values(question: Question, solution: Solution, number: int) -> tuple[FloatArray, FloatArray]:
    """Return the values of the scores, shape (k, rank), and B: all that the simplest covariance needs of them."""
    panel, regression = question.panel, question.regression
    columns, target = panel.places(regression.features), panel.places(regression.targets)[number]
    is_precise = solution.rank == len(columns) and solution.condition > _SAFE_CONDITION
    if is_precise or panel.low is not None:
        scores = scores_of(question, solution, number)
        return scores.values, scores.inverse
    rows = panel.by_column[columns]
    explained = solution.coefficients[:, number] @ rows.reshape(len(columns), -1)
    residuals = panel.by_column[target] - explained.reshape(rows.shape[1:])
    return np.einsum("cgr,gr->cg", rows, residuals).T @ solution.inverse_root, solution.inverse_root


def _precise_scores(question: Question, columns: list[int], target: int) -> Scores:
    panel = question.panel
    total = DoubleDouble(panel.total.high[:, [*columns, target]], panel.total.low[:, [*columns, target]])
    factor = factor_gram(total.gram(), len(columns))
    width = len(columns)
    inverse = factor.solve(DoubleDouble.of(np.eye(width)))
    coefficients = factor.solve(
        DoubleDouble(factor.rows.high[:width, width:].copy(), factor.rows.low[:width, width:].copy())
    )
    shape = panel.high.shape
    flat = DoubleDouble.of(
        panel.high[:, :, [*columns, target]].reshape(-1, width + 1),
        None if panel.low is None else panel.low[:, :, [*columns, target]].reshape(-1, width + 1),
    )
    features = DoubleDouble(flat.high[:, :width], flat.low[:, :width])
    basis = product(features, inverse).high.reshape(shape[0], shape[1], width)
    explained = product(features, coefficients)
    residuals = DoubleDouble(flat.high[:, width:], flat.low[:, width:]).plus(-explained.high).plus(-explained.low)
    return Scores(basis, residuals.high.reshape(shape[:2]), inverse.high)


def crv1_scale(question: Question, rank: int) -> float:
    """Return g/(g − 1) · (n − 1)/(n − d); intercepts of partitions are nested in the clusters and count as one."""
    rows, count = question.panel.row_count, question.panel.count
    rank += int(question.panel.absorbed > 0)
    if rows <= rank:
        raise InputError(f"{rows} rows leave no degrees of freedom after rank {rank}.")
    return count / (count - 1) * (rows - 1) / (rows - rank)


def crv3_deviations(scores: Scores, names: Sequence[str]) -> FloatArray:
    """Return γ without each partition, less γ: shape (k, rank)."""
    products = np.einsum("gij,gil->gjl", scores.basis, scores.basis)
    rank = products.shape[1]
    shares = np.linalg.eigvalsh(products)[:, -1] if rank else np.zeros(len(products))
    large = np.flatnonzero(shares > _LARGE_SHARE)
    products[large] = 0.0
    deviations = -np.linalg.solve(np.eye(rank) - products, scores.values[..., None])[..., 0]
    for partition in large.tolist():
        others = np.delete(scores.basis, partition, axis=0).reshape(-1, rank)
        factor = triangular_factor(others)
        if np.linalg.svd(factor, compute_uv=False)[-1] < _NOTHING:
            raise InputError(
                f"Without partition {names[partition]!r} the other partitions do not determine all coefficients, and "
                "vcov='CRV3' leaves out each in turn: ask for 'CRV1', or leave columns out."
            )
        # (Wᵀ W of the others) δ = −(score of this one), and the scores of all add up to nothing.
        inner = np.linalg.solve(factor.T, scores.values[partition])
        deviations[partition] = -np.linalg.solve(factor, inner)
    return deviations


def clustered(
    question: Question,
    solution: Solution,
    inference: Inference,
    number: int,
    vcov: str,
    bootstrap: Bootstrap,
    names: Sequence[str],
) -> tuple[Inference, list[str]]:
    """Return the inference of a fit with partitions as clusters, and what is to be said of it."""
    count = question.panel.count
    noiseless = without_noise(inference, vcov, float(count - 1))
    if noiseless is not None and vcov == "wild":
        raise InputError("The fit leaves no residuals, and has no wild bootstrap: ask for vcov='CRV1'.")
    if noiseless is not None:
        return noiseless, []
    scale = crv1_scale(question, solution.rank)
    scores = None if vcov == "CRV1" else scores_of(question, solution, number)
    values, inverse = score_values(question, solution, number) if scores is None else (scores.values, scores.inverse)
    if vcov == "CRV3":
        assert scores is not None
        spread = np.sqrt((count - 1) / count) * crv3_deviations(scores, names)
    else:
        spread = np.sqrt(scale) * values
    coordinates = question.regression.coordinates
    assert coordinates is not None
    # Rows of B Σ in γ give those of β; the transformation gives the columns as they are.
    transformation = coordinates.transformation(number) @ inverse
    told: list[str] = []
    if vcov != "CRV3":
        noise = float(solution.residual_sums[number]) / question.panel.row_count
        told = unseen_noise(vcov, spread, transformation, question.regression.features, count - 1, noise)
    with np.errstate(over="ignore", invalid="ignore"):
        root = spread @ transformation.T
        squares = np.einsum("ij,ij->j", root, root)
    if not np.isfinite(squares).all():
        target = question.regression.targets[number]
        raise InputError(
            f"Variances by {vcov} of a fit to {target!r} are larger than the largest double: divide it by a constant."
        )
    around_centre = spread @ (coordinates.scaling(number) @ inverse).T
    found = changed(
        inference,
        standard_errors=lengths(root),
        degrees_of_freedom=float(count - 1),
        covariance=product_held(root),
        level_covariance=level_held(around_centre) if coordinates.free else None,
        covariance_root=root_kept(around_centre, coordinates, solution.condition),
        reason="",
        vcov=vcov,
    )
    if vcov != "wild" or scores is None:
        return found, told
    coefficients = coordinates.coefficients(solution.coefficients)[:, number]
    named = question.regression.features
    drawn = wild_bootstrap(scores.basis, scores.values, transformation, coefficients, scale, named, bootstrap)
    return changed(found, wild=drawn), [*told, *bootstrap.too_coarse(count)]
