"""The exact summary: the triangular factor R of a QR decomposition, RᵀR = AᵀA, at the speed of a Gram matrix.

Householder QR is stable but slow on tall blocks; the Gram matrix is fast but squares the condition number. The
accumulator gets both. It starts with the Gram matrix and keeps it while no column is badly explained by the others
(variance inflation factors up to 10⁴, so that at most four of sixteen digits are lost). Otherwise it divides each
tile by the factor R₀ of what came before: A R₀⁻¹ is well conditioned whatever A is, so its Gram matrix H is
harmless, and R₀ᵀR₀ + R₀ᵀ H R₀ is factored anew whenever the number of rows has quadrupled. A tile that is unlike all
before it (H too large) goes through Householder QR together with R₀. Every tile is still in memory when the decision
about it falls, so one pass over the rows is enough in every case.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from partsketch.blas import (
    WIDEST_KERNEL,
    divide_by_triangular,
    gram,
    padded_width,
    triangular_factor,
    triangular_inverse,
    with_positive_diagonal,
)
from partsketch.column_kernels import CHUNK_ROWS, column_addresses
from partsketch.lapack import joined_triangles
from partsketch.sketches.base import (
    Accumulator,
    Columns,
    DenseRows,
    FloatArray,
    IntArray,
    Sketch,
    SketchSpecification,
    Stream,
    dense_rows,
)
from partsketch.sketches.gram_sums import add_scaled_gram, add_tiles_of_columns, add_tiles_of_rows

#: Largest variance inflation factor (times growth of a column) of a feature at which the plain Gram matrix is trusted.
SAFE_INFLATION = 1e4

#: The same for a target, 1 / (1 − R²): it touches the residual sum of squares only, not the coefficients.
SAFE_TARGET_INFLATION = 1e6

#: Largest diagonal entry of H: how many times heavier than all rows before it a direction may be.
_LARGEST_GROWTH = 16.0

#: Directions smaller than this part of their column are lifted to it in the divisor, so that singular data divide too.
#: It is far below what rounding leaves of a dependent column (1e-16 of it, divided by this, squared, stays tiny) and
#: its own rounding, √ε times it, is below the rounding of the column.
_LIFT = 1e-9

#: Columns of a smaller norm have squares that lose digits by underflow: not for the plain Gram matrix.
_SMALLEST_NORM = 1e-140

#: From here on knowing that factors are triangles saves more than calling for it costs.
_MANY_COLUMNS = 64

#: Divisor of a column that has been zero so far; a first non-zero entry then looks huge and takes the Householder way.
_ZERO_COLUMN_DIVISOR = 1e-100


class TriangularAccumulator(Accumulator):
    """Takes tiles, gives the q×q factor."""

    def __init__(self, width: int, targets: int = 1) -> None:
        self._width = width
        self._features, self._targets = width - targets, targets
        self._spare: FloatArray = np.zeros((0, 0))
        self._product = self._chunk = self._spare
        self.restart()

    def restart(self) -> bool:
        """Begin with nothing again."""
        self._scale: FloatArray | None = None  # column norms of the first tile: the unit of the plain Gram matrix
        self._gram: FloatArray | None = None  # plain Gram matrix in these units, while it is trusted
        self._inflation = np.inf
        self._factor: FloatArray | None = None  # R₀, once the plain Gram matrix is not trusted any more
        self._divisor: FloatArray | None = None
        self._pending = np.zeros((0, 0))
        self._pending_rows = 0
        self._factor_rows = 0
        self._workspace: FloatArray | None = None
        return True

    @property
    def uses_plain_gram(self) -> bool:
        """Whether everything so far went through the plain Gram matrix."""
        return self._factor is None

    def add(self, tile: FloatArray, row_numbers: IntArray) -> bool:
        """Take one tile."""
        if self._factor is None:
            product = gram(tile)
            if self._add_plain(product, tile.shape[1]):
                return True
            if not np.isfinite(product).all():
                return False
            self._leave_plain()
        return self._add_divided(tile)

    def add_columns(self, addresses: IntArray, steps: IntArray, tiles: int, tile_rows: int) -> int:
        """Take tiles where they lie, while the plain Gram matrix serves."""
        if self._factor is not None or addresses.size > WIDEST_KERNEL:
            return 0
        product = self._room_for_product(addresses.size)
        return self._add_tiles(
            tiles,
            tile_rows,
            lambda tile: add_tiles_of_columns(
                addresses + tile * steps, steps, tiles - tile, tile_rows, product, *self._trusted()
            ),
        )

    def add_dense_tiles(self, rows: DenseRows, tile_rows: int) -> int:
        """Take tiles of rows where they lie, while the plain Gram matrix serves."""
        padded = padded_width(self._width)
        if self._factor is not None or padded > WIDEST_KERNEL:
            return 0
        if not self._chunk.size:
            # Columns whose distance is no power of two do not compete for the same few places in the cache.
            self._chunk = np.zeros((padded, CHUNK_ROWS + 8))
        work = (self._width - rows.features.shape[1] - self._targets, self._chunk, self._room_for_product(padded))

        def add_from(tile: int) -> int:
            here = slice(tile * tile_rows, None)
            given = (rows.features[here], rows.targets[here], rows.roots[here])
            return add_tiles_of_rows(*given, tile_rows, *work, *self._trusted())  # type: ignore[no-any-return]

        return self._add_tiles(len(rows.features) // tile_rows, tile_rows, add_from)

    def _add_tiles(self, tiles: int, tile_rows: int, add_from: Callable[[int], int]) -> int:
        """Add many tiles at once, those that do not inflate the sum, and look closer at the first that does."""
        tile = 0
        while tile < tiles:
            more = add_from(tile)
            self._factor_rows += more * tile_rows
            tile += more
            if tile < tiles:
                # Its product is still there.
                if not self._add_plain(self._product, tile_rows):
                    break
                tile += 1
        return tile

    def _trusted(self) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """Return the sum so far, its scale, room for another, and its inflation: infinite when there is none."""
        if not self._spare.size:
            self._spare = np.empty((self._width, self._width))
        if self._gram is None or self._scale is None:
            return self._spare, np.ones(self._width), self._spare, np.inf
        return self._gram, self._scale, self._spare, self._inflation

    def _room_for_product(self, width: int) -> FloatArray:
        if len(self._product) != width:
            self._product = np.empty((width, width))
        return self._product

    def trusts_plain_gram(self, tile: FloatArray) -> bool:
        """Tell of a first tile, without taking it, whether its plain Gram matrix is well enough conditioned."""
        return TriangularAccumulator(self._width, self._targets)._add_plain(gram(tile), tile.shape[1])

    def _add_plain(self, product: FloatArray, rows: int) -> bool:
        """Add a tile's Gram matrix, padded or not, if it is finite and the sum stays well enough conditioned."""
        if self._gram is None or self._scale is None:
            with np.errstate(all="ignore"):
                norms = np.sqrt(np.diagonal(product)[: self._width])
                if not norms.min() >= _SMALLEST_NORM:
                    return False
                scale = 1.0 / norms
            total = np.zeros((self._width, self._width))
        else:
            scale, total = self._scale, self._gram
        if not self._spare.size:
            self._spare = np.empty((self._width, self._width))
        candidate = self._spare
        growth = add_scaled_gram(total, product, scale, candidate)
        if growth < 0:
            return False
        # The inverse of a smaller Gram matrix bounds that of a larger one: look again only when the bound fails.
        if growth * self._inflation > 1.0:
            inflation = _inflation(candidate, self._features)
            if growth * inflation > 1.0:
                return False
            self._inflation = inflation
        self._scale, self._gram, self._spare = scale, candidate, total
        self._factor_rows += rows
        return True

    def _leave_plain(self) -> None:
        if self._gram is None or self._scale is None:
            self._set_factor(np.zeros((self._width, self._width)))
            return
        self._set_factor(self._plain_factor())
        self._gram = None

    def _plain_factor(self) -> FloatArray:
        assert self._gram is not None
        assert self._scale is not None
        return np.ascontiguousarray(np.linalg.cholesky(self._gram).T / self._scale)

    def _set_factor(self, factor: FloatArray) -> None:
        norms = np.linalg.norm(factor, axis=0)
        lift = np.where(norms > 0, _LIFT * norms, _ZERO_COLUMN_DIVISOR)
        self._factor = factor
        self._divisor = triangular_factor(factor, np.diag(lift))
        self._pending = np.zeros((self._width, self._width))
        self._factor_rows += self._pending_rows
        self._pending_rows = 0

    def _add_divided(self, tile: FloatArray) -> bool:
        assert self._factor is not None
        rows = tile.shape[1]
        if self._factor_rows > 0:
            assert self._divisor is not None
            if self._workspace is None:
                self._workspace = np.zeros((tile.shape[0], max(rows, 1)))
            if self._workspace.shape[1] < rows:
                self._workspace = np.zeros((tile.shape[0], rows))
            divided = self._workspace[:, :rows]
            np.copyto(divided[: self._width], tile[: self._width])
            with np.errstate(all="ignore"):
                divide_by_triangular(divided[: self._width], self._divisor)
                product = gram(divided)[: self._width, : self._width]
            if np.isfinite(product).all() and np.diagonal(product).max() <= _LARGEST_GROWTH:
                self._pending += product
                self._pending_rows += rows
                enough = self._pending_rows >= 3 * self._factor_rows
                if enough or np.diagonal(self._pending).max() > _LARGEST_GROWTH:
                    self._fold_pending()
                return True
        values = tile[: self._width].T
        if not np.isfinite(values).all():
            return False
        self._fold_pending()
        self._pending_rows = rows
        self._set_factor(triangular_factor(self._factor, values))
        return True

    def _fold_pending(self) -> None:
        """Replace R₀ by the factor of R₀ᵀR₀ + MᵀHM, M being the divisor."""
        assert self._factor is not None
        if self._pending_rows == 0:
            return
        assert self._divisor is not None
        try:
            root = np.linalg.cholesky(self._pending).T
        except np.linalg.LinAlgError:
            values, vectors = np.linalg.eigh(self._pending)
            root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        self._set_factor(triangular_factor(self._factor, root @ self._divisor))

    def finish(self) -> FloatArray:
        """Return R with RᵀR = AᵀA and a diagonal that is not negative."""
        if self._gram is not None and self._factor is None:
            return self._plain_factor()
        if self._factor is None:
            self._leave_plain()
        self._fold_pending()
        assert self._factor is not None
        return self._factor


