"""What a fit may be asked, and sizes of sketches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partsketch as ps
from partsketch import InputError, PartsketchWarning, SketchedRegression
from partsketch.fitting.keywords import FIT_KEYWORDS, FitKeywords
from partsketch.fitting.options import FitOptions, seed_from
from partsketch.fitting.sketch_size import choose_sketch_size
from tests.fitting.fits import data, quiet


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("method", "magic", "'magic'.*'exact', 'average', 'partition', 'stack' or 'whole'"),
        ("n_partitions", 0, "n_partitions is 0"),
        ("n_partitions", 2.5, "n_partitions is 2.5"),
        ("n_partitions", "8", "n_partitions is '8'"),
        ("n_partitions", True, "n_partitions is True"),
        ("partition_by", "", "partition_by"),
        ("partition_by", None, "partition_by"),
        ("partition_by", "site", "data frame"),
        ("remainder", "keep", "'spread' or 'drop'"),
        ("sketch", "magic", "sketch is 'magic'.*'gaussian'"),
        ("sketch", "triangular", "sketch is 'triangular'"),
        ("sketch_size", 0, "sketch_size"),
        ("sketch_size", 10.0, "sketch_size"),
        ("sketch_size", 17_000_000, "sketch_size is 17000000: give at most 16,777,216"),
        ("engine", "abacus", "'abacus'"),
        ("engine", 7, "engine"),
        ("random_state", -1, "random_state is -1"),
        ("random_state", 2**64, "random_state"),
        ("random_state", "lucky", "random_state"),
    ],
)
def test_unknown_options_are_refused_by_name(option: str, value: Any, message: str) -> None:
    X, y = data()
    with pytest.raises(InputError, match=message):
        SketchedRegression(**{option: value}).fit(X, y)
    if option != "partition_by":
        with pytest.raises(InputError, match=message):
            ps.fit(np.column_stack([X, y]), target="x3", **{option: value})


def test_options_that_do_not_go_together() -> None:
    X, y = data()
    with pytest.raises(InputError, match="needs files"):
        SketchedRegression("stack", partition_by="file").fit(X, y)
    with pytest.raises(InputError, match="remainder='drop'"):
        SketchedRegression("stack", partition_by="shuffle", remainder="drop").fit(X, y)


@pytest.mark.parametrize("kind", ["int", "numpy int", "Generator", "RandomState", "largest"])
def test_seeds(kind: str) -> None:
    make: dict[str, Any] = {
        "int": lambda: 5,
        "numpy int": lambda: np.uint8(5),
        "Generator": lambda: np.random.default_rng(5),
        "RandomState": lambda: np.random.RandomState(5),
        "largest": lambda: 2**64 - 1,
    }
    X, y = data()
    first, second = (quiet(random_state=make[kind]())(X, y) for _ in range(2))
    assert np.array_equal(first.coef_, second.coef_)
    again = quiet(random_state=first.model_.record.seed)(X, y)
    assert np.array_equal(first.coef_, again.coef_), "the recorded seed repeats the fit"


def test_a_generator_moves_on_and_none_is_fresh_but_recorded() -> None:
    generator = np.random.default_rng(0)
    assert seed_from(generator) != seed_from(generator)
    assert seed_from(None) != seed_from(None)
    X, y = data()
    model = quiet()(X, y)
    assert np.array_equal(quiet(random_state=model.model_.record.seed)(X, y).coef_, model.coef_)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("method", ["partition", "stack", "whole"])
def test_sketch_sizes_without_mean_are_refused_and_without_variance_warned_of(method: str, intercept: bool) -> None:
    """d counts the intercept: m ≤ d + 1 has no mean, m ≤ d + 3 no variance; of stacked sketches all rows count."""
    X, y = data(columns=4)
    d = 4 + intercept
    asked: dict[str, Any] = {"n_partitions": 1 if method == "stack" else 8, "fit_intercept": intercept}
    for size in (1, d, d + 1):
        with pytest.raises(InputError, match=rf"sketch_size={size} is too small.*at least {d + 2}\b.*{d + 4}\b"):
            SketchedRegression(method, sketch_size=size, **asked).fit(X, y)
    for size in (d + 2, d + 3):
        with pytest.warns(PartsketchWarning, match=rf"infinite variance.*at least {d + 4}\b"):
            SketchedRegression(method, sketch_size=size, **asked).fit(X, y)
    model = SketchedRegression(method, sketch_size=d + 4, **asked).fit(X, y)
    assert model.sketch_size_ == d + 4


def test_exact_methods_have_no_sketch_size() -> None:
    X, y = data()
    for method in ("exact", "average"):
        assert SketchedRegression(method, sketch_size=1).fit(X, y).sketch_size_ is None


@given(columns=st.integers(1, 200), smallest=st.one_of(st.none(), st.integers(1, 2000)))
def test_the_size_chosen_is_clear_of_heavy_tails(columns: int, smallest: int | None) -> None:
    size, reason = choose_sketch_size(None, columns, smallest)
    assert size >= columns + 4
    assert reason
    if smallest is not None and smallest >= columns + 4:
        assert size <= max(smallest, columns + 4)
    if smallest is None or smallest >= 4 * columns + 16:
        assert size == max(4 * columns, columns + 16)


def test_the_size_chosen_is_recorded_with_its_reason() -> None:
    X, y = data(1000)
    model = SketchedRegression("partition", n_partitions=2, random_state=0).fit(X, y)
    assert model.sketch_size_ == 20
    assert "sketch_size" in model.model_.record.reasons
    assert model.summaries_[0].matrix.shape == (20, 5)


#: A value for every keyword that is not its default, and what else it takes to be allowed.
OTHER_VALUES: dict[str, tuple[Any, dict[str, Any]]] = {
    "method": ("stack", {}),
    "n_partitions": (3, {}),
    "partition_by": ("shuffle", {}),
    "remainder": ("drop", {}),
    "sketch": ("srht", {}),
    "sketch_size": (77, {}),
    "sparsity": (3, {"sketch": "sparse_sign"}),
    "fit_intercept": (False, {}),
    "averaging": ("inverse_variance", {"method": "average"}),
    "weighting": ("auto", {"method": "stack"}),
    "alpha": (2.5, {}),
    "absorb": ("city", {"method": "exact"}),
    "vcov": ("CRV1:city", {}),
    "on_partition_error": ("drop", {"method": "average"}),
    "deadline": (7.0, {"method": "average"}),
    "min_partitions": (2, {"method": "average", "deadline": 7.0}),
    "checkpoint": ("kept", {}),
    "limits": (ps.Limits(memory=1e9), {}),
    "route": ("factor", {}),
    "noise": ("measured", {"method": "stack", "weighting": "auto"}),
}


def test_every_keyword_reaches_the_options() -> None:
    """All fronts go through this one place: what is lost here is lost to function, estimator and command alike."""
    assert {*OTHER_VALUES, "engine", "random_state"} == set(FIT_KEYWORDS)
    for name, (value, others) in OTHER_VALUES.items():
        assert value != FIT_KEYWORDS[name].default
        made = FitOptions.made_of(FitKeywords(**{**others, name: value}))
        assert getattr(made, name) == value, name
    assert FitOptions.made_of(FitKeywords(random_state=5)).seed == 5
    assert FitOptions.made_of(FitKeywords(vcov={"CRV3": "city"})).vcov == "CRV3:city"
    assert FitOptions.made_of(FitKeywords(limits={"memory": "1 GB"})).limits == ps.Limits(memory=1e9)
    assert FitOptions.made_of(FitKeywords(checkpoint=Path("kept"))).checkpoint == "kept"
