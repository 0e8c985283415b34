"""A CSV file read on all cores: cut at ends of lines outside quotes, parsed side by side, delivered in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.compiled import compiled
from partsketch.sources.files.csv_numbers import PADDING, may_be_plain, plain_batch
from partsketch.sources.files.csv_stream import csv_options, open_csv, separator_of
from partsketch.sources.files.paths import DataFiles

#: Text that a thread parses at once: long enough that handing it over costs little, a few of them are held.
CHUNK_BYTES = 1 << 22

#: Text without an end of a line outside quotes that is held before the plain way is tried.
_LONGEST_LINE = 1 << 26

_MOST_THREADS = 8

#: Chunks that a file has at least before compiled code is loaded for the others: 32 MB. To compile it, once after an
#: installation, takes longer than to parse them.
FIRST_CHUNKS = 8

#: A byte order mark: the parser would take it off every chunk, and it belongs to the value where the file goes on.
_MARK = b"\xef\xbb\xbf"

_QUOTE, _LINE_FEED, _RETURN = ord('"'), ord("\n"), ord("\r")


def csv_batches(data_files: DataFiles, index: int, types: dict[str, Any], names: Sequence[str]) -> Iterator[Any]:
    """Yield the batches of these columns with these types, as the stream of `open_csv` does, parsed on all cores.

    A file of one chunk is read plainly. Whatever goes wrong is left to the plain way too, which knows the numbers of
    lines: it reads the file again, and what has been delivered is left out.
    """
    import pyarrow as pa

    delivered = 0
    try:
        for batch in parsed_chunks(data_files, index, types, names):
            yield batch
            delivered += batch.num_rows
        return
    except (pa.ArrowInvalid, _PlainlyError):
        pass
    with open_csv(data_files, index, types, names) as reader:
        for batch in reader:
            left_out = min(delivered, batch.num_rows)
            delivered -= left_out
            if left_out < batch.num_rows:
                yield batch.slice(left_out)


class _PlainlyError(Exception):
    """Raised when a file is better read the plain way."""


def parsed_chunks(data_files: DataFiles, index: int, types: dict[str, Any], names: Sequence[str]) -> Iterator[Any]:
    """Yield the record batches of one file, parsed chunk by chunk by several threads, in the order of the rows."""
    import pyarrow as pa
    from pyarrow import csv

    read_options, parse_options, convert_options = csv_options(data_files, index, types, names)

    separator = separator_of(data_files, index)
    plain = all(kind == pa.float64() for kind in types.values()) and may_be_plain(separator, data_files.csv.decimal)

    def parsed(chunk: bytes | memoryview, columns: Sequence[str], number: int = 0) -> list[Any]:
        if plain and number >= FIRST_CHUNKS and isinstance(chunk, memoryview):
            batch = plain_batch(chunk, separator, columns, names)
            if batch is not None:
                spare.append(chunk.obj)  # type: ignore[arg-type]
                return [batch]
        if number and chunk[:3] == _MARK:
            raise _PlainlyError
        options = csv.ReadOptions(use_threads=False, block_size=len(chunk) + 1, column_names=list(columns))
        return csv.read_csv(pa.BufferReader(chunk), options, parse_options, convert_options).to_batches()  # type: ignore[no-any-return]

    spare: list[bytearray] = []
    with data_files.filesystem().open_input_stream(data_files.paths[index]) as stream:
        chunks = cut_at_lines(stream, ord(separator), spare)
        first: bytes | memoryview = next(chunks, b"")
        # Short of a whole chunk: there is nothing to share out.
        if len(first) < CHUNK_BYTES // 2:
            raise _PlainlyError
        columns = list(read_options.column_names)
        threads = min(pa.cpu_count(), _MOST_THREADS)
        under_way: deque[Future[list[Any]]] = deque()
        with ThreadPoolExecutor(threads, "partsketch-csv") as pool:
            try:
                under_way.append(pool.submit(parsed, first, columns))
                if not columns:
                    with csv.open_csv(pa.BufferReader(first), parse_options=parse_options) as reader:
                        columns = reader.schema.names
                for number, chunk in enumerate(chunks, 1):
                    under_way.append(pool.submit(parsed, chunk, columns, number))
                    if len(under_way) > threads + 1:
                        yield from under_way.popleft().result()
                while under_way:
                    yield from under_way.popleft().result()
            finally:
                for waiting in under_way:
                    waiting.cancel()


def cut_at_lines(stream: Any, separator: int, spare: list[bytearray]) -> Iterator[bytes | memoryview]:
    """Yield text that ends where a line ends; the last may not.

    Whoever is done with a text may put what holds it among those to `spare`: fresh memory must be cleared first.
    """
    rest = b""
    while True:
        # As much again as did not hold the end of a line, so that a long one is not looked through again and again.
        # Read behind what was left over: nothing is copied once more.
        room = len(rest) + max(CHUNK_BYTES, len(rest))
        text = spare.pop() if spare else bytearray()
        if len(text) < room + PADDING:
            text = bytearray(room + PADDING + CHUNK_BYTES // 64)
        text[: len(rest)] = rest
        read = stream.readinto(memoryview(text)[len(rest) : room])
        if not read:
            if rest.strip():
                yield rest
            return
        size = len(rest) + read
        if text.find(b'"', 0, size) >= 0:
            end = _after_last_line(np.frombuffer(text, np.uint8, size), separator)
        else:
            end = text.rfind(b"\n", 0, size) + 1
        if end == 0 and size > _LONGEST_LINE:
            raise _PlainlyError
        # Nothing but blank lines is no chunk; seldom is it worth looking at all of them.
        if end and not (text[: min(end, 256)].isspace() and text[:end].isspace()):
            yield memoryview(text)[:end]
        rest = bytes(text[end:size])


@compiled
def _after_last_line(text: NDArray[np.uint8], separator: int) -> int:
    """Return the place after the last end of a line that is not within quotes; a quote within a value is no such."""
    last = place = 0
    begins, quoted = True, False
    while place < text.size:
        here = text[place]
        if quoted:
            if here == _QUOTE:
                if place + 1 < text.size and text[place + 1] == _QUOTE:
                    place += 1
                else:
                    quoted = False
        elif here == _QUOTE and begins:
            quoted, begins = True, False
        else:
            begins = here in (separator, _LINE_FEED, _RETURN)
            if here == _LINE_FEED:
                last = place + 1
        place += 1
    return last
