"""What is known of the error: pure functions of numbers and small matrices.

Formulas carry the numbers of the paper's theorems; `docs/mathematics.md` says which are exact and which approximate.

Examples
--------
What sketches of 60 rows of each of four partitions lose in the mean, as a share of the minimal loss:

>>> import numpy as np, partsketch as ps
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((4000, 5))
>>> y = X.sum(axis=1) + rng.standard_normal(4000)
>>> partitions = [(X[i::4], y[i::4]) for i in range(4)]
>>> whole = ps.theory.PartitionMoments.from_rows(X, y)
>>> print(f"{ps.theory.partition_excess_loss(partitions, sketch_size=60) / whole.loss:.1%}")
2.3%
"""

from partsketch.theory.approximations import (
    approximate_partition_excess_loss,
    approximate_whole_excess_loss,
    noise_factor,
    rotation_rows,
    stacked_excess_loss,
)
from partsketch.theory.around_exact import (
    partition_covariance_around_exact,
    sampled_covariance_around_exact,
    stacked_covariance_around_exact,
    whole_covariance_around_exact,
)
from partsketch.theory.bounds import high_probability_excess_loss, smallest_sketch_size
from partsketch.theory.certificate import CertificateEstimate
from partsketch.theory.confidence import ConfidenceDistribution
from partsketch.theory.covariance import (
    CoefficientCovariance,
    average_covariance,
    confidence_intervals,
    exact_covariance,
    partition_covariance,
    partition_covariances,
    spread_covariance,
    whole_covariance,
)
from partsketch.theory.design import (
    gaussian_design_divergence,
    gaussian_design_divergence_of_sizes,
    gaussian_design_gap,
    odd_partition_divergence,
    printed_gap_factor,
)
from partsketch.theory.divergence import (
    burg_divergence,
    burg_divergence_matrix,
    divergence,
    divergence_matrix,
    leverage_scores,
    relative_leverage_scores,
)
from partsketch.theory.excess_loss import (
    excess_loss,
    partition_excess_loss,
    single_sketch_excess_loss_quantile,
    sketch_terms,
    unsketched_average_excess_loss,
    whole_excess_loss,
)
from partsketch.theory.expected_loss import (
    expected_partition_excess_loss,
    expected_partition_excess_loss_given_design,
    expected_unsketched_average_excess_loss,
    expected_whole_excess_loss,
)
from partsketch.theory.heterogeneity import Heterogeneity, partition_heterogeneity, sketch_heterogeneity
from partsketch.theory.measured_noise import MeasuredNoise
from partsketch.theory.moments import PartitionMoments, moments_of, pooled_moments
from partsketch.theory.orthogonal import (
    least_orthogonal_excess_loss,
    least_sketched_excess_loss,
    orthogonal_excess_loss,
    orthogonal_partition_excess_loss,
    price_of_estimated_noise,
)
from partsketch.theory.partition_certificate import certify_partition
from partsketch.theory.pooled_scatter import PooledScatter, pooled_scatter
from partsketch.theory.ridge import effective_dimension, ridge_penalty_from_sketch, sketched_ridge_penalty
from partsketch.theory.rounds import RoundForecast, forecast_rounds, least_round_loss
from partsketch.theory.row_removal import row_removal_divergence
from partsketch.theory.sampled_rows import RowSample, certify_row_samples
from partsketch.theory.sketch_moments import SketchMoments, read_sketch, sketch_moments
from partsketch.theory.stack_weights import StackChoice, choose_stack, information_weights
from partsketch.theory.stacked_certificate import certify_stacked, stacked_covariance
from partsketch.theory.stacking import StackedFit, stacked_fit
from partsketch.theory.stacking_given_data import stacked_excess_loss_given_data
from partsketch.theory.weights import (
    SketchWeights,
    average_weights,
    given_weights,
    inverse_variance_weights,
    partition_weights,
    sketch_weights,
)
from partsketch.theory.whole import certify_whole

__all__ = [
    "CertificateEstimate",
    "CoefficientCovariance",
    "ConfidenceDistribution",
    "Heterogeneity",
    "MeasuredNoise",
    "PartitionMoments",
    "PooledScatter",
    "RoundForecast",
    "RowSample",
    "SketchMoments",
    "SketchWeights",
    "StackChoice",
    "StackedFit",
    "approximate_partition_excess_loss",
    "approximate_whole_excess_loss",
    "average_covariance",
    "average_weights",
    "burg_divergence",
    "burg_divergence_matrix",
    "certify_partition",
    "certify_row_samples",
    "certify_stacked",
    "certify_whole",
    "choose_stack",
    "confidence_intervals",
    "divergence",
    "divergence_matrix",
    "effective_dimension",
    "exact_covariance",
    "excess_loss",
    "expected_partition_excess_loss",
    "expected_partition_excess_loss_given_design",
    "expected_unsketched_average_excess_loss",
    "expected_whole_excess_loss",
    "forecast_rounds",
    "gaussian_design_divergence",
    "gaussian_design_divergence_of_sizes",
    "gaussian_design_gap",
    "given_weights",
    "high_probability_excess_loss",
    "information_weights",
    "inverse_variance_weights",
    "least_orthogonal_excess_loss",
    "least_round_loss",
    "least_sketched_excess_loss",
    "leverage_scores",
    "moments_of",
    "noise_factor",
    "odd_partition_divergence",
    "orthogonal_excess_loss",
    "orthogonal_partition_excess_loss",
    "partition_covariance",
    "partition_covariance_around_exact",
    "partition_covariances",
    "partition_excess_loss",
    "partition_heterogeneity",
    "partition_weights",
    "pooled_moments",
    "pooled_scatter",
    "price_of_estimated_noise",
    "printed_gap_factor",
    "read_sketch",
    "relative_leverage_scores",
    "ridge_penalty_from_sketch",
    "rotation_rows",
    "row_removal_divergence",
    "sampled_covariance_around_exact",
    "single_sketch_excess_loss_quantile",
    "sketch_heterogeneity",
    "sketch_moments",
    "sketch_terms",
    "sketch_weights",
    "sketched_ridge_penalty",
    "smallest_sketch_size",
    "spread_covariance",
    "stacked_covariance",
    "stacked_covariance_around_exact",
    "stacked_excess_loss",
    "stacked_excess_loss_given_data",
    "stacked_fit",
    "unsketched_average_excess_loss",
    "whole_covariance",
    "whole_covariance_around_exact",
    "whole_excess_loss",
]
