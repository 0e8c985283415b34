"""The best covariance of random effects: searched from many beginnings, ended by Newton's method, and checked.

The entries of Λ are free, also below zero: the deviance depends on ΛΛᵀ alone, so a variance of zero is an ordinary
smooth minimum in Λ, and nothing stops before it. Whether it is a minimum among covariances is seen by the derivative G
by ΛΛᵀ: no eigenvalue below zero, and G Λ = 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.questions.mixed_likelihood import Likelihood, Profile, triangles

FloatArray = NDArray[np.float64]

#: Beginnings: standard deviations of random effects in units of the error of an average partition's own coefficient.
_BEGINNINGS = np.concatenate([[0.1], np.logspace(-0.5, 7, 16)])
#: A standard deviation below this part of that error is zero: the deviance differs by less than its square.
_ZERO = 1e-4
#: Deviance that a Newton step may still promise at the end: the parameters are then within 1e-5 of their errors.
_PROMISED = 1e-10
_STEPS, _RESTARTS = 40, 5


@dataclass(frozen=True, eq=False)
class Found:
    """The minimum.

    Attributes
    ----------
    profile
        There.
    curvature
        Second derivatives of the deviance by the entries of Λ and log σ², in the order of `np.tril_indices`.
    rank
        Of ΛΛᵀ; less than its size at the boundary.
    """

    profile: Profile
    curvature: FloatArray
    rank: int


def search(likelihood: Likelihood) -> Found:
    """Return the minimum of the deviance over all covariances."""
    root = _beginning(likelihood)
    for _ in range(_RESTARTS):
        root = _newton(likelihood, _descended(likelihood, root))
        profile, rank = _without_nothing(likelihood, root)
        uphill = _way_out(profile, rank)
        if uphill is None and _promise(likelihood, profile)[1] < _PROMISED:
            return Found(profile, _curvature(likelihood, profile), rank)
        if uphill is not None:
            root = triangles(np.column_stack([profile.root, uphill]).T).T
    raise InputError(
        "The search for the covariance of the random effects did not settle: name fewer random columns, or use "
        "meta_analysis."
    )


def _beginning(likelihood: Likelihood) -> FloatArray:
    """Return a diagonal Λ near a minimum: all alike first, then one after the other."""
    size = likelihood.size
    values = np.full(size, min(_BEGINNINGS, key=lambda value: likelihood(value * np.eye(size)).deviance))
    for place in range(size if size > 1 else 0):
        tried = []
        for value in _BEGINNINGS:
            other = values.copy()
            other[place] = value
            tried.append((likelihood(np.diag(other)).deviance, float(value)))
        values[place] = min(tried)[1]
    return np.diag(values)


def _descended(likelihood: Likelihood, root: FloatArray) -> FloatArray:
    """Return Λ after a descent by quasi-Newton steps, in units of its rows at the beginning."""
    from scipy.optimize import minimize

    places = np.tril_indices(likelihood.size)
    scale = np.maximum(np.linalg.norm(root, axis=1), 0.1)[places[0]]

    def value(entries: FloatArray) -> tuple[float, FloatArray]:
        profile = likelihood(_lower(entries * scale, places))
        return profile.deviance, (2 * profile.slope @ profile.root)[places] * scale

    found = minimize(value, root[places] / scale, jac=True, method="BFGS", options={"gtol": 1e-6, "maxiter": 500})
    return _lower(found.x * scale, places)


def _newton(likelihood: Likelihood, root: FloatArray) -> FloatArray:
    """Return Λ after Newton steps, as long as they promise anything; a step that leads uphill is halved."""
    places = np.tril_indices(likelihood.size)
    profile = likelihood(root)
    for _ in range(_STEPS):
        step, promised = _promise(likelihood, profile)
        for halving in range(30):
            tried = likelihood(_lower(profile.root[places] + step / 2**halving, places))
            # The deviance is a sum of terms as large as itself.
            if tried.deviance <= profile.deviance + 1e-13 * abs(profile.deviance):
                break
        else:
            break
        profile = tried
        if promised < 1e-4 * _PROMISED:
            break
    return profile.root


def _promise(likelihood: Likelihood, profile: Profile) -> tuple[FloatArray, float]:
    """Return the Newton step from here, and twice the deviance that it promises to gain."""
    gradient = (2 * profile.slope @ profile.root)[np.tril_indices(likelihood.size)]
    values, vectors = np.linalg.eigh(_profiled_curvature(likelihood, profile))
    along = vectors.T @ gradient
    # Directions in which nothing bends are rotations of Λ that leave ΛΛᵀ as it is.
    bends = np.abs(values) > 1e-9 * max(float(np.abs(values).max()), 1e-300)
    step = -vectors[:, bends] @ (along[bends] / np.abs(values[bends]))
    return np.asarray(step), -float(gradient @ step)


def _profiled_curvature(likelihood: Likelihood, profile: Profile) -> FloatArray:
    """Return the second derivatives of the deviance by the entries of Λ, σ at its best, by differences of gradients."""
    return _differences(likelihood, profile, lambda there: 2 * there.slope @ there.root)


def _curvature(likelihood: Likelihood, profile: Profile) -> FloatArray:
    """Return the second derivatives of the deviance by the entries of Λ and log σ²."""
    variance = profile.variance
    inner = _differences(
        likelihood, profile, lambda there: 2 * (there.determinant_slope + there.residual_slope / variance) @ there.root
    )
    across = -(2 * profile.residual_slope @ profile.root)[np.tril_indices(likelihood.size)] / variance
    return np.block([[inner, across[:, None]], [across[None], np.array([[float(profile.freedom)]])]])


def _differences(likelihood: Likelihood, profile: Profile, gradient: Callable[[Profile], FloatArray]) -> FloatArray:
    """Return the derivatives of a gradient by the entries of Λ."""
    places = np.tril_indices(likelihood.size)
    entries = profile.root[places]
    matrix = np.empty((len(entries), len(entries)))
    steps = 1e-4 * np.maximum(np.linalg.norm(profile.root, axis=1), 0.1)[places[0]]
    for column, step in enumerate(steps):
        ends = []
        for sign in (1.0, -1.0):
            moved = entries.copy()
            moved[column] += sign * step
            ends.append(gradient(likelihood(_lower(moved, places)))[places])
        matrix[:, column] = (ends[0] - ends[1]) / (2 * step)
    return np.asarray((matrix + matrix.T) / 2)


def _without_nothing(likelihood: Likelihood, root: FloatArray) -> tuple[Profile, int]:
    """Return the profile with directions of no variance exactly at zero, and how many others there are."""
    left, sizes, _ = np.linalg.svd(root)
    rank = int((sizes > _ZERO).sum())
    kept = left[:, :rank] * sizes[:rank]
    square = np.zeros_like(root)
    if rank:
        square[:, :rank] = triangles(kept.T).T
        square *= np.where(np.diagonal(square) < 0, -1.0, 1.0)
    return likelihood(square), rank


def _way_out(profile: Profile, rank: int) -> FloatArray | None:
    """Return a direction without variance in which some would lower the deviance, None where there is none."""
    empty = np.linalg.svd(profile.root)[0][:, rank:]
    if not empty.size:
        return None
    values, vectors = np.linalg.eigh(empty.T @ profile.slope @ empty)
    # In these coordinates G of k partitions without random effects has eigenvalues of about k.
    return empty @ vectors[:, 0] if values[0] < -1e-6 * len(profile.scaled) else None


def _lower(entries: FloatArray, places: tuple[NDArray[np.intp], NDArray[np.intp]]) -> FloatArray:
    size = int(places[0][-1]) + 1
    root = np.zeros((size, size))
    root[places] = entries
    return root
