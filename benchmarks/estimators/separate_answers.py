"""What three rounds leave if answers of sites are not added up: `python -m benchmarks.estimators.separate_answers`.

All numbers are for whoever knows the best lengths of steps, as `least` of `theory.forecast_rounds` does: five sites, 21
columns, m = 84.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.problem import FloatArray

SITES, COLUMNS, SIZE, ROUNDS = 5, 21, 84, 3


class Problem:
    """Gram matrices of the sites and of their sketches, and what the stacked fit is off by, if ℓ is one."""

    def __init__(self, grams: Sequence[FloatArray], rng: np.random.Generator) -> None:
        self.grams = list(grams)
        self.gram: FloatArray = np.sum(self.grams, axis=0)
        rows = [rng.normal(size=(SIZE, COLUMNS)) @ np.linalg.cholesky(part).T / np.sqrt(SIZE) for part in grams]
        self.sketched = [part.T @ part for part in rows]
        self.stacked: FloatArray = np.sum(self.sketched, axis=0)
        noise = rng.normal(size=(SITES, SIZE)) / np.sqrt(SIZE * SITES)
        scores = np.sum([part.T @ residuals for part, residuals in zip(rows, noise, strict=True)], axis=0)
        self.error: FloatArray = np.asarray(np.linalg.solve(self.stacked, scores))

    def least(self, directions: FloatArray) -> FloatArray:
        """Return what is left of the error if the best combination of these directions is taken off."""
        root = np.linalg.cholesky(self.gram).T
        return self.error - directions @ np.linalg.lstsq(root @ directions, root @ self.error, rcond=None)[0]

    def loss(self, error: FloatArray) -> float:
        """Return the excess loss."""
        return float(error @ self.gram @ error)


def alike_sites() -> list[FloatArray]:
    """Return Gram matrices of sites that differ in nothing: the limit of many rows."""
    return [np.eye(COLUMNS) / SITES] * SITES


def unlike_sites(rng: np.random.Generator) -> list[FloatArray]:
    """Return Gram matrices whose eigenvalues lie between 0.1 and 10, in directions of their own."""
    turns = [np.linalg.qr(rng.normal(size=(COLUMNS, COLUMNS)))[0] for _ in range(SITES)]
    return [turn * 10 ** rng.uniform(-1, 1, COLUMNS) @ turn.T / SITES for turn in turns]


def learnt(sketched: FloatArray, gram: FloatArray, seen: FloatArray) -> FloatArray:
    """Return the estimate of a Gram matrix from its sketch and its products with some directions."""
    root = np.linalg.cholesky(sketched)
    within, _ = np.linalg.qr(root.T @ seen)
    images = np.linalg.solve(root, np.linalg.solve(root, gram).T) @ within
    # What is not seen is what the sketch says: the identity in these coordinates.
    rest = np.eye(len(gram)) - within @ within.T
    return np.asarray(root @ (images @ np.linalg.solve(within.T @ images, images.T) + rest) @ root.T)


def common_point(problem: Problem, apart: bool) -> float:
    """Return what is left if all sites are asked at one point; `apart` uses the answer of each."""
    directions = np.empty((COLUMNS, 0))
    left = problem.error
    for _ in range(ROUNDS):
        known = problem.stacked
        if apart and directions.size:
            pairs = zip(problem.sketched, problem.grams, strict=True)
            known = np.sum([learnt(sketched, gram, directions) for sketched, gram in pairs], axis=0)
        directions = np.column_stack([directions, np.linalg.solve(known, problem.gram @ left)])
        left = problem.least(directions)
    return problem.loss(left)


def column_by_column(sites: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return what is left with A = I as the preconditioner, and with the means of G⁻¹ if columns come one by one."""
    rows, places = SIZE * sites, np.arange(COLUMNS)
    # Bartlett's factor: the triangle of the sketches is that of G times it.
    factor = np.tril(rng.normal(size=(COLUMNS, COLUMNS)), -1) + np.diag(np.sqrt(rng.chisquare(rows - places)))
    gram = np.linalg.inv(factor.T @ factor / rows)
    error, root = rng.normal(size=COLUMNS) / np.sqrt(rows), np.linalg.cholesky(gram).T
    found = []
    for means in (np.ones(COLUMNS), (rows + COLUMNS - 2 * places - 1) / rows):
        left, directions = error, np.empty((COLUMNS, 0))
        for _ in range(ROUNDS):
            directions = np.column_stack([directions, means * (gram @ left)])
            left = error - directions @ np.linalg.lstsq(root @ directions, root @ error, rcond=None)[0]
        found.append(float(left @ gram @ left))
    return found[0], found[1]


def own_points(problem: Problem, rounds: Sequence[int], rng: np.random.Generator) -> float:
    """Return what is left if in these rounds each of several alike sites is asked at a point of its own.

    The answer of one tells the gradient, and how it changes along the step before, as the sum of all would; the others
    tell products of G with directions that are new.
    """
    asked, steps = np.empty((2, COLUMNS, 0))
    left = problem.error
    for number in range(1, ROUNDS + 1):
        if number in rounds:
            asked = np.column_stack([asked, rng.normal(size=(COLUMNS, SITES - 1))])
        seen = np.column_stack([asked, steps])
        known = learnt(problem.stacked, problem.gram, seen) if seen.size else problem.stacked
        left = problem.least(seen) if seen.size else left
        steps = np.column_stack([steps, np.linalg.solve(known, problem.gram @ left)])
    return problem.loss(problem.least(np.column_stack([asked, steps])))


def main() -> None:
    """Print the medians."""
    rng = np.random.default_rng(0)
    alike = [Problem(alike_sites(), rng) for _ in range(2000)]
    unlike = [Problem(unlike_sites(rng), rng) for _ in range(1000)]
    for name, problems in (("alike", alike), ("unlike", unlike)):
        for apart in (False, True):
            found = [common_point(problem, apart) for problem in problems]
            print(f"{name}, one point, {'each answer' if apart else 'added up'}: {np.median(found):.2e}")
    for sites in (1, SITES):
        same, means = np.median([column_by_column(sites, rng) for _ in range(2000)], axis=0)
        print(f"{sites} alike, A as it is: {same:.2e}; columns one by one: {means:.2e}")
    for rounds in ((2,), (1, 2, 3)):
        found = [own_points(problem, rounds, rng) for problem in alike]
        print(f"alike, points of their own in rounds {rounds}: {np.median(found):.2e}")


if __name__ == "__main__":
    main()
