"""The wild cluster bootstrap, against pyfixest where all sign vectors are taken, and against itself elsewhere."""

from __future__ import annotations

import numpy as np
import pyfixest as pf
import pytest

import partsketch as ps
from partsketch.model.kept_intervals import LEVELS
from partsketch.questions.wild import Bootstrap
from tests.questions.data import clustered_rows

ROWS = clustered_rows()
SUMMARIES = ps.summarise(ROWS, ["a", "b", "c", "y"], partition_by="g")


@pytest.mark.filterwarnings("ignore")  # of what pyfixest asks of pandas, and of taking every sign vector
@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_every_sign_vector_gives_the_p_value_of_pyfixest(name: str) -> None:
    # The truth is subtracted, so that p-values are not all zero.
    rows = ROWS.assign(y=ROWS["y"] - ROWS[["a", "b", "c"]] @ [1.4, 2.05, 3.05])
    summaries = ps.summarise(rows, ["a", "b", "c", "y"], partition_by="g")
    model = summaries.fit("y", vcov="wild", weights="rademacher")
    other = pf.feols("y ~ a + b + c", rows, vcov={"CRV1": "g"})
    found = other.wildboottest(param=name, reps=9999, weights_type="rademacher")
    place = model.column_names.index(name)
    # All signs alike give the estimate back: rounding decides there whether pyfixest counts the two of 512.
    assert model.p_values[place] == pytest.approx(found["Pr(>|t|)"], abs=2 / 512 + 1e-12)
    assert model.t_values[place] == pytest.approx(found["t value"], rel=1e-8)


def test_draws_that_give_the_data_back_are_not_larger() -> None:
    """No draw but the two in which all signs are alike reaches the statistic of c, and these are ties."""
    model = ps.summarise(ROWS, ["a", "b", "c", "y"], partition_by="g").fit("y", vcov="wild", weights="rademacher")
    assert model.inferences[0].wild is not None
    assert model.inferences[0].wild.draws == 2**9
    assert model.p_values[model.column_names.index("c")] == 0.0


def test_what_has_no_bootstrap_is_refused_by_name() -> None:
    rows = ROWS.assign(zero=0.0, seven=7.0)
    summaries = ps.summarise(rows, ["a", "zero", "seven", "y"], partition_by="g")
    with pytest.raises(ps.InputError, match="Column 'zero' adds nothing"):
        summaries.fit("y", ["a", "zero"], vcov="wild")
    with pytest.raises(ps.InputError, match="leaves no residuals"):
        summaries.fit("seven", ["a"], vcov="wild")
    seeded = summaries.fit("y", ["a"], vcov="wild", random_state=np.int64(3))  # type: ignore[arg-type]
    assert seeded.p_values.tolist() == summaries.fit("y", ["a"], vcov="wild", random_state=3).p_values.tolist()


def by_rows(name: str, null: float, weights: np.ndarray) -> float:
    """Return the p-value from rows, as the definition says: refit every draw."""
    X = np.column_stack([np.ones(len(ROWS)), ROWS[["a", "b", "c"]]])
    y, groups = ROWS["y"].to_numpy(), ROWS["g"].to_numpy()
    j = 1 + ["a", "b", "c"].index(name)
    inverse = np.linalg.inv(X.T @ X)

    def statistic(target: np.ndarray) -> float:
        beta = inverse @ X.T @ target
        scores = np.stack([X[groups == g].T @ (target - X @ beta)[groups == g] for g in range(9)])
        return float((beta[j] - null) / np.sqrt(np.sum((scores @ inverse[j]) ** 2)))

    others = np.delete(X, j, axis=1)
    rest = y - null * X[:, j]
    fitted = others @ np.linalg.lstsq(others, rest, rcond=None)[0] + null * X[:, j]
    drawn = [abs(statistic(fitted + weights_of[groups] * (y - fitted))) for weights_of in weights]
    return float(np.mean(np.array(drawn) > abs(statistic(y))))


@pytest.mark.parametrize("null", [0.0, 1.2, 2.1])
def test_a_draw_is_a_fit_to_rows(null: float) -> None:
    asked = Bootstrap(199, "webb", 3)
    moved = ROWS.assign(y=ROWS["y"] - null * ROWS["b"])
    summaries = ps.summarise(moved, ["a", "b", "c", "y"], partition_by="g")
    model = summaries.fit("y", vcov="wild", draws=199, random_state=3)
    assert model.p_values[2] == by_rows("b", null, asked.values(9))


def test_an_end_of_an_interval_is_where_the_p_value_falls() -> None:
    model = SUMMARIES.fit("y", vcov="wild", draws=999, random_state=1)
    for level in LEVELS:
        lower, upper = model.conf_int(level)[3]
        for end, outward in ((lower, -1), (upper, 1)):
            for step, inside in ((-1e-6, True), (1e-6, False)):
                null = end + outward * step
                moved = ROWS.assign(y=ROWS["y"] - null * ROWS["c"])
                again = ps.summarise(moved, ["a", "b", "c", "y"], partition_by="g").fit(
                    "y", vcov="wild", draws=999, random_state=1
                )
                assert (again.p_values[3] >= 1 - level) == inside
    with pytest.raises(ps.InputError, match="kept at"):
        model.conf_int(0.5)


def test_a_seed_gives_the_same_and_another_gives_others() -> None:
    one, same, other = (SUMMARIES.fit("y", vcov="wild", draws=499, random_state=seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one.conf_int(), same.conf_int())
    assert not np.array_equal(one.conf_int(), other.conf_int())


def test_webb_weights_have_mean_zero_and_variance_one() -> None:
    values = Bootstrap(9999, "webb", 0).values(20)
    count = values.size
    assert abs(values.mean()) < 5 / np.sqrt(count)
    # The fourth moment of the weights is 7/6: that is the variance of a square, plus one.
    assert abs((values**2).mean() - 1) < 5 * np.sqrt(1 / 6 / count)
    assert len(np.unique(values)) == 6


@pytest.mark.parametrize(
    ("clusters", "weights", "draws"), [(2, "webb", 18), (2, "rademacher", 2), (7, "rademacher", 64)]
)
def test_few_partitions_have_few_different_draws(clusters: int, weights: str, draws: int) -> None:
    """With two partitions every draw of signs gives the statistic back, and each p-value is zero."""
    rows = ROWS.assign(g=ROWS["g"] % clusters)
    model = ps.summarise(rows, ["a", "b", "c", "y"], partition_by="g").fit("y", ["a"], vcov="wild", weights=weights)
    told = [sentence for sentence in model.record.warnings if "different draws" in sentence]
    assert len(told) == 1
    assert f"of {clusters} partitions has {draws} different draws with {weights} weights" in told[0]
    assert not any("different draws" in sentence for sentence in SUMMARIES.fit("y", vcov="wild").record.warnings)
