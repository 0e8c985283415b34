"""Where pieces wait that wait long for their neighbours in the tree: a file without a name, not memory.

Sums depend on their order, so a piece whose neighbour is late cannot be merged with another one. Of a hundred thousand
tasks of which a thousand are late some five thousand pieces wait, gigabytes where columns are many.
"""

from __future__ import annotations

import tempfile
import weakref
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from io import FileIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.summaries.tasks import Piece

FloatArray = NDArray[np.float64]

#: Bytes of the pieces of one partition that wait in memory; those that have waited longest go beyond it.
MOST_BYTES = 2**28


@dataclass(frozen=True)
class _Parked(Piece):
    """A piece whose matrices are in the file: where each begins, and its shape."""

    places: tuple[tuple[int, tuple[int, ...]], ...] = ()


class WaitingRoom:
    """Keeps matrices of pieces in a file of the system's temporary folder, which is gone with this room.

    Where nothing can be written, pieces stay in memory.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._file: FileIO | None = None
        self._is_usable = True
        #: Length of the file, and most pieces that were in it at the same time.
        self.file_bytes = self.most_parked = 0
        self._all_parked = 0
        self._free: defaultdict[int, list[int]] = defaultdict(list)
        self._parked: Counter[int] = Counter()

    def staying(self, waiting: int, one: Piece) -> int | None:
        """Return how many of the pieces of its partition that wait, all as large as this one, should stay in memory.

        None while there is room for all; then half of what there is room for, so that few additions find none.
        """
        most = max(2, self._most_bytes // max(1, sum(matrix.nbytes for matrix in _all_matrices(one))))
        return most // 2 if self._is_usable and waiting - self._parked[one.partition] > most else None

    def parked(self, piece: Piece) -> Piece:
        """Return the piece without its matrices, which are in the file; the piece itself if they cannot be."""
        if isinstance(piece, _Parked) or not self._is_usable or not all(map(_is_plain, _all_matrices(piece))):
            return piece
        try:
            places = tuple((self._written(matrix), matrix.shape) for matrix in _all_matrices(piece))
        except OSError:
            # What has been written before is still there.
            self._is_usable = False
            return piece
        self._parked[piece.partition] += 1
        self._all_parked += 1
        self.most_parked = max(self.most_parked, self._all_parked)
        return _Parked(**_with_matrices(piece, ()), places=places)

    def looked_at(self, piece: Piece) -> Piece:
        """Return a piece with its matrices, whether it was parked or not; parked ones stay in the file too."""
        if not isinstance(piece, _Parked):
            return piece
        return Piece(**_with_matrices(piece, tuple(self._read(*place) for place in piece.places)))

    def fetched(self, piece: Piece) -> Piece:
        """Return the same, and use its place in the file for others."""
        found = self.looked_at(piece)
        if isinstance(piece, _Parked):
            self._parked[piece.partition] -= 1
            self._all_parked -= 1
            for matrix, (place, _) in zip(_all_matrices(found), piece.places, strict=True):
                self._free[matrix.nbytes].append(place)
        return found

    def _written(self, matrix: FloatArray) -> int:
        if self._file is None:
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (closed with this room)
            weakref.finalize(self, self._file.close)
        free = self._free[matrix.nbytes]
        place = free[-1] if free else self.file_bytes
        self._file.seek(place)
        if self._file.write(np.ascontiguousarray(matrix).data) != matrix.nbytes:
            raise OSError("nothing more can be written")
        if free:
            free.pop()
        else:
            self.file_bytes += matrix.nbytes
        return place

    def _read(self, place: int, shape: tuple[int, ...]) -> FloatArray:
        assert self._file is not None
        matrix = np.empty(shape)
        self._file.seek(place)
        if self._file.readinto(matrix.data) != matrix.nbytes:
            raise OSError("the temporary file of waiting pieces was cut short")
        return matrix


def _all_matrices(piece: Piece) -> tuple[FloatArray, ...]:
    """Return the matrices of a piece, that of the sums beside it last."""
    return piece.matrices + (() if piece.beside is None else piece.beside.matrices)


def _with_matrices(piece: Piece, matrices: tuple[FloatArray, ...]) -> dict[str, Any]:
    """Return the values of a piece with other matrices, in the order of `_all_matrices`."""
    values = {name: getattr(piece, name) for name in Piece.__dataclass_fields__}
    if piece.beside is not None:
        values["beside"] = replace(piece.beside, matrices=matrices[-1:])
        matrices = matrices[:-1]
    return {**values, "matrices": matrices}


def _is_plain(matrix: FloatArray) -> bool:
    return isinstance(matrix, np.ndarray) and matrix.dtype == np.float64 and matrix.size > 0
