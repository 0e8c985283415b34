"""From the sums of a pass to standard errors."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.free_memory import available_memory
from partsketch.common.linalg.blas import triangular_factor
from partsketch.common.linalg.solution import Solution
from partsketch.engines.base import Engine
from partsketch.engines.gather import Collector, make_tasks
from partsketch.engines.run import run_tasks
from partsketch.engines.tolerance import Tolerance
from partsketch.fitting.robust.kept_rows import MANY_CLUSTERS, ClusterSquares, cluster_squares, keeps_rows
from partsketch.fitting.robust.left_out import check_shares, left_out, turned
from partsketch.fitting.robust.scores import ScoreRequest, segment_rows_for
from partsketch.fitting.robust.strips import kept_numbers, takes_clusters
from partsketch.fitting.robust.two_ways import NOT_POSITIVE, two_way_spread
from partsketch.fitting.robust.vcov import CRV, clusters_of, kind_of
from partsketch.fitting.robust.within import Absorbed
from partsketch.model.held import MOST_COLUMNS_WITH_COVARIANCE, lengths, level_held, product_held, root_kept
from partsketch.model.inference import Inference
from partsketch.model.model import Model
from partsketch.model.regression import Regression
from partsketch.model.unseen import unseen_noise, without_noise
from partsketch.sketches.base import SEGMENT_ROWS
from partsketch.sources.base import Source
from partsketch.summaries.partitions import Partitioning
from partsketch.summaries.tasks import Piece

FloatArray = NDArray[np.float64]

#: Above this condition number rows are multiplied with the root of the inverse before they are summed.
_SAFE_CONDITION = 1e3
#: Beyond these sizes of weights and residuals, squares of scores would leave the range of doubles.
_SMALL, _LARGE = 1e-30, 1e30
#: Copies of the sums of clusters at once: two that are merged, the result, and those that wait.
_COPIES = 4


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
        whole, kept = self.over_rows(request), None
        if request.keeps_rows:
            kept = cluster_squares(request, whole, solution.rank, lambda cluster: self.source.partition_values[cluster])
        found = [
            _inference(inference, request, whole, solution, regression, number, self.source, self.absorbed, kept)
            for number, inference in enumerate(model.inferences)
        ]
        told = dict.fromkeys(sentence for _, sentences in found for sentence in sentences)
        record = replace(model.record, warnings=(*model.record.warnings, *told))
        return replace(model, record=record, inferences=tuple(inference for inference, _ in found))

    def _request(self, solution: Solution, regression: Regression) -> ScoreRequest:
        kind, coordinates = kind_of(self.vcov), regression.coordinates
        assert coordinates is not None
        if solution.inverse != "exact":
            raise InputError(f"vcov={self.vcov!r} needs the inverse of an exact factor: fit with route='factor'.")
        ways = len(clusters_of(self.vcov))
        # A column beside that of the levels, or beside another of clusters, has labels of its own.
        clusters = self.source.partition_count if ways else 0
        if self.absorbed is not None and self.absorbed.beside and ways == 1:
            clusters = self.source.cluster_count
        if kind in CRV and clusters < 2:
            raise InputError(f"vcov={self.vcov!r} needs at least two clusters, and the column has one value.")
        units, columns = coordinates.unit[: coordinates.features], sum(solution.coefficients.shape)
        kept = ways == 1 and keeps_rows(columns, clusters, self.source.row_count)
        most = clusters if ways < 2 else _most_pairs(self.source)
        # Products of the columns of few clusters are turned afterwards, which takes no time row by row.
        late = kind == "CRV3" and takes_clusters(solution.coefficients, clusters)
        whitened = kind in ("HC2", "HC3") or (kind == "CRV3" and not late) or solution.condition > _SAFE_CONDITION
        sizes = _residual_units(solution)
        whitened = whitened or bool((sizes != 1).any()) or _is_extreme(np.abs(solution.inverse_root).max(initial=0.0))
        request = ScoreRequest(
            self.partitioning,
            bool(coordinates.free),
            kind,
            coordinates.centre,
            coordinates.unit[coordinates.features :] * sizes,
            np.ascontiguousarray(solution.coefficients / units[:, None] / sizes),
            np.ascontiguousarray(solution.inverse_root / units[:, None]) if whitened else None,
            units,
            clusters,
            SEGMENT_ROWS if kept else segment_rows_for(most),
            self.absorbed,
            kept,
            ways > 1,
        )
        _check_memory(request, len(regression.targets), self.source.row_count, most)
        return request

    def over_rows(self, request: ScoreRequest) -> Piece:
        """Return what one pass over all rows adds up to."""
        tasks = make_tasks(self.source, request.partitioning, segment_rows=request.segment_rows)
        collected = Collector(request, tasks)
        for outcome in run_tasks(self.engine, self.source, request, tasks, range(len(tasks)), Tolerance()):
            collected.add(outcome)
        whole = collected.fold.take(0)
        if whole is None:
            raise InputError(f"There are no rows in {self.source.description}.")
        return whole


def _most_pairs(source: Source) -> int:
    """Return how many pairs of values of two columns there are at most."""
    pairs = source.partition_count * source.cluster_count
    return pairs if source.row_count is None else min(pairs, source.row_count)


def _check_memory(request: ScoreRequest, targets: int, rows: int | None, clusters: int) -> None:
    width = request.width
    numbers = 1 + targets * request.stride + (width * (width + 1) // 2 if request.kind == "CRV3" else 0)
    needed = _COPIES * 8 * clusters * numbers
    if request.keeps_rows:
        assert rows is not None
        numbers = kept_numbers(request.kind, width, targets)
        needed = 8 * rows * numbers
    if needed > available_memory():
        raise InputError(
            f"vcov={request.kind!r} keeps {numbers:,} numbers for each of "
            + (
                f"{rows:,} rows"
                if request.keeps_rows
                else f"{clusters:,} {'pairs of ' if request.both_ways else ''}clusters"
            )
            + f", and {needed / 2**30:.1f} GiB are not free: "
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
    kept: ClusterSquares | None,
) -> tuple[Inference, list[str]]:
    """Return what is known of the coefficients of one target, and what is to be said of it."""
    rows, lost = whole.row_count, solution.rank
    if absorbed is not None:
        lost += absorbed.cost(bool(request.clusters))
    if rows <= lost:
        raise InputError(f"{rows} rows leave no degrees of freedom after rank {lost}.")
    root, positive = solution.inverse_root, True
    # Spreads are lines in coordinates in which the Gram matrix is the identity: β = B γ.
    if request.both_ways:
        spread, counts, positive = two_way_spread(request, whole, root, number)
        freedom = min(counts) - 1
        spread *= np.sqrt(_of_clusters(request.kind, freedom + 1, rows, lost))
    elif request.clusters:
        spread, freedom = _cluster_spread(request, whole, root, lost, number, source, kept)
    else:
        squares = whole.matrices[number]
        spread = _square_root(squares if request.root is not None else root.T @ squares @ root)
        spread *= np.sqrt(rows / (rows - lost)) if request.kind == "HC1" else 1.0
        freedom = rows - lost
    noiseless = without_noise(inference, request.kind, float(freedom))
    if noiseless is not None:
        return noiseless, []
    coordinates = regression.coordinates
    assert coordinates is not None
    size = float(_residual_units(solution)[number])
    directions = coordinates.transformation(number) @ root * size
    # Squares that are turned after they were summed carry rounding times the square of the condition number.
    lost_digits = 1.0 if request.root is not None else solution.condition**2
    most = freedom if request.clusters else len(root.T)
    noise = float(solution.residual_sums[number]) / size / size / rows
    told = [NOT_POSITIVE]
    if positive:
        told = unseen_noise(request.kind, spread, directions, regression.features, most, noise, lost_digits)
    line = spread @ directions.T
    errors = lengths(line)
    if not np.isfinite(errors).all():
        raise InputError(f"vcov={request.kind!r} gives numbers beyond those of doubles: scale the columns.")
    around_centre = spread @ (coordinates.scaling(number) @ root * size).T
    few = len(errors) <= MOST_COLUMNS_WITH_COVARIANCE
    known = replace(
        inference,
        standard_errors=errors,
        degrees_of_freedom=float(freedom),
        covariance=product_held(line) if few else None,
        level_covariance=level_held(around_centre) if coordinates.free and few else None,
        covariance_root=root_kept(around_centre, coordinates, solution.condition) if lost_digits < 1e3 else None,
        reason="",
        vcov=request.kind,
    )
    return known, told


def _is_extreme(size: float) -> bool:
    return size > 0 and not _SMALL < size < _LARGE


def _residual_units(solution: Solution) -> FloatArray:
    """Return powers of two by which residuals of the targets are divided: 1, unless squares would be beyond doubles."""
    sizes = np.sqrt(np.asarray(solution.residual_sums, dtype=np.float64))
    return np.array([float(np.ldexp(1.0, np.frexp(size)[1])) if _is_extreme(size) else 1.0 for size in sizes.tolist()])


def _square_root(squares: FloatArray) -> FloatArray:
    """Return S with SᵀS the given matrix, which is that but for rounding."""
    values, vectors = np.linalg.eigh((squares + squares.T) / 2)
    return np.asarray(np.sqrt(np.clip(values, 0.0, None))[:, None] * vectors.T)


def _of_clusters(kind: str, count: int, rows: int, lost: int) -> float:
    """Return the factor of few clusters and few rows."""
    if count < 2:
        raise InputError("All rows that are used are in one cluster: there must be two at least.")
    return count / (count - 1) * (rows - 1) / (rows - lost) if kind == "CRV1" else (count - 1) / count


def _cluster_spread(
    request: ScoreRequest,
    whole: Piece,
    root: FloatArray,
    lost: int,
    number: int,
    source: Source,
    kept: ClusterSquares | None,
) -> tuple[FloatArray, int]:
    """Return lines whose squares add up to the covariance of γ, and degrees of freedom."""
    lines, width = whole.matrices[0], request.width
    count = len(lines) if kept is None else kept.clusters
    scale = _of_clusters(request.kind, count, whole.row_count, lost)
    if kept is not None:
        squares = kept.squares[number]
        return np.sqrt(scale) * _square_root(
            squares if request.root is not None else root.T @ squares @ root
        ), count - 1
    scores = lines[:, number * request.stride : number * request.stride + width]
    if request.kind == "CRV1":
        if request.root is None:
            # Rows that go to their clusters as they are have the units of the data.
            root = root / request.units[:, None] if request.row_by_row else root
            few = count <= MANY_CLUSTERS
            spread = _narrow(scores @ root) if few else _square_root(root.T @ (scores.T @ scores) @ root)
        else:
            spread = _narrow(scores)
        return np.sqrt(scale) * spread, count - 1
    packed = lines[:, request.coefficients.shape[1] * width : -1]
    if request.root is None:
        packed, scores = turned(packed, root), scores @ root
    on_diagonal = np.arange(root.shape[1]) * (np.arange(root.shape[1]) + 3) // 2
    check_shares(float(packed[:, on_diagonal].sum()), lost)

    def named(cluster: int) -> str:
        return source.partition_values[int(lines[cluster, -1])]

    return np.sqrt(scale) * _narrow(left_out(packed, scores, named)), count - 1


def _narrow(lines: FloatArray) -> FloatArray:
    """Return few lines with the same squares in place of many."""
    if len(lines) <= 2 * lines.shape[1]:
        return lines
    # Of very many lines the squares are summed, as those of single rows are: a tenth of the time.
    return _square_root(lines.T @ lines) if len(lines) > MANY_CLUSTERS else triangular_factor(lines)
