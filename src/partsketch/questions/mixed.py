"""`Summaries.mixed`: coefficients that vary from partition to partition, by REML or ML from the factors alone.

Features are made orthonormal and the target is replaced by its residuals before anything else (`clusters.Scores`), with
twice the digits where that is needed, and the random columns get Σ ZᵀZ = k I. So neither place, nor unit, nor near
dependence of columns changes how the search goes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.linalg.blas import one_thread_each
from partsketch.common.linalg.solution import Solution
from partsketch.common.linalg.solve import solve_least_squares
from partsketch.model.held import held_covariance, lengths, no_covariance
from partsketch.questions.choice import Names, as_names, expanded, require_distinct
from partsketch.questions.clusters import scores_of
from partsketch.questions.fit import Question, ask, solved
from partsketch.questions.mixed_likelihood import Likelihood, make_likelihood, triangles
from partsketch.questions.mixed_model import MixedModel
from partsketch.questions.mixed_search import Found, search
from partsketch.summaries.tasks import INTERCEPT

if TYPE_CHECKING:
    from partsketch.questions.summaries import Summaries

FloatArray = NDArray[np.float64]

#: Residuals below this part of the target's spread are rounding: a partition's own fit explains everything.
_NOTHING_LEFT = 1e-12
_FEWEST = 3


@dataclass(frozen=True, eq=False)
class _Random:
    """The random columns, and how they are written.

    Attributes
    ----------
    names
        The intercept first, if it varies.
    rows
        Their factors in coordinates of Σ ZᵀZ = k I, shape (k, rows, q).
    back
        A with b = A b' for the effects of the columns as they are, shape (q, q).
    """

    names: tuple[str, ...]
    rows: FloatArray
    back: FloatArray


def mixed(
    summaries: Summaries,
    target: str,
    features: Names | None,
    random: Names,
    random_intercept: bool,
    method: str,
) -> MixedModel:
    """Return the model with random effects of the partitions."""
    if method not in ("REML", "ML"):
        raise InputError(f"method is {method!r}: choose 'REML' or 'ML'.")
    question = ask(summaries, target, features, "common", 0.0)
    if question.intercept is False:
        raise InputError("A model with random effects has a common intercept: leave '+ 0' out of the formula.")
    if len(question.regression.targets) != 1:
        raise InputError("A model with random effects is of one target: ask for each alone.")
    names = _random_names(summaries, question, random, random_intercept)
    _check_counts(question, names)
    with one_thread_each():
        solution = solved(question)
        _check_rank(question, solution)
        _check_within(summaries, question, names)
        random_part = _random_columns(question, names)
        scores = scores_of(question, solution, 0)
        rows = int(question.panel.row_counts.sum())
        likelihood = make_likelihood(random_part.rows, scores.basis, scores.residuals, rows, method == "REML")
        _check_residuals(question, likelihood, float(np.sqrt(solution.total_sums[0])))  # type: ignore[index]
        found = search(likelihood)
        errors = _effect_errors(likelihood, found, random_part)
    return _model(summaries, question, solution, scores.inverse, random_part, found, errors)


def _random_names(summaries: Summaries, question: Question, random: Names, random_intercept: bool) -> tuple[str, ...]:
    given = as_names(random)
    if not isinstance(random_intercept, bool):
        raise InputError(f"random_intercept is {random_intercept!r}: give True or False.")
    features = question.regression.features
    if "intercept" in given and "intercept" not in features:
        if not random_intercept:
            raise InputError("random names the intercept, and random_intercept is False: leave one of them out.")
        given = tuple(name for name in given if name != "intercept")
    slopes = tuple(expanded(given, summaries.about.encoding))
    require_distinct(slopes)
    for name in slopes:
        if name not in features or name == INTERCEPT:
            raise InputError(
                f"Random column {name!r} is not among the features: add it to them, so that it has a mean over "
                "partitions too."
            )
    if not slopes and not random_intercept:
        raise InputError("Nothing varies between partitions: name random columns, or ask for fit.")
    return ((INTERCEPT,) if random_intercept else ()) + slopes


def _check_counts(question: Question, names: tuple[str, ...]) -> None:
    count, size = question.panel.count, len(names)
    least = max(_FEWEST, size + 1)
    if count < least:
        raise InputError(
            f"{size} random column{'s' * (size > 1)} need at least {least} partitions, and there are {count}: how much "
            "coefficients vary cannot be told from fewer; ask for fit with intercept='partition'."
        )
    rows = int(question.panel.row_counts.sum())
    if rows <= count * size:
        raise InputError(
            f"{rows:,} rows in {count:,} partitions leave nothing to tell {size} random column{'s' * (size > 1)} from "
            "noise: name fewer, or make fewer partitions."
        )


def _check_rank(question: Question, solution: Solution) -> None:
    if solution.rank < len(question.regression.features):
        raise InputError(
            f"The features are dependent ({solution.aliased[0].column!r} adds nothing to those before it): leave "
            "it out."
        )


def _check_within(summaries: Summaries, question: Question, names: tuple[str, ...]) -> None:
    """Refuse random columns that do not vary within partitions, or not apart from one another."""
    slopes = tuple(name for name in names if name != INTERCEPT)
    if INTERCEPT not in names or not slopes:
        return
    panel = summaries.panel("partition")
    chosen = panel.places((*slopes, *question.regression.targets))
    within = solve_least_squares(panel.total.high[:, chosen], slopes, low=panel.total.low[:, chosen])
    if within.rank < len(slopes):
        alias = within.aliased[0]
        if alias.others:
            why = f"is determined by {alias.others[0]!r} within every partition"
        else:
            why = "is constant within every partition"
        raise InputError(f"Random column {alias.column!r} {why}: its slope cannot vary; take it out of random.")


def _random_columns(question: Question, names: tuple[str, ...]) -> _Random:
    panel = question.panel
    chosen = panel.places(names)
    rows = panel.high[:, :, chosen]
    back = panel.coordinates(names, question.regression.targets).transformation(0)
    if INTERCEPT not in names:
        # Slopes alone: effects are zero where the column is, not where its centre is.
        away = panel.centre[chosen] / panel.unit[chosen]
        rows = rows + panel.high[:, :, panel.places([INTERCEPT])] * away
    factor = triangles(rows.reshape(-1, len(names)) / np.sqrt(panel.count))
    inverse = np.linalg.inv(factor)
    return _Random(names, rows @ inverse, back @ inverse)


def _check_residuals(question: Question, likelihood: Likelihood, spread: float) -> None:
    """Refuse rows in which fits of the partitions leave no noise: the likelihood has no maximum."""
    size = likelihood.size
    columns = np.abs(np.linalg.svd(likelihood.upper[:, :, :size], compute_uv=False))
    used = int((columns > _NOTHING_LEFT * np.sqrt(size)).sum())
    inner = np.linalg.svd(likelihood.lower[:, :-1], compute_uv=False)
    used += int((inner > _NOTHING_LEFT).sum())
    left = abs(float(likelihood.lower[-1, -1])) if len(likelihood.lower) == likelihood.lower.shape[1] else 0.0
    if likelihood.row_count <= used or left <= _NOTHING_LEFT * spread:
        raise InputError(
            f"Fits of the partitions leave nothing of {question.regression.targets[0]!r} that could be noise: there is "
            "no variance to compare theirs with; name fewer random columns."
        )


def _model(
    summaries: Summaries,
    question: Question,
    solution: Solution,
    inverse: FloatArray,
    random: _Random,
    found: Found,
    errors: FloatArray,
) -> MixedModel:
    coordinates = question.regression.coordinates
    assert coordinates is not None
    profile, target_unit = found.profile, float(coordinates.unit[-1])
    standard = solution.coefficients[:, 0] + inverse @ profile.coefficients
    root = coordinates.transformation(0) @ inverse @ profile.inverse
    with np.errstate(over="ignore", invalid="ignore"):
        covariance = held_covariance(profile.variance * root @ root.T, lengths(root.T))
    if covariance is None:
        raise no_covariance(len(root))
    effects = profile.scores @ profile.root @ profile.root.T @ random.back.T
    weighted = any(summary.about.weighted for summary in summaries.factors)
    # The likelihood of the columns as they are: those of the search have other units.
    deviance = profile.deviance + 2 * profile.freedom * np.log(target_unit)
    if profile.is_restricted:
        deviance += 2 * (np.log(coordinates.unit[:-1]).sum() - np.linalg.slogdet(inverse)[1])
    spread = random.back @ profile.root
    return MixedModel(
        target=question.regression.targets[0],
        column_names=question.regression.features,
        coefficients=coordinates.coefficients(standard[:, None])[:, 0],
        covariance=covariance,
        degrees_of_freedom=_freedom(found, coordinates.transformation(0) @ inverse),
        random_names=random.names,
        random_covariance=profile.variance * spread @ spread.T,
        residual_variance=profile.variance * target_unit**2,
        site_names=summaries.names,
        site_rows=summaries.row_counts,
        site_effects=effects,
        site_errors=errors,
        log_likelihood=None if weighted else -0.5 * float(deviance),
        method="REML" if profile.is_restricted else "ML",
        rank=found.rank,
        warnings=_warnings(summaries, found, weighted),
    )


def _freedom(found: Found, back: FloatArray) -> FloatArray:
    """Return Satterthwaite's degrees of freedom of each coefficient: those of a chi-squared of the same variation."""
    profile = found.profile
    values, vectors = np.linalg.eigh(found.curvature)
    kept = values > 1e-9 * values.max()
    # Twice the inverse of the curvature of minus twice the log-likelihood.
    spread = vectors[:, kept] * np.sqrt(2.0 / values[kept])
    places = np.tril_indices(len(profile.root))
    freedom = np.empty(len(back))
    # They depend on no unit, and squares of squares of variances would not fit into doubles in every one.
    sizes = np.abs(back).max(axis=1, keepdims=True)
    for number, row in enumerate(back / np.where(sizes > 0, sizes, 1.0)):
        direction = profile.inverse @ (profile.inverse.T @ row)
        variance = float(row @ direction)
        through = profile.products @ direction
        slope = 2 * np.einsum("ki,kj->ij", through, through) @ profile.root
        gradient = np.append(slope[places], variance)
        freedom[number] = 2 * variance**2 / float(np.sum((gradient @ spread) ** 2))
    return freedom


