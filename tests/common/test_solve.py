"""The small solver: against NumPy's, at every rank, and what it says about dependent columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression

from partsketch.common.linalg import solve
from partsketch.common.linalg.basis import exchanged
from partsketch.common.linalg.solution import Solution, condition_of
from partsketch.common.linalg.solve import solve_least_squares, tall_factor
from partsketch.common.linalg.solve_many import solve_factors, tall_factors

FloatArray = NDArray[np.float64]


def names(count: int) -> tuple[str, ...]:
    return tuple(f"c{i}" for i in range(count))


def known_factor(factor: FloatArray) -> Solution | None:
    return solve_factors(factor[None], 1, 0, np.zeros(1))[0]


def low_rank(generator: np.random.Generator, rows: int, width: int, rank: int) -> FloatArray:
    """Whole numbers, so that products are exact and the rank is not a matter of rounding."""
    left = generator.integers(-3, 4, size=(rows, rank)).astype(np.float64)
    right = generator.integers(-3, 4, size=(rank, width)).astype(np.float64)
    return np.asarray(left @ right)


@given(
    rows=st.integers(1, 30),
    width=st.integers(1, 10),
    rank=st.integers(0, 10),
    targets=st.integers(1, 3),
    seed=st.integers(0, 2**32),
)
def test_minimum_norm_solution_of_any_rank(rows: int, width: int, rank: int, targets: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    features = low_rank(generator, rows, width, min(rank, width))
    values = generator.normal(size=(rows, targets))
    solution = solve_least_squares(np.column_stack([features, values]), names(width), targets)
    # Whole numbers up to 3·3·10: singular values that are not zero are far above 1e-9 of the largest.
    expected = np.linalg.pinv(features, rcond=1e-9) @ values
    true_rank = int(np.linalg.matrix_rank(features, tol=1e-9 * max(1.0, float(np.linalg.norm(features)))))
    assert solution.rank == true_rank
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(solution.coefficients, expected, rtol=0, atol=1e-8 * scale)
    residuals = values - features @ expected
    np.testing.assert_allclose(solution.residual_sums, (residuals**2).sum(axis=0), rtol=1e-7, atol=1e-10)
    assert len(solution.aliased) == width - true_rank


@given(seed=st.integers(0, 2**32), rank=st.integers(1, 6))
def test_minimum_norm_leaves_the_intercept_out(seed: int, rank: int) -> None:
    """Ours with a free first column of ones is scikit-learn's, which centres first."""
    generator = np.random.default_rng(seed)
    features = low_rank(generator, 25, 6, rank)
    values = generator.normal(size=25)
    ones = np.ones((25, 1))
    solution = solve_least_squares(np.column_stack([ones, features, values]), names(7), 1, free_columns=1)
    centred = features - features.mean(axis=0)
    expected = np.linalg.pinv(centred, rcond=1e-9) @ (values - values.mean())
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(solution.coefficients[1:, 0], expected, rtol=0, atol=1e-8 * scale)
    intercept = values.mean() - features.mean(axis=0) @ expected
    assert solution.coefficients[0, 0] == pytest.approx(intercept, abs=1e-7 * scale)


@given(seed=st.integers(0, 2**32), rank=st.integers(1, 5), intercept=st.booleans())
def test_inverse_root_is_a_symmetric_generalised_inverse(seed: int, rank: int, intercept: bool) -> None:
    """With W = B Bᵀ: G W G = G, W G W = W, and the coefficients are W Fᵀ t."""
    generator = np.random.default_rng(seed)
    features = low_rank(generator, 30, 5, rank)
    if intercept:
        features = np.column_stack([np.ones(30), features])
    values = generator.normal(size=30)
    solution = solve_least_squares(
        np.column_stack([features, values]), names(features.shape[1]), 1, free_columns=int(intercept)
    )
    gram = features.T @ features
    inverse = solution.inverse_root @ solution.inverse_root.T
    size = max(1.0, float(np.abs(inverse).max()))
    np.testing.assert_allclose(gram @ inverse @ gram, gram, rtol=0, atol=1e-8 * np.abs(gram).max() * size)
    np.testing.assert_allclose(inverse @ gram @ inverse, inverse, rtol=0, atol=1e-7 * size**2)
    np.testing.assert_allclose(solution.coefficients[:, 0], inverse @ features.T @ values, rtol=0, atol=1e-7 * size)


