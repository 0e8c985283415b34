"""How far the sum of squares of sketched ones can be from their number, when a sketch adds rows with random signs.

The rows of a sketch of n ones are z = Bε with independent signs ε. Let X bound the eigenvalues of BBᵀ, whose sum is n.
For λ > 0 and normal numbers g, exp(λ‖Bε‖²) = E exp(√(2λ) gᵀBε) is at most exp(λ‖Bᵀg‖²) on average over the signs, so

    E exp(λQ)  ≤ det(I − 2λBBᵀ)^(−1/2) ≤ (1 − 2λX)^(−n/2X),

for −log(1 − x) is convex, and the sum of the eigenvalues is largest when they are X or nothing. In the same way
E exp(−λQ) = E Π cos(√(2λ) (Bᵀg)ᵢ), and cos t ≤ exp(−t²/2) up to π/2, so that

    E exp(−λQ) ≤ (1 + 2λX)^(−n/2X) + P(some √(2λ) |(Bᵀg)ᵢ| > π/2).

Both are bounds for any n, and those of a chi-square law with n/X degrees of freedom, but for the last term.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class SignSums:
    """What bounds the sum of squares of sketched ones.

    Attributes
    ----------
    share
        X: the most of the ones that one direction of the sketch holds, in rows.
    arguments
        How many different (Bᵀg)ᵢ there are, at most.
    spread
        Their largest standard deviation.
    """

    share: float
    arguments: int
    spread: float


def most_in_one_place(rows: int, chance: float, places: int, risk: float) -> float:
    """Return what the fullest of so many places holds at most, each row coming to each with this chance.

    By Bernstein's inequality: of the files whose fullest place holds more there are `risk`.
    """
    mean, logarithm = rows * chance, math.log(places / risk)
    return min(float(rows), mean + logarithm / 3 + math.sqrt(logarithm**2 / 9 + 2 * mean * logarithm))


def may_be_ones(found: float, rows: int, law: SignSums, impossible: float) -> bool:
    """Tell whether a sum of squares may be that of so many ones: not when its chance is below `impossible`."""
    ratio, freedom = found / rows, rows / law.share
    if ratio >= 1:
        # The best λ is (1 − 1/ratio)/2X.
        return 0.5 * freedom * (math.log(ratio) + 1 - ratio) >= math.log(impossible)
    thetas = [2.0**power for power in range(-4, 12)]
    if ratio > 0:
        thetas.append(1 / ratio - 1)
    return min(_log_chance_below(theta, ratio, freedom, law) for theta in thetas) >= math.log(impossible)


def _log_chance_below(theta: float, ratio: float, freedom: float, law: SignSums) -> float:
    """Return the bound for a sum at or below the one that was found, with λ = θ/2X."""
    chi_square = -0.5 * freedom * math.log1p(theta)
    beyond = math.erfc(math.pi / 2 / (law.spread * math.sqrt(theta / law.share)) / math.sqrt(2))
    tail = math.log(law.arguments * beyond) if beyond > 0 else -math.inf
    return 0.5 * theta * ratio * freedom + max(chi_square, tail) + math.log(2)
