"""`SketchedRegression`: the scikit-learn front of the library."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from partsketch.common.errors import InputError, PartsketchWarning
from partsketch.engines.base import using_engine
from partsketch.fitting.array_request import column_beside_features, is_vector, open_checked, split_partition_column
from partsketch.fitting.batches import Batches, add_batch, check_batches, options_of_batch
from partsketch.fitting.fit import Fit
from partsketch.fitting.keywords import FitKeywords
from partsketch.fitting.options import FitOptions
from partsketch.model.sentences import dropped_rows
from partsketch.model.summary_table import FitSummary
from partsketch.planner.fit_request import fit_as_asked


def _takes_batches(estimator: SketchedRegression) -> bool:
    if estimator.method == "whole":
        raise AttributeError(
            "method='whole' makes every sketch of all rows, which come in batches in partial_fit: use 'exact', "
            "'average', 'partition' or 'stack', or fit."
        )
    return True


#: Rows that are predicted at a time where columns are measured from a centre.
_PREDICTED_ROWS = 65536


class SketchedRegression(MultiOutputMixin, RegressorMixin, BaseEstimator, FitKeywords):
    """Linear least squares on partitioned rows, exact or from small random sketches.

    Parameters
    ----------
    method : {"auto", "exact", "average", "partition", "stack", "whole"}, default="auto"
        "auto": exact least squares; with `limits` the planner chooses method, sketch and size within them, and the
        record says why. "exact": least squares on all rows. "average": exact fits of the partitions, averaged.
        "partition": fits on one sketch of each partition, averaged. "stack": one fit on the stacked sketches of the
        partitions. "whole": fits on `n_partitions` independent sketches of all rows, averaged.
    n_partitions : int, default=8
        Number of partitions; for "whole" the number of sketches. Not used by "exact", nor by "auto" without limits.
    partition_by : str, default="order"
        "order" (consecutive rows), "shuffle" (by a hash of seed and row number), or the name of a column of a data
        frame; that column is then not a feature.
    remainder : {"spread", "drop"}, default="spread"
        "spread": partition sizes differ by at most one. "drop": the last rows are left out so that all are equal.
    sketch : {"gaussian", "orthogonal", "srht", "sparse_sign", "count_sketch", "row_sample", "leverage_sample"}, \