@given(exponents=st.lists(st.integers(-60, 60), min_size=3, max_size=3), seed=st.integers(0, 100))
def test_units_of_columns_do_not_matter(exponents: list[int], seed: int) -> None:
    """Powers of two are exact, so that everything scales to the last digits."""
    generator = np.random.default_rng(seed)
    features = generator.normal(size=(20, 3))
    values = generator.normal(size=20)
    units = 2.0 ** np.array(exponents)
    plain = solve_least_squares(np.column_stack([features, values]), names(3))
    scaled = solve_least_squares(np.column_stack([features * units, values]), names(3))
    np.testing.assert_allclose(scaled.coefficients[:, 0] * units, plain.coefficients[:, 0], rtol=1e-12)
    assert scaled.condition == pytest.approx(plain.condition, rel=1e-12)
    assert scaled.rank == 3


@pytest.mark.parametrize("unit", [1e-200, 1e-160, 1e160, 1e200])
def test_the_least_norm_is_found_in_units_whose_squares_are_no_doubles(unit: float) -> None:
    column = np.random.default_rng(1).normal(size=30)
    rows = np.column_stack([column * unit, column * unit, column])
    found = solve_least_squares(tall_factor(rows), names(2), 1)
    assert found.rank == 1
    assert found.coefficients[:, 0] * unit == pytest.approx([0.5, 0.5], rel=1e-14)


def test_condition_is_that_of_columns_of_norm_one() -> None:
    generator = np.random.default_rng(0)
    features = generator.normal(size=(50, 4)) * [1, 1e6, 1e-6, 3]
    features[:, 3] += 100 * features[:, 0]
    solution = solve_least_squares(np.column_stack([features, generator.normal(size=50)]), names(4))
    expected = np.linalg.cond(features / np.linalg.norm(features, axis=0))
    assert solution.condition == pytest.approx(expected, rel=1e-9)


def test_aliased_columns_are_named_with_those_they_depend_on() -> None:
    generator = np.random.default_rng(1)
    a, b, c = generator.normal(size=(3, 40))
    matrix = np.column_stack([np.ones(40), a, b, 2 * a - 3 * b, c, np.full(40, 7.0), np.zeros(40), c, a + b])
    solution = solve_least_squares(
        matrix, ("(intercept)", "a", "b", "ab", "c", "seven", "zero", "again"), free_columns=1
    )
    named = {alias.column: set(alias.others) for alias in solution.aliased}
    assert named == {"ab": {"a", "b"}, "seven": {"(intercept)"}, "zero": set(), "again": {"c"}}
    assert solution.rank == 4
    coefficients = dict(
        zip(("1", "a", "b", "ab", "c", "seven", "zero", "again"), solution.coefficients[:, 0], strict=True)
    )
    assert coefficients["zero"] == pytest.approx(0.0, abs=1e-15)
    assert coefficients["seven"] == pytest.approx(0.0, abs=1e-12), "a constant feature gets nothing, as in scikit-learn"
    assert coefficients["again"] == pytest.approx(coefficients["c"], abs=1e-12), "least norm shares evenly"
    reference = LinearRegression().fit(matrix[:, 1:-1], matrix[:, -1])
    np.testing.assert_allclose(solution.coefficients[1:, 0], reference.coef_, rtol=0, atol=1e-12)


def test_a_zero_column_gets_exactly_zero() -> None:
    """The sentence that users read says that the coefficient is set to 0."""
    generator = np.random.default_rng(1)
    for width in range(2, 9):
        features = generator.normal(size=(40, width))
        features[:, ::2] = 0.0
        matrix = np.column_stack([np.ones(40), features, generator.normal(size=40)])
        solution = solve_least_squares(matrix, names(width + 1), free_columns=1)
        assert not solution.coefficients[1::2].any()