def _inflation(matrix: FloatArray, features: int) -> float:
    """Return the largest inverse diagonal entries of features and targets, in units of what is safe for each.

    Infinity when the matrix is not positive definite.
    """
    try:
        inverse_root = triangular_inverse(np.asarray(np.linalg.cholesky(matrix), dtype=np.float64), lower=True)
    except np.linalg.LinAlgError:
        return float(np.inf)
    squares = inverse_root * inverse_root
    # The leading block of a triangular inverse is the inverse of the leading block: features judged without targets.
    of_features = squares[:features, :features].sum(axis=0).max(initial=0.0) / SAFE_INFLATION
    of_targets = squares[:, features:].sum(axis=0).max(initial=0.0) / SAFE_TARGET_INFLATION
    largest = float(max(of_features, of_targets))
    return largest if np.isfinite(largest) else float(np.inf)


class TriangularSketch(Sketch):
    """The factor R of all rows: a sketch of q rows without distortion."""

    kind = "triangular"
    is_random = False
    has_exact_theory = True
    # The kernel for few columns wants columns.
    row_tiles_from = WIDEST_KERNEL + 1

    def accumulator(self, specification: SketchSpecification, stream: Stream, columns: Columns) -> Accumulator:
        """Return an empty accumulator; rows of every stream are treated alike."""
        return TriangularAccumulator(columns.width, columns.targets)

    def prepare(self) -> None:
        """Load the compiled code."""
        rows = np.random.default_rng(0).normal(size=(12, 4))
        accumulator = TriangularAccumulator(4)
        accumulator.add_dense_tiles(dense_rows(rows, 1), 6)
        columns = np.ascontiguousarray(rows.T)
        accumulator.add_columns(column_addresses(columns), np.zeros(4, dtype=np.int64), 1, 12)
        accumulator.add(columns, np.arange(12))

    def merge(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Factor the two factors again."""
        if first.shape[1] < _MANY_COLUMNS or not (_is_triangle(first) and _is_triangle(second)):
            return triangular_factor(first, second)
        return with_positive_diagonal(joined_triangles(first, second))


def _is_triangle(matrix: FloatArray) -> bool:
    """Tell whether a factor is the square upper triangle that it should be: files of others may hold anything."""
    return matrix.shape[0] == matrix.shape[1] and not np.tril(matrix, -1).any()
