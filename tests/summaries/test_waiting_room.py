"""Pieces that wait long wait in a file: the sums have the bits that they have in memory."""

from __future__ import annotations

import errno
import tempfile
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from partsketch.summaries.merge import PieceFold
from partsketch.summaries.tasks import Piece
from partsketch.summaries.waiting_room import WaitingRoom

SUMS: Any = SimpleNamespace(
    merge_all=lambda first, second: tuple(one + other for one, other in zip(first, second, strict=True)),
)
#: Bytes of the matrices of a piece.
EACH = 8 * (12 + 2)


def pieces(count: int) -> list[Piece]:
    rng = np.random.default_rng(3)
    return [
        Piece(
            partition=int(segment % 2),
            segment=segment // 2,
            matrices=(rng.normal(size=(4, 3)), rng.normal(size=(1, 2))),
            row_count=segment,
            weight_sum=0.1 * segment,
            target_range=np.array([[-1.0 * segment], [2.0 * segment]]),
        )
        for segment in range(count)
    ]


def folded(room: WaitingRoom | None) -> list[Piece]:
    """Merge pieces of two partitions of which every tenth comes after all others, which come in any order."""
    given = pieces(400)
    order = np.random.default_rng(4).permutation(400).tolist()
    fold = PieceFold(SUMS, room=room)
    for number in [n for n in order if n % 10] + [n for n in order if not n % 10]:
        fold.add(given[number])
        if number == order[-1]:
            # Whoever looks at what waits changes nothing.
            assert all(len(piece.matrices) == 2 for piece in fold.pieces())
    found = [fold.take(partition) for partition in (0, 1)]
    assert all(piece is not None for piece in found)
    return [piece for piece in found if piece is not None]


def assert_same(found: list[Piece], expected: list[Piece]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert [matrix.tobytes() for matrix in one.matrices] == [matrix.tobytes() for matrix in other.matrices]
        assert (one.row_count, one.weight_sum) == (other.row_count, other.weight_sum)
        assert np.array_equal(one.target_range, other.target_range)


@pytest.mark.parametrize("most", [1, 6, 40])
def test_sums_have_the_same_bits_and_few_pieces_wait_in_memory(most: int) -> None:
    room = WaitingRoom(most * EACH)
    assert_same(folded(room), folded(None))
    assert room.most_parked >= 20
    # Where pieces were read back others are written: the file holds no more than waited at the same time.
    assert room.file_bytes == room.most_parked * EACH


def test_with_room_for_all_nothing_is_written() -> None:
    room = WaitingRoom(400 * EACH)
    assert_same(folded(room), folded(None))
    assert room.most_parked == room.file_bytes == 0


@pytest.mark.parametrize("writes", [0, 5])
def test_where_nothing_can_be_written_pieces_stay_in_memory(writes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder for the file, or a disk that is full after some pieces."""

    class Full:
        def __init__(self, file: Any) -> None:
            self._file, self._left = file, writes
            self.seek, self.readinto, self.close = file.seek, file.readinto, file.close

        def write(self, data: Any) -> int:
            self._left -= 1
            if self._left < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            return int(self._file.write(data))

    made = tempfile.TemporaryFile
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **options: Full(made(**options)))
    room = WaitingRoom(6 * EACH)
    assert_same(folded(room), folded(None))
    assert room.most_parked == writes // 2