def test_a_zero_column_beside_dependent_ones_has_no_error() -> None:
    """Two sets of dummies, both of which the ones determine, in six rows: rounding of the least norm is no error."""
    for seed in range(10):
        generator = np.random.default_rng(seed)
        levels = [generator.integers(0, 3, 6)[:, None] == np.arange(3) for _ in range(2)]
        columns = [np.ones((6, 1)), generator.normal(size=(6, 1)), levels[0], np.zeros((6, 1)), levels[1]]
        matrix = np.column_stack([*columns, generator.normal(size=6)]).astype(np.float64)
        solution = solve_least_squares(matrix, names(9), free_columns=1)
        assert not solution.coefficients[5].any()
        assert not solution.inverse_root[5].any()


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_no_rows_and_few_rows(rows: int) -> None:
    matrix = np.arange(1.0, 1 + 4 * rows).reshape(rows, 4)
    solution = solve_least_squares(matrix, names(3))
    assert solution.rank == min(rows, 2)  # the rows of this matrix lie in a plane
    assert np.isfinite(solution.coefficients).all()
    np.testing.assert_allclose(matrix[:, :3] @ solution.coefficients[:, 0], matrix[:, 3], atol=1e-10)


def test_all_zero_features() -> None:
    solution = solve_least_squares(np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 2.0]]), names(2))
    assert solution.rank == 0
    assert np.isnan(solution.condition)
    assert solution.coefficients.tolist() == [[0.0], [0.0]]
    assert solution.residual_sums.tolist() == [5.0]
    assert [alias.column for alias in solution.aliased] == ["c0", "c1"]


def test_rounding_that_came_before_raises_the_tolerance() -> None:
    generator = np.random.default_rng(2)
    features = generator.normal(size=(20, 2))
    features[:, 1] = features[:, 0] + 1e-10 * features[:, 1]
    matrix = np.column_stack([features, generator.normal(size=20)])
    assert solve_least_squares(matrix, names(2)).rank == 2
    assert solve_least_squares(matrix, names(2), extra_rounding=1e-8).rank == 1
    assert solve_least_squares(matrix, names(2), extra_rounding=1e-8).tolerance == pytest.approx(1e-8, rel=1e-3)


@pytest.mark.parametrize("rows", [120, 121, 500])
@pytest.mark.parametrize("condition", [10.0, 1e9])
def test_many_columns_of_full_rank_are_solved_by_their_triangle(rows: int, condition: float) -> None:
    """Without singular vectors: coefficients, residual sums, condition and inverse are those that they would give."""
    generator = np.random.default_rng(rows)
    width = 120
    rotation = np.linalg.qr(generator.normal(size=(width, width)))[0] * np.geomspace(1.0, 1.0 / condition, width)
    features = generator.normal(size=(rows, width)) @ rotation.T
    values = generator.normal(size=(rows, 2))
    solution = solve_least_squares(np.column_stack([features, values]), names(width), 2)
    norms = np.linalg.norm(features, axis=0)
    singular = np.linalg.svd(features / norms, compute_uv=False)
    assert solution.rank == width
    assert solution.aliased == ()
    assert solution.condition == pytest.approx(singular[0] / singular[-1], rel=1e-3)
    expected = np.linalg.lstsq(features / norms, values, rcond=None)[0] / norms[:, None]
    # Two stable solvers differ by rounding times the condition number (of a square matrix up to 10¹¹ and more).
    error = np.linalg.norm(solution.coefficients - expected) / np.linalg.norm(expected)
    assert error < 1e-13 * solution.condition
    residuals = ((values - features @ expected) ** 2).sum(axis=0)
    rounding = 1e-15 * solution.condition * float((values**2).sum())
    np.testing.assert_allclose(solution.residual_sums, residuals, rtol=0, atol=rounding)
    inverse = np.linalg.inv((features / norms).T @ (features / norms)) / np.outer(norms, norms)
    if condition == 10.0:
        found = solution.inverse_root @ solution.inverse_root.T
        np.testing.assert_allclose(found, inverse, rtol=0, atol=1e-6 * np.abs(inverse).max())