default="gaussian"
        Kind of sketch. "gaussian" and "orthogonal" have an exact theory, and "orthogonal" loses least; "srht",
        "sparse_sign" and "count_sketch" are faster; "row_sample" draws rows evenly, "leverage_sample" by their leverage
        in two passes over the rows. "auto" compares all kinds and takes its own choice.
    sketch_size : int or None, default=None
        Rows of each sketch; None chooses a number by kind, four or more per column to estimate, and records why. For
        "auto" the size of every sketch that is considered; it does not ask for a sketch.
    sparsity : int or None, default=None
        For "sparse_sign": sketch rows that each row of X goes to; None is 8.
    fit_intercept : bool, default=True
        Whether to estimate an intercept.
    averaging : {"equal", "inverse_variance"}, default="equal"
        Weights in "average" and "partition": equal, or those that minimise the predicted excess loss, from summaries.
    weighting : {"rows", "information", "auto"}, default="rows"
        Weights of the sketches in "stack". "rows": equal ones, whose certificate assumes nothing of the partitions.
        "information": by the rows behind each sketch and its noise, best if partitions share their coefficients.
        "auto": that unless a test says no; then the equally weighted stack, mixed with the average of the fits.
    noise : {"auto", "measured", "estimated"}, default="auto"
        For such weights: noise from the exact fit to each partition, or from the sketches; "auto" measures if cheap.
    alpha : float, default=0.0
        Ridge penalty on all rows together, as in scikit-learn's `Ridge`; the intercept is not penalised. On sketches
        it is scaled so that they shrink like the rows.
    vcov : str or mapping, default="iid"
        What exact fits assume of the noise: "iid"; in one more pass "HC0" to "HC3", or {"CRV1": column of clusters}.
    absorb : str or None, default=None
        For `partsketch.fit`: a column of which every value has an intercept. Here it is refused: X has no such column.
    route : {"auto", "factor", "iterate"}, default="auto"
        For "exact": "factor" makes the triangular factor of all rows in one pass; "iterate" refines the coefficients
        in several passes, each much cheaper; "auto" takes the quicker one and records which and why. Only a factor
        gives exact standard errors: from dense rows "iterate" estimates them to about one percent, from sparse rows
        it may leave them out.
    engine : {"local", "dask", "ray", "spark"}, address, session or engine, default="local"
        Where summaries are made: on this machine's cores, on a cluster started for the fit, on the one at an address
        ("dask://host:8786"), or on that of a Dask client or Spark session.
    on_partition_error : {"raise", "drop"}, default="raise"
        "drop": partitions that cannot be read are left out and named in the model's record.
    deadline : float or None, default=None
        Seconds after which partitions that have not arrived are left out.
    min_partitions : int or None, default=None
        Fewer partitions than this are refused; None means 1.
    checkpoint : str, path or None, default=None
        A folder that keeps what is finished: a run that was killed and is started again does only the rest.
    limits : Limits, mapping or None, default=None
        With method="auto": what may not be exceeded, such as `{"max_excess": "1%", "seconds": 10}`.
    random_state : int, numpy.random.Generator, RandomState or None, default=None
        Seed of the sketches; the same seed gives the same fit on any engine and number of threads.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        Coefficients.
    intercept_ : float or ndarray of shape (n_targets,)
        Intercept; 0.0 without one.
    partition_coef_ : ndarray of shape (k, n_features) or (k, n_targets, n_features)
        Coefficients of the fits that were averaged; a single one when solved once.
    certificate_ : Certificate, or tuple of one per target
        How much squared loss the fit gives away against exact least squares, and how that is known.
    model_ : Model
        The fitted model with its record: seed, sketch size, rank, aliased columns, warnings, reasons.
    summaries_ : tuple of Summary
        What the rows were compressed to.
    rank_ : int
        Smallest numerical rank among the fits.
    sketch_size_ : int or None
        Rows of each sketch; None for exact summaries.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray
        Names of the features, when X is a data frame.

    Examples
    --------
    >>> import numpy as np
    >>> from partsketch import SketchedRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> y = X @ [1.0, 2.0, 3.0] + 0.1 * rng.normal(size=1000)
    >>> model = SketchedRegression().fit(X, y)
    >>> np.round(model.coef_, 1)
    array([1., 2., 3.])
    >>> model.certificate_.excess_loss
    0.0
    >>> sketched = SketchedRegression("stack", n_partitions=4, random_state=0).fit(X, y)
    >>> np.round(sketched.coef_, 1)
    array([1., 2., 3.])
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Features; a Dask array or data frame stays on its cluster.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, not negative.

        Returns
        -------
        SketchedRegression
            The fitted estimator.
        """
        options = FitOptions.made_of(self)
        with using_engine(self.engine, X) as engine:
            source = open_checked(self, X, y, sample_weight, options.partition_column, engine)
            fit = fit_as_asked(source, options, engine)
        self._batches = None
        if fit.gathered is not None and fit.summaries and source.row_count is not None:
            self._batches = Batches(fit.gathered, source.row_count, options.seed)
        return self._keep(fit, is_vector(y))

    @available_if(_takes_batches)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, new_partition: bool = True) -> Self:
        """Add a batch of rows to what has been fitted before, and fit again without looking at earlier rows.

        With "average", "partition" and "stack" each batch is a partition; `n_partitions` is not used. A single fit
        with the same partitions gives the same summaries, bit by bit. With "exact" the factor of all rows is kept: the
        result is that of a single fit up to rounding. "auto" begins with "exact", whose factor keeps everything; after
        `fit` it goes on with the method that was chosen there.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Features of the batch.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets of the batch.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, not negative.
        new_partition : bool, default=True
            Whether the batch is a partition of its own; otherwise it adds to the last one.

        Returns
        -------
        SketchedRegression
            The fitted estimator.
        """
        started = hasattr(self, "model_")
        options, why_method = options_of_batch(FitOptions.made_of(self), self.model_ if started else None)
        check_batches(options)
        before = self._batches if started else None
        if started and before is None:
            raise InputError("The fit before was refined without a factor, and cannot go on: fit with route='factor'.")
        if started and self.model_.method != options.method:
            raise InputError(f"method={options.method!r} cannot go on from {self.model_.method!r}: fit anew.")
        with using_engine(self.engine, X) as engine:
            source = open_checked(self, X, y, sample_weight, None, engine, reset=not started)
            if started and source.target_names != self.model_.target_names:
                raise InputError(
                    f"This batch has the targets {source.target_names}, those before had {self.model_.target_names}."
                )
            fit, self._batches = add_batch(before, source, options, engine, new_partition, why_method)
        return self._keep(fit, is_vector(y))

    def _keep(self, fit: Fit, single: bool) -> Self:
        self.model_, self.summaries_ = fit.model, fit.summaries
        self.rank_ = fit.model.record.rank
        self.sketch_size_ = fit.model.record.sketch_size
        self.coef_ = fit.model.coefficients[:, 0] if single else fit.model.coefficients.T
        # Without an intercept a plain 0.0, whatever the number of targets: scikit-learn's convention.
        self.intercept_ = fit.model.intercept if self.fit_intercept and not single else float(fit.model.intercept[0])
        self.certificate_: Any = fit.model.certificates[0] if single else fit.model.certificates
        parts = np.swapaxes(fit.model.partition_coefficients, 1, 2)
        self.partition_coef_ = parts[:, 0] if single else parts
        # Missing values are refused here: rows were dropped for a weight of zero, which is given on purpose.
        for sentence in fit.model.record.warnings:
            if sentence != dropped_rows(fit.model.record.rows_dropped):
                warnings.warn(sentence, PartsketchWarning, stacklevel=3)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict the targets.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Features; a partition column is ignored.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            Predictions.
        """
        check_is_fitted(self)
        _, X = split_partition_column(X, column_beside_features(self.model_.record.options), required=False)
        X = validate_data(self, X, accept_sparse=("csr", "csc"), reset=False)
        centre = self.model_.centre
        if not centre.any():
            return np.asarray(X @ self.coef_.T + self.intercept_)
        # Around the centre, block by block: differences of huge numbers have no digits left.
        parts = []
        for start in range(0, X.shape[0], _PREDICTED_ROWS):
            block = X[start : start + _PREDICTED_ROWS]
            parts.append(self.model_.predicted((block.toarray() if hasattr(block, "toarray") else np.asarray(block)).T))
        predictions = np.concatenate(parts)
        return predictions[:, 0] if self.coef_.ndim == 1 else predictions

    def conf_int(self, level: float = 0.95, kind: str = "model", of: str = "truth") -> NDArray[np.float64]:
        """Return confidence intervals for the coefficients, the intercept first.

        Parameters
        ----------
        level : float, default=0.95
            Nominal coverage.
        kind : {"model", "spread"}, default="model"
            "model" assumes independent noise of one variance; "spread" uses the spread of the partitions' fits.
        of : {"truth", "exact"}, default="truth"
            For the true coefficients, or for those of exact least squares on the same rows.

        Returns
        -------
        ndarray of shape (n_columns, 2) or (n_targets, n_columns, 2)
            Lower and upper ends; columns are the intercept, if there is one, and the features.
        """
        check_is_fitted(self)
        return self.model_.conf_int(level, kind, of)

    def summary(
        self, level: float = 0.95, kind: str = "model", of: str = "truth", *, stars: bool = False
    ) -> FitSummary:
        """Return the fit as a table: coefficients, standard errors, t and p values, intervals, certificate.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level of the intervals.
        kind, of : str
            As in `conf_int`.
        stars : bool, default=False
            Whether coefficients are marked by their p-values.

        Returns
        -------
        FitSummary
            Prints as text; `to_latex`, `to_html`, `to_csv`, `to_frame` and `to_dict` give other forms.
        """
        check_is_fitted(self)
        return self.model_.summary(level, kind, of, stars=stars)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
