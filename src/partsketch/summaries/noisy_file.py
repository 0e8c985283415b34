"""Files of noisy summaries (.psk, format version 4): a JSON header, the sums of products, a checksum.

A file may come from anybody: it is read as strictly as other sketch files, and a promise that its noise does not keep
is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.plain_data import FieldError, read_as
from partsketch.common.reading import ordinary_file
from partsketch.sources.encoding import NOTHING_ENCODED, Encoding
from partsketch.sources.formula.design import Design
from partsketch.summaries.file import MAGIC, NOISY_VERSION
from partsketch.summaries.file_header import name_fault, parse
from partsketch.summaries.file_rules import HeaderError
from partsketch.summaries.noisy_summary import ColumnBounds, NoisySummary, Promise, noise_of
from partsketch.summaries.provenance import About
from partsketch.summaries.tasks import INTERCEPT

KIND = "noisy_products"
NEIGHBOURS = "one row added or removed"
MECHANISM = "discrete Gaussian, analytic calibration"
#: Columns of a file: sums of products of more would drown in their noise.
MOST_NOISY_COLUMNS = 2**10
LARGEST_HEADER = 2**22
#: What may be said twice may differ by rounding, with a wide margin.
_ROUNDING = 1e-9

#: More rows than any file stands for.
_MOST_ROWS = 2.0**53

_PREFIX = struct.Struct("<8sII")
_DIGEST_BYTES = 32


@dataclass(frozen=True)
class _Header:
    """The header, as JSON has it."""

    kind: str
    columns: tuple[str, ...]
    targets: tuple[str, ...]
    levels: tuple[tuple[str, tuple[str, ...]], ...]
    drop_first: bool
    design: Design | None
    bounds: tuple[ColumnBounds, ...]
    promise: Promise
    neighbours: str
    mechanism: str
    site: str
    label: str
    release: str


def is_noisy(prefix: bytes) -> bool:
    """Whether a file that begins so is one of noisy sums."""
    if len(prefix) < _PREFIX.size:
        return False
    magic, version, _ = _PREFIX.unpack(prefix[: _PREFIX.size])
    return bool(magic == MAGIC and version == NOISY_VERSION)


def to_bytes(summary: NoisySummary) -> bytes:
    """Return a noisy summary as a file."""
    encoding = summary.about.encoding
    header = _Header(
        kind=KIND,
        columns=summary.columns,
        targets=summary.about.targets,
        levels=encoding.levels,
        drop_first=encoding.drop_first,
        design=encoding.design,
        bounds=summary.bounds,
        promise=summary.promise,
        neighbours=NEIGHBOURS,
        mechanism=MECHANISM,
        site=summary.site,
        label=summary.label,
        release=summary.release,
    )
    try:
        _check(header)
        _check_numbers(header, summary.products)
    except HeaderError as error:
        raise InputError(f"The noisy summary cannot be written to a file: {error}.") from error
    text = json.dumps(asdict(header), sort_keys=True, ensure_ascii=False).encode()
    content = _PREFIX.pack(MAGIC, NOISY_VERSION, len(text)) + text + summary.products.astype("<f8").tobytes()
    return content + hashlib.sha256(content).digest()


def load(path: Path) -> NoisySummary:
    """Read a file."""
    with ordinary_file(path) as (file, size):
        largest = _PREFIX.size + LARGEST_HEADER + 8 * MOST_NOISY_COLUMNS**2 + _DIGEST_BYTES
        if size > largest:
            raise InputError(f"{path} has {size} bytes: files of noisy sums have at most {largest}.")
        return from_bytes(file.read(largest + 1), str(path))


def from_bytes(data: bytes, name: str) -> NoisySummary:
    """Read what `to_bytes` wrote; `name` is used in messages."""
    if not data.startswith(MAGIC):
        raise InputError(f"{name} is not a partsketch sketch file.")
    if len(data) >= _PREFIX.size and not is_noisy(data):
        raise InputError(f"{name} holds no noisy sums of products: it is a sketch or an exact summary.")
    try:
        return _read(data)
    except HeaderError as error:
        raise InputError(f"{name} is damaged or not a valid file of noisy sums: {error}.") from error


def _read(data: bytes) -> NoisySummary:
    if len(data) < _PREFIX.size:
        raise HeaderError("it is cut short")
    _, _, header_bytes = _PREFIX.unpack(data[: _PREFIX.size])
    if header_bytes > LARGEST_HEADER:
        raise HeaderError(f"its header has {header_bytes} bytes, more than {LARGEST_HEADER}")
    start = _PREFIX.size + header_bytes
    if len(data) < start + _DIGEST_BYTES:
        raise HeaderError("it is cut short")
    header = _header(parse(data[_PREFIX.size : start]))
    _check(header)
    count = len(header.columns)
    if len(data) != start + 8 * count**2 + _DIGEST_BYTES:
        raise HeaderError("its size is not what its header says")
    if hashlib.sha256(data[:-_DIGEST_BYTES]).digest() != data[-_DIGEST_BYTES:]:
        raise HeaderError("its contents do not match its checksum")
    products = np.frombuffer(data[start:-_DIGEST_BYTES], dtype="<f8").reshape(count, count).astype(np.float64)
    _check_numbers(header, products)
    nothing = not header.levels and header.design is None
    encoding = NOTHING_ENCODED if nothing else Encoding(header.levels, header.drop_first, header.design)
    about = About(header.targets, encoding, private=True, rows_dropped=None)
    return NoisySummary(
        products, header.columns, header.bounds, header.promise, header.site, header.label, header.release, about
    )


def _header(values: dict[str, Any]) -> _Header:
    try:
        header: _Header = read_as(_Header, values, "header", {})
    except (FieldError, RecursionError) as error:
        raise HeaderError(str(error)) from error
    return header


def _check(header: _Header) -> None:
    """Refuse what breaks a rule of the format."""
    for found, wanted, what in (
        (header.kind, KIND, "kind"),
        (header.neighbours, NEIGHBOURS, "neighbours"),
        (header.mechanism, MECHANISM, "mechanism"),
    ):
        if found != wanted:
            raise HeaderError(f"its {what} is not {wanted!r}")
    _check_names(header)
    _check_encoding(header)
    _check_promise(header)


def _check_numbers(header: _Header, products: NDArray[np.float64]) -> None:
    if not np.isfinite(products).all():
        raise HeaderError("its numbers are not all finite")
    if not np.array_equal(products, products.T):
        raise HeaderError("its sums of products are not symmetric")
    if np.abs(products).max() > _MOST_ROWS * header.promise.norm**2 + 100 * header.promise.noise:
        raise HeaderError("its numbers are larger than those of any rows within its bounds")


def _check_names(header: _Header) -> None:
    columns = header.columns
    if not 2 <= len(columns) <= MOST_NOISY_COLUMNS:
        raise HeaderError(f"it has {len(columns)} columns: 2 to {MOST_NOISY_COLUMNS} are allowed")
    if columns[0] != INTERCEPT or len(set(columns)) != len(columns):
        raise HeaderError("its columns are not distinct, the first '(intercept)'")
    targets = header.targets
    if not set(targets) <= set(columns[1:]) or len(set(targets)) != len(targets):
        raise HeaderError("'targets' are not distinct names among its columns")
    levels = (text for column, names in header.levels for text in (column, *names))
    for text in (*columns, header.site, header.label, *levels):
        if name_fault(text) is not None:
            raise HeaderError(f"a name in it {name_fault(text)}")
    if len(header.release) != 32 or set(header.release) - set("0123456789abcdef"):
        raise HeaderError("'release' is not 32 hexadecimal digits")


def _check_encoding(header: _Header) -> None:
    columns, design = set(header.columns), header.design
    if design is not None:
        try:
            design.check()
        except InputError as error:
            raise HeaderError(f"'design' cannot be: {error}") from error
        made = {*design.feature_names, *design.target_names}
        if header.levels or not made <= columns or header.drop_first != design.intercept:
            raise HeaderError("'design' makes other columns than it has")
        return
    if not header.levels and not header.drop_first:
        raise HeaderError("'drop_first' is false, yet nothing is encoded")
    encoded = [column for column, _ in header.levels]
    if len(set(encoded)) != len(encoded) or columns & set(encoded):
        raise HeaderError("'levels' names a column twice, or one that is not encoded")
    for column, names in header.levels:
        if not names or len(set(names)) != len(names):
            raise HeaderError("'levels' are not distinct, at least one for each column")
        if not columns.issuperset(f"{column}={name}" for name in names[int(header.drop_first) :]):
            raise HeaderError("'levels' has a level without a column")


def _check_promise(header: _Header) -> None:
    if len(header.bounds) != len(header.columns) - 1:
        raise HeaderError("'bounds' are not one for each column but the ones")
    targets, promise = set(header.targets), header.promise
    squares, reaches = 0.0, 0.0
    for name, bounds in zip(header.columns[1:], header.bounds, strict=True):
        if not bounds.lower <= bounds.centre <= bounds.upper or bounds.lower == bounds.upper or bounds.spread <= 0:
            raise HeaderError(f"the bounds of column {name!r} are not lower, centre, upper and a positive spread")
        if bounds.factor <= 0 or (name not in targets and bounds.factor != 1) or not 0 < bounds.reach < 1e150:
            raise HeaderError(f"the factor of column {name!r} cannot be")
        squares += bounds.reach**2 * (name in targets)
        reaches += bounds.reach**2 * (name not in targets)
    if not 0 < promise.clip <= math.sqrt(1 + reaches) * (1 + _ROUNDING):
        raise HeaderError("'clip' is not between zero and the largest norm that bounds allow")
    # Squares beyond 1e300 are no numbers any more.
    if not 0 < promise.norm < 1e150 or abs(promise.norm**2 - promise.clip**2 - squares) > _ROUNDING * promise.norm**2:
        raise HeaderError("'norm' is not that of rows clipped so")
    try:
        needed = noise_of(promise.epsilon, promise.delta, promise.norm, len(header.columns))
    except InputError as error:
        raise HeaderError(f"its promise cannot be: {str(error).rstrip('.')}") from error
    if abs(promise.noise - needed) > 1e-6 * needed:
        raise HeaderError("'noise' is not what its promise takes")