def test_many_columns_of_which_one_is_a_sum_are_still_found_out() -> None:
    generator = np.random.default_rng(3)
    features = generator.normal(size=(400, 150))
    features[:, 100] = features[:, 3] + features[:, 7]
    values = generator.normal(size=400)
    solution = solve_least_squares(np.column_stack([features, values]), names(150))
    assert solution.rank == 149
    assert [(alias.column, alias.others) for alias in solution.aliased] == [("c100", ("c3", "c7"))]
    expected = np.linalg.lstsq(features, values, rcond=None)[0]
    np.testing.assert_allclose(solution.coefficients[:, 0], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("design", ["noise", "one direction", "ill-conditioned", "orthogonal"])
def test_the_condition_of_many_columns_has_four_digits(design: str) -> None:
    """The largest and smallest singular values by themselves, against all of them."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(1300, 401))
    if design == "one direction":
        rows += 5.0
    if design == "ill-conditioned":
        rows[:, 1:] = rows[:, 1:] @ (rng.normal(size=(400, 400)) * np.logspace(0, -5, 400))
    root = np.eye(401) if design == "orthogonal" else np.asarray(np.linalg.qr(rows, mode="r"))
    quick = condition_of(root, 1, np.asarray(np.linalg.inv(root), dtype=np.float64))
    # It is never overestimated but by rounding, of single numbers: some times 6e-8 at either end.
    assert condition_of(root, 1) * (1 - 5e-4) <= quick <= condition_of(root, 1) * (1 + 1e-6)


@pytest.mark.parametrize("unit", [1.0, 1e-160, 1e160])
@pytest.mark.parametrize("noise", [1.0, 1e-3, 1e-6])
def test_the_factor_of_a_tall_matrix_is_that_of_householder(noise: float, unit: float) -> None:
    """By the Gram matrix a factor loses as many digits as a column inflates: three at most, or it is not made so."""
    rows = np.random.default_rng(0).normal(size=(400, 12)) * unit
    rows[:, 3] = rows[:, 2] + noise * rows[:, 3]
    found = np.abs(np.linalg.qr(rows, mode="r"))
    assert np.allclose(np.abs(tall_factor(rows)) / found.max(axis=0), found / found.max(axis=0), rtol=0, atol=1e-13)
    assert tall_factor(rows)[3, 3] == pytest.approx(found[3, 3], rel=1e-12 if noise >= 1e-3 else 1e-9)


def test_a_known_factor_gives_the_solution_of_the_rows() -> None:
    rows = np.random.default_rng(1).normal(size=(400, 9)) + 2.0
    known, plain = known_factor(tall_factor(rows)), solve_least_squares(rows, names(8))
    assert known is not None
    assert np.allclose(known.coefficients, plain.coefficients, rtol=0, atol=1e-12)
    assert known.residual_sums == pytest.approx(plain.residual_sums, rel=1e-12)
    # Doubles are not enough for one whose columns are dependent, nor are fewer rows than columns.
    rows[:, 3] = rows[:, 2] + rows[:, 1]
    assert known_factor(tall_factor(rows)) is None
    assert known_factor(rows[:7]) is None
    assert known_factor(np.zeros((9, 9))) is None


@pytest.mark.parametrize("width", [3, 40, 150, 420])
def test_many_factors_are_solved_as_each_alone(width: int) -> None:
    """Inverses and conditions go three ways, by the number of columns; one triangle is as good as dependent."""
    generator = np.random.default_rng(width)
    parts = [generator.normal(size=(3 * width + 5, width + 2)) * 10.0 ** (i - 2) for i in range(4)]
    parts[2][:, 1] = parts[2][:, 2]
    factors = tall_factors(parts)
    for part, factor in zip(parts, factors, strict=True):
        np.testing.assert_array_equal(factor, tall_factor(part))
    found = solve_factors(np.stack(factors), 2, 1, np.zeros(4))
    assert [solution is None for solution in found] == [False, False, True, False]
    for part, solution in zip(parts, found, strict=True):
        if solution is not None:
            alone = solve_least_squares(part, names(width), 2, 1)
            # Both are backward stable: they differ by rounding times the condition, which is below 30 here.
            np.testing.assert_allclose(solution.coefficients, alone.coefficients, rtol=0, atol=1e-12)
            np.testing.assert_allclose(solution.residual_sums, alone.residual_sums, rtol=1e-11)
            assert solution.condition == pytest.approx(alone.condition, rel=1e-3)
            np.testing.assert_allclose(
                solution.inverse_root @ solution.inverse_root.T,
                np.linalg.inv(part[:, :width].T @ part[:, :width]),
                rtol=1e-8,
                atol=1e-10 * float(np.abs(solution.inverse_root).max()) ** 2,
            )


def test_of_many_tall_matrices_those_that_need_it_are_factored_by_rows() -> None:
    generator = np.random.default_rng(8)
    parts = [generator.normal(size=(50, 5)) for _ in range(3)]
    parts[1][:, 4] = parts[1][:, 3] + 1e-6 * generator.normal(size=50)
    for part, factor in zip(parts, tall_factors(parts), strict=True):
        np.testing.assert_array_equal(factor, tall_factor(part))
    # One whose squares are beyond doubles, and one with fewer rows than twice the columns, change nothing for others.
    for odd in (1e200 * parts[0], parts[0][:7]):
        for part, factor in zip([odd, *parts], tall_factors([odd, *parts]), strict=True):
            np.testing.assert_array_equal(factor, tall_factor(part))
    assert tall_factors([]) == []


def test_tall_rows_are_factored_in_strips(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last strip has fewer rows than columns; what comes out is the same but for rounding."""
    generator = np.random.default_rng(5)
    rows = generator.normal(size=(1003, 7)) * 10.0 ** np.arange(-3, 4)
    whole = solve_least_squares(rows, names(6))
    monkeypatch.setattr(solve, "_MUCH_WORK", 1.0)
    monkeypatch.setattr(solve, "_NUMBERS_AT_ONCE", 700)
    strips = solve_least_squares(rows, names(6))
    # Ten strips round ten times.
    np.testing.assert_allclose(strips.coefficients, whole.coefficients, rtol=1e-11)
    np.testing.assert_allclose(strips.residual_sums, whole.residual_sums, rtol=1e-12)
    assert strips.rank == 6


@pytest.mark.parametrize("free", [0, 1])
def test_the_least_norm_keeps_its_digits_whatever_stands_first(free: int) -> None:
    """Two columns that differ by 1e-8 stand before two others that would do: what the norm leaves has all digits."""
    generator = np.random.default_rng(5)
    twin = generator.integers(-9, 10, size=4 + free).astype(np.float64) * 2.0**27
    others = generator.integers(-9, 10, size=(4 + free, 4)).astype(np.float64)
    features = np.column_stack([np.ones((4 + free, free)), twin, twin + others[:, 0], others[:, 1:]])
    values = generator.integers(-9, 10, size=4 + free).astype(np.float64)
    rows, width = features[: 3 + free], features.shape[1]
    unit = np.array([1.0] * free + [2.0**27, 2.0**27, 1.0, 1.0, 1.0])
    found = solve_least_squares(
        np.column_stack([rows / unit, values[: 3 + free]]), names(width), 1, free, low=np.zeros((3 + free, width + 1))
    ).coefficients[:, 0]
    backwards = [*range(free), *range(width - 1, free - 1, -1)]
    other = solve_least_squares(
        np.column_stack([(rows / unit)[:, backwards], values[: 3 + free]]), names(width), 1, free
    ).coefficients[:, 0]
    np.testing.assert_allclose(found[backwards], other, rtol=0, atol=1e-13 * np.abs(other).max())
    # NumPy's decomposition does not depend on what stands first; ones are taken out of the rows for it.
    centred = (rows - rows.mean(axis=0) if free else rows)[:, free:] / unit[free:]
    wanted = np.linalg.pinv(centred, rcond=1e-12) @ (values[: 3 + free] - (values[: 3 + free].mean() if free else 0.0))
    np.testing.assert_allclose(found[free:], wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())


@pytest.mark.parametrize("seed", range(5))
def test_exchanged_columns_make_the_others_with_small_shares(seed: int) -> None:
    """Of nine columns five are chosen that nearly depend on one another, and so do two others; the first stays."""
    generator = np.random.default_rng(seed)
    columns = generator.normal(size=(5, 9))
    columns[:, 1:4] = columns[:, :1] + 1e-3 * columns[:, 1:4]
    columns[:, 6] = columns[:, 5] + 1e-3 * columns[:, 6]
    shares: FloatArray = np.asarray(np.linalg.solve(columns[:, :5], columns[:, 5:]), dtype=np.float64)
    chosen, rest = exchanged(np.arange(5), np.arange(5, 9), shares, 1)
    assert chosen[0] == 0
    assert sorted([*chosen, *rest]) == list(range(9))
    after = np.linalg.solve(columns[:, chosen], columns[:, rest])
    # Exchanges end at shares of two; rounding of the shares before them is 1e-10 here.
    assert np.abs(shares[1:]).max() > 100
    assert np.abs(after[1:]).max() < 2.001
