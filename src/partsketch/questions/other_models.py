"""Models other than least squares: instruments, coefficients that vary between sites, pooled fits of the sites."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from partsketch.questions.choice import Names

if TYPE_CHECKING:
    from partsketch.model.model import Model
    from partsketch.questions.meta_analysis import MetaAnalysis
    from partsketch.questions.mixed_model import MixedModel
    from partsketch.questions.summaries import Intercept, Summaries


class OtherModels:
    """What else `Summaries` can be asked."""

    def instrument(
        self,
        target: str,
        endogenous: Names,
        instruments: Names,
        exogenous: Names = (),
        *,
        intercept: Intercept = "common",
        vcov: str = "iid",
    ) -> Model:
        """Fit two-stage least squares.

        Parameters
        ----------
        target
            The column to explain.
        endogenous
            Features that may be related to the noise.
        instruments
            Columns that are not, and say something of the endogenous ones; at least as many.
        exogenous
            Other features.
        intercept
            As in `fit`.
        vcov
            "iid", or "CRV1" with partitions as clusters.

        Returns
        -------
        Model
            As from `fit`; its `instruments` hold the first-stage F tests and Sargan's test of over-identification.
        """
        from partsketch.questions.instrument import instrument

        return instrument(cast("Summaries", self), target, endogenous, instruments, exogenous, intercept, vcov)

    def mixed(
        self,
        target: str,
        features: Names | None = None,
        *,
        random: Names = (),
        random_intercept: bool = True,
        method: str = "REML",
    ) -> MixedModel:
        """Fit common coefficients with random deviations of the partitions, by restricted likelihood.

        Parameters
        ----------
        target, features
            As in `fit`; one target, and always a common intercept.
        random
            Features whose coefficients vary between partitions; their deviations may be correlated in any way.
        random_intercept
            Whether the intercept varies too.
        method
            "REML", restricted maximum likelihood, or "ML".

        Returns
        -------
        MixedModel
            With `coefficients`, `standard_errors`, `random_covariance`, `residual_variance`, `site_effects`,
            `log_likelihood`, `conf_int()`, `report(path)`.
        """
        from partsketch.questions.mixed import mixed

        return mixed(cast("Summaries", self), target, features, random, random_intercept, method)

    def meta_analysis(
        self,
        target: str,
        features: Names | None = None,
        *,
        method: str = "REML",
        level: float = 0.95,
        hartung_knapp: bool = True,
    ) -> MetaAnalysis:
        """Fit every partition alone and pool the fits, with one true coefficient and with ones that vary.

        Parameters
        ----------
        target, features
            As in `fit`; one target.
        method
            Of the variance τ² of true coefficients: "REML", "DL" (DerSimonian and Laird) or "PM" (Paule and Mandel).
        level
            Coverage of the intervals.
        hartung_knapp
            Whether random-effects intervals are by Hartung and Knapp (t with k − 1 degrees of freedom), which hold with
            few partitions too, or normal.

        Returns
        -------
        MetaAnalysis
            `found["age"]` has `fixed`, `random`, `q`, `i_squared`, `tau_squared`, `prediction`; `forest()`,
            `report(path)`.
        """
        from partsketch.questions.meta_analysis import meta_analysis

        return meta_analysis(cast("Summaries", self), target, features, method, level, hartung_knapp)
