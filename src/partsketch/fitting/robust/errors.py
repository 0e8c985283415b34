"""From the sums of a pass to standard errors."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.free_memory import available_memory
from partsketch.common.linalg.blas import triangular_factor
from partsketch.common.linalg.solution import Solution
from partsketch.engines.base import Engine
from partsketch.engines.gather import Collector, make_tasks
from partsketch.engines.local import usable_cores
from partsketch.engines.run import run_tasks
from partsketch.engines.tolerance import Tolerance
from partsketch.fitting.robust import kernels
from partsketch.fitting.robust.scores import ScoreRequest, segment_rows_for
from partsketch.fitting.robust.strips import takes_clusters
from partsketch.fitting.robust.vcov import CRV, kind_of
from partsketch.model.around_exact import MOST_COLUMNS_WITH_COVARIANCE
from partsketch.model.inference import Inference
from partsketch.model.model import Model
from partsketch.model.regression import Regression
from partsketch.sources.base import Source
from partsketch.summaries.partitions import Partitioning
from partsketch.summaries.tasks import Piece

FloatArray = NDArray[np.float64]

#: Above this condition number rows are multiplied with the root of the inverse before they are summed.
_SAFE_CONDITION = 1e3
#: How far the leverages of all rows may be from the rank, of which they are the sum: rounding, with a wide margin.
_LARGEST_DRIFT = 1e-6
#: A cluster with a larger share of some direction than this is taken out by adding the others, not by subtracting it.
_LARGE_SHARE = 0.9
#: What the others leave of a direction, below which they do not determine it.
_NOTHING = 1e-10
#: Clusters beyond which their lines are not factored, and which a thread takes at once.
_MANY_LINES = 1 << 14
#: Copies of the sums of clusters at once: two that are merged, the result, and those that wait.
_COPIES = 4


@dataclass(frozen=True, eq=False)
class Absorbed:
    """Levels that have intercepts of their own.

    Attributes
    ----------
    means
        Means of features and targets by level.
    levels
        How many levels have more than one row.
    alone
        How many have one: their rows say nothing, and do not count.
    """

    means: FloatArray
    levels: int
    alone: int


@dataclass(frozen=True)
class RowErrors:
    """The rows of a fit, for the pass that its standard errors need.

    Attributes
    ----------
    vcov
        As in `FitOptions`.
    absorbed
        Levels with intercepts of their own, if there are any.
    """

    source: Source
    partitioning: Partitioning
    engine: Engine
    vcov: str
    absorbed: Absorbed | None = None

    def noted_in(self, model: Model, solution: Solution, regression: Regression) -> Model:
        """Return the model of a solution with these errors in place of those of independent noise of one variance."""
        request = self._request(solution, regression)
        whole = self._pass(request)
        inferences = tuple(
            _inference(inference, request, whole, solution, regression, number, self.source, self.absorbed)
            for number, inference in enumerate(model.inferences)
        )
        return replace(model, inferences=inferences)

    def _request(self, solution: Solution, regression: Regression) -> ScoreRequest:
        kind, coordinates = kind_of(self.vcov), regression.coordinates
        assert coordinates is not None
        if solution.inverse != "exact":
            raise InputError(f"vcov={self.vcov!r} needs the inverse of an exact factor: fit with route='factor'.")
        clusters = self.source.partition_count if kind in CRV else 0
        if kind in CRV and clusters < 2:
            raise InputError(f"vcov={self.vcov!r} needs at least two clusters, and the column has one value.")
        units = coordinates.unit[: coordinates.features]
        # Products of the columns of few clusters are turned afterwards, which takes no time row by row.
        late = kind == "CRV3" and takes_clusters(solution.coefficients, clusters)
        whitened = kind in ("HC2", "HC3") or (kind == "CRV3" and not late) or solution.condition > _SAFE_CONDITION
        request = ScoreRequest(
            self.partitioning,
            bool(coordinates.free),
            kind,
            coordinates.centre,
            coordinates.unit[coordinates.features :],
            np.ascontiguousarray(solution.coefficients / units[:, None]),
            np.ascontiguousarray(solution.inverse_root / units[:, None]) if whitened else None,
            units,
            clusters,
            segment_rows_for(clusters),
            None if self.absorbed is None else self.absorbed.means,
        )
        _check_memory(request, len(regression.targets))
        return request

    def _pass(self, request: ScoreRequest) -> Piece:
        tasks = make_tasks(self.source, request.partitioning, segment_rows=request.segment_rows)
        collected = Collector(request, tasks)
        for outcome in run_tasks(self.engine, self.source, request, tasks, range(len(tasks)), Tolerance()):
            collected.add(outcome)
        whole = collected.fold.take(0)
        if whole is None:
            raise InputError(f"There are no rows in {self.source.description}.")
        return whole


def _check_memory(request: ScoreRequest, targets: int) -> None:
    width = request.width
    numbers = 1 + targets * request.stride + (width * (width + 1) // 2 if request.kind == "CRV3" else 0)
    needed = _COPIES * 8 * request.clusters * numbers
    if needed > available_memory():
        raise InputError(
            f"vcov={request.kind!r} keeps {numbers:,} numbers for each of {request.clusters:,} clusters, and "
            f"{needed / 2**30:.1f} GiB are not free: "
            + ("ask for 'CRV1', use fewer features, " if request.kind == "CRV3" else "use fewer features ")
            + "or a column with fewer values."
        )


def _inference(
    inference: Inference,
    request: ScoreRequest,
    whole: Piece,
    solution: Solution,
    regression: Regression,
    number: int,
    source: Source,
    absorbed: Absorbed | None,
) -> Inference:
    """Return what is known of the coefficients of one target."""
    rows, rank = whole.row_count, solution.rank
    lost = rank
    if absorbed is not None:
        rows, lost = rows - absorbed.alone, rank + absorbed.levels
    if rows <= lost:
        raise InputError(f"{rows} rows leave no degrees of freedom after rank {lost}.")
    root = solution.inverse_root
    # Spreads are lines in coordinates in which the Gram matrix is the identity: β = B γ.
    if request.clusters:
        spread, freedom = _cluster_spread(request, whole, root, rank, number, source, absorbed)
    else:
        squares = whole.matrices[number]
        spread = _square_root(squares if request.root is not None else root.T @ squares @ root)
        spread *= np.sqrt(rows / (rows - lost)) if request.kind == "HC1" else 1.0
        freedom = rows - lost
    coordinates = regression.coordinates
    assert coordinates is not None
    line = spread @ (coordinates.transformation(number) @ root).T
    errors = np.sqrt(np.einsum("ij,ij->j", line, line))
    if not np.isfinite(errors).all():
        raise InputError(f"vcov={request.kind!r} gives numbers beyond those of doubles: scale the columns.")
    around_centre = spread @ (coordinates.scaling(number) @ root).T
    few = len(errors) <= MOST_COLUMNS_WITH_COVARIANCE
    return replace(
        inference,
        standard_errors=errors,
        degrees_of_freedom=float(freedom),
        covariance=line.T @ line if few else None,
        level_covariance=around_centre[:, 0] @ around_centre if coordinates.free and few else None,
        reason="",
        vcov=request.kind,
    )


def _square_root(squares: FloatArray) -> FloatArray:
    """Return S with SᵀS the given matrix, which is that but for rounding."""
    values, vectors = np.linalg.eigh((squares + squares.T) / 2)
    return np.asarray(np.sqrt(np.clip(values, 0.0, None))[:, None] * vectors.T)


def _cluster_spread(
    request: ScoreRequest,
    whole: Piece,
    root: FloatArray,
    rank: int,
    number: int,
    source: Source,
    absorbed: Absorbed | None = None,
) -> tuple[FloatArray, int]:
    """Return lines whose squares add up to the covariance of γ, and degrees of freedom."""
    lines, rows, width = whole.matrices[0], whole.row_count, request.width
    count = len(lines)
    if absorbed is not None:
        # Levels that are the clusters are nested in them and cost one degree of freedom; those of one row do not count.
        rows, count, rank = rows - absorbed.alone, count - absorbed.alone, rank + 1
    if count < 2:
        raise InputError("All rows that are used are in one cluster: there must be two at least.")
    scores = lines[:, number * request.stride : number * request.stride + width]
    if request.kind == "CRV1":
        if request.root is None:
            # Rows that go to their clusters as they are have the units of the data.
            root = root / request.units[:, None] if request.row_by_row else root
            few = count <= _MANY_LINES
            spread = _narrow(scores @ root) if few else _square_root(root.T @ (scores.T @ scores) @ root)
        else:
            spread = _narrow(scores)
        return np.sqrt(count / (count - 1) * (rows - 1) / (rows - rank)) * spread, count - 1
    packed = lines[:, request.coefficients.shape[1] * width : -1]
    if request.root is None:
        packed, scores = _turned(packed, root), scores @ root
    on_diagonal = np.arange(root.shape[1]) * (np.arange(root.shape[1]) + 3) // 2
    drift = abs(float(packed[:, on_diagonal].sum()) - rank)
    if drift > _LARGEST_DRIFT * rank:
        raise InputError("Columns are too nearly dependent for vcov='CRV3': leave some out, or ask for 'iid'.")

    def named(cluster: int) -> str:
        return source.partition_values[int(lines[cluster, -1])]

    return np.sqrt((count - 1) / count) * _narrow(_left_out(packed, scores, named)), count - 1


def _narrow(lines: FloatArray) -> FloatArray:
    """Return few lines with the same squares in place of many."""
    if len(lines) <= 2 * lines.shape[1]:
        return lines
    # Of very many lines the squares are summed, as those of single rows are: a tenth of the time.
    return _square_root(lines.T @ lines) if len(lines) > _MANY_LINES else triangular_factor(lines)


def _turned(packed: FloatArray, root: FloatArray) -> FloatArray:
    """Return products of the columns of clusters, lower triangles line by line, in the coordinates of the root."""
    rows, columns = np.tril_indices(len(root))
    whole = np.empty((len(packed), len(root), len(root)))
    whole[:, rows, columns] = whole[:, columns, rows] = packed
    rows, columns = np.tril_indices(root.shape[1])
    return np.asarray((root.T @ whole @ root)[:, rows, columns])


def _unpacked(packed: FloatArray, width: int) -> FloatArray:
    """Return the symmetric matrix of which the lower triangle is given, line by line."""
    matrix = np.zeros((width, width))
    matrix[np.tril_indices(width)] = packed
    return matrix + np.tril(matrix, -1).T


def _left_out(packed: FloatArray, scores: FloatArray, named: Callable[[int], str]) -> FloatArray:
    """Return γ without each cluster, less γ: shape (clusters, rank)."""
    rank = scores.shape[1]
    changes, scores = np.empty(scores.shape), np.ascontiguousarray(scores)

    def solve(first: int) -> None:
        here = slice(first, first + _MANY_LINES)
        kernels.leave_out_each(packed[here], scores[here], _LARGE_SHARE, changes[here])

    # Each cluster has a system of its own, whoever solves it.
    with ThreadPoolExecutor(usable_cores()) as pool:
        list(pool.map(solve, range(0, len(scores), _MANY_LINES)))
    # The shares of all clusters add up to the rank, so that few are large.
    for cluster in np.flatnonzero(np.isnan(changes).any(axis=1)).tolist():
        own = _unpacked(packed[cluster], rank)
        others = np.eye(rank) - own
        if np.linalg.eigvalsh(own)[-1] > _LARGE_SHARE:
            # What lies outside a cluster that has nearly all of a direction is added up, not what is left of the
            # identity.
            others = _unpacked(packed[:cluster].sum(axis=0) + packed[cluster + 1 :].sum(axis=0), rank)
            if np.linalg.eigvalsh(others)[0] < _NOTHING:
                raise InputError(
                    f"Without the rows of cluster {named(cluster)!r} the others do not determine all coefficients, and "
                    "vcov='CRV3' leaves out each in turn: ask for 'CRV1', or leave columns out."
                )
        changes[cluster] = -np.linalg.solve(others, scores[cluster])
    return changes