def _effect_errors(likelihood: Likelihood, found: Found, random: _Random) -> FloatArray:
    """Return standard errors of the effects of the partitions, all else taken for known."""
    root, size = found.profile.root, likelihood.size
    # Var(b | y) = σ² Λ (I + ΛᵀZᵀZΛ)⁻¹ Λᵀ; the factor of what is inverted is that of ZΛ above the identity.
    identity = np.broadcast_to(np.eye(size), (len(likelihood.upper), size, size))
    stacked = np.concatenate([likelihood.upper[:, :, :size] @ root, identity], axis=1)
    factors = triangles(stacked)
    out = np.linalg.solve(np.swapaxes(factors, 1, 2), np.broadcast_to((random.back @ root).T, identity.shape))
    return np.asarray(np.sqrt(found.profile.variance * np.einsum("kia,kia->ka", out, out)))


def _warnings(summaries: Summaries, found: Found, weighted: bool) -> tuple[str, ...]:
    sentences = list(summaries.split_sentences)
    size, count = len(found.profile.root), len(summaries)
    if found.rank < size:
        if found.rank == 0:
            what = "The random effects have variance zero: partitions differ no more than noise makes them"
        else:
            what = f"The covariance of the random effects has rank {found.rank} of {size}: it lies on the boundary"
        sentences.append(
            f"{what}. Standard errors take that for true; with {count} partitions it may be chance: compare with "
            "vcov='CRV3' or meta_analysis."
        )
    if weighted:
        sentences.append(
            "Rows have weights, taken for inverse noise variances: the log-likelihood lacks a constant that the "
            "summaries do not tell, and is not given."
        )
    return tuple(sentences)
