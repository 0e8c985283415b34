"""A model from files with a promise: which columns, their coefficients, and what is known of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from partsketch.common.errors import InputError
from partsketch.common.linalg.blas import one_thread_each
from partsketch.fitting.fit import Fit
from partsketch.model.model import Model
from partsketch.model.outlook import Outlook, Settled
from partsketch.model.regression import Combination
from partsketch.questions.choice import choose_columns
from partsketch.sites.agreement import Named
from partsketch.sites.noisy.judgement import NoisyRegression, certify, infer, record_of
from partsketch.sites.noisy.pool import NamedNoisy, Pool, pool
from partsketch.theory.noisy_products import fit_noisy_products


def combine_noisy(
    noisy: Sequence[NamedNoisy],
    exact: Sequence[Named],
    target: str | Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    fit_intercept: bool | None = None,
) -> Fit:
    """Make a model from noisy summaries, and exact ones beside them."""
    pooled = pool(noisy, exact)
    regression = _regression(pooled, target, features, fit_intercept is not False)
    try:
        with one_thread_each(), np.errstate(divide="raise", over="raise", invalid="raise"):
            return _combined(regression)
    except (ArithmeticError, np.linalg.LinAlgError) as error:
        # Anybody can write a valid file of numbers that no rows would give.
        raise InputError(f"The numbers in the files give no regression ({error}): look at each file alone.") from error


def _combined(regression: NoisyRegression) -> Fit:
    """Return the fit, and what is known of it."""
    pooled = regression.pooled
    fits = [
        fit_noisy_products(pooled.products, regression.lines, regression.target_line(name), pooled.deviation)
        for name in regression.targets
    ]
    judged = list(zip(regression.targets, fits, strict=True))
    coefficients = np.column_stack([regression.restored(name, fit.coefficients, False) for name, fit in judged])
    levels = np.column_stack([regression.restored(name, fit.coefficients, True) for name, fit in judged])[0]
    if not np.isfinite(coefficients).all():
        raise InputError("The numbers in the files give no regression: look at each file alone.")
    first = int(regression.with_ones)
    nothing = np.zeros(len(regression.targets))
    intercept = coefficients[0] if first else nothing
    places = [place - 1 for place in regression.places(regression.features)]
    model = Model(
        feature_names=regression.features,
        target_names=regression.targets,
        coefficients=coefficients[first:],
        intercept=intercept,
        partition_coefficients=coefficients[None, first:],
        partition_intercepts=intercept[None],
        certificates=tuple(certify(regression, name, fit) for name, fit in judged),
        inferences=tuple(
            infer(regression, name, fit, coefficients[:, number]) for number, (name, fit) in enumerate(judged)
        ),
        record=record_of(regression, fits),
        centre=pooled.centre[places] if first else np.zeros(len(places)),
        level=levels if first else nothing,
        encoding=pooled.first.about.encoding.narrowed(regression.features, regression.targets),
        look_ahead=Settled(Outlook.nothing("files with a promise hold neither partitions nor sketches")),
    )
    return Fit(model, (), Combination(coefficients, (), np.ones((1, len(regression.targets)))))


def _regression(
    pooled: Pool, target: str | Sequence[str] | None, features: Sequence[str] | None, with_ones: bool
) -> NoisyRegression:
    targets, chosen = choose_columns(pooled.first.columns, pooled.first.about, target, features)
    if not chosen and not with_ones:
        raise InputError("There is nothing to fit: no features and no intercept.")
    return NoisyRegression(pooled, chosen, targets, with_ones)
