"""From raw columns (Arrow or NumPy) to NumPy numbers, and to codes of texts."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.sources.base import IntArray
from partsketch.sources.code_kernels import mark

BoolArray = NDArray[np.bool_]

#: What a thread found of the last dictionary.
_kept = threading.local()

#: Rows of which a core makes codes at once, a multiple of them: blocks are cut where parts end.
_PART_ROWS = 1 << 16


def as_numbers(column: Any) -> tuple[NDArray[np.generic], BoolArray | None]:
    """Return the values of a numeric column and where they are null (None: nowhere); a null's value is arbitrary.

    An Arrow column of floats or integers without nulls becomes a view.
    """
    if isinstance(column, np.ndarray):
        return column, None
    if column.null_count == 0 and (viewed := _viewed_types().get(column.type.id)) is not None:
        # Arrow's own conversion would import pandas.
        if len(column) == 0:
            return np.empty(0, viewed), None
        return np.frombuffer(column.buffers()[1], viewed, len(column), column.offset * viewed.itemsize), None
    import pyarrow as pa
    from pyarrow import types

    if types.is_null(column.type):
        return np.zeros(len(column)), np.ones(len(column), dtype=bool)
    if types.is_decimal(column.type):
        column = column.cast(pa.float64())
    elif types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    elif types.is_dictionary(column.type) and not types.is_primitive(column.type.value_type):
        raise InputError(
            "A column that held numbers where the formula was fitted has categories of text: make numbers of it."
        )
    if not column.null_count:
        return column.to_numpy(), None
    null = column.is_null().to_numpy(zero_copy_only=False)
    return column.fill_null(0).to_numpy(zero_copy_only=False), null


@cache
def _viewed_types() -> dict[int, np.dtype[Any]]:
    """Numbers of the Arrow types whose values NumPy can view, and what NumPy calls them."""
    import pyarrow as pa

    # Spelt out, because Arrow's own answer (to_pandas_dtype) imports pandas in versions before 26.
    integers = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    return {getattr(pa, name)().id: np.dtype(name) for name in (*integers, "float16", "float32", "float64")}


class NoTextError(InputError):
    """Values of a column cannot be told apart by their text."""

    def __init__(self, kind: str, name: str = "") -> None:
        what = f"Column '{name}'" if name else "A column that tells rows apart"
        super().__init__(f"{what} has values of type {kind}, which are neither numbers nor text: name another column.")
        self.kind = kind
        self._told = (kind, name)

    def __reduce__(self) -> tuple[type[NoTextError], tuple[str, str]]:
        # Errors travel from worker processes, and are made again from what their constructor was told.
        return type(self), self._told


def as_texts(column: Any) -> tuple[IntArray, list[str]]:
    """Return, for a column whose values have texts, the index of each row's text in a list; -1 where it is missing."""
    if isinstance(column, np.ndarray):
        import pyarrow as pa

        # A fixed-width bytes column of a structured array holds text.
        column = pa.array(column.astype(str) if column.dtype.kind == "S" else np.ascontiguousarray(column))
    import pyarrow as pa
    from pyarrow import types

    try:
        if not types.is_dictionary(column.type):
            text = column if types.is_string(column.type) else column.cast(pa.large_string())
            column = text.dictionary_encode()
        texts = _texts_of(column.dictionary)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise NoTextError(str(column.type)) from error
    indices = column.indices if not column.indices.null_count else column.indices.cast(pa.int64()).fill_null(-1)
    codes = as_numbers(indices)[0].astype(np.int64)
    if None in texts:
        missing = np.array([text is None for text in texts])
        codes = np.where((codes >= 0) & missing[codes], -1, codes)
    return codes, texts


def missing_values(column: Any) -> BoolArray | None:
    """Return where a column has no value; None when it is nowhere. Texts are not looked at one by one."""
    if not isinstance(column, np.ndarray):
        from pyarrow import types

        if types.is_dictionary(column.type) and column.dictionary.null_count:
            return as_texts(column)[0] < 0
        if not types.is_floating(column.type):
            return column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    elif column.dtype.kind not in "f":
        return None
    values, null = as_numbers(column)
    absent = np.isnan(values) if null is None else np.isnan(values) | null
    return absent if absent.any() else None


def distinct_texts(column: Any, kept: BoolArray | None) -> set[str]:
    """Return the texts that occur in a column, in the rows that are kept (None: all)."""
    codes, texts = as_texts(column)
    if kept is not None:
        codes = codes[kept]
    # The first place is for what is missing.
    seen = np.zeros(len(texts) + 1, dtype=bool)
    mark(codes, -1, seen)
    return {texts[code] for code in np.flatnonzero(seen[1:]).tolist()}


def coded(column: Any, code_of: Mapping[str, int]) -> tuple[IntArray, BoolArray, BoolArray | None, list[str]]:
    """Return codes of a text column under a given numbering, where it is missing, and where it is not in it.

    The last value holds the text of every row that is not in the numbering, in order.
    """
    codes, texts = as_texts(column)
    translated = _translation(texts, code_of)[codes]
    if not translated.size or translated.min() >= 0:
        return translated, np.zeros(translated.size, dtype=bool), None, []
    missing = codes < 0
    unknown = (translated < 0) & ~missing
    if not unknown.any():
        return translated, missing, None, []
    return translated, missing, unknown, [texts[code] for code in codes[unknown].tolist()]


def _texts_of(dictionary: Any) -> list[str]:
    """Return the texts of a dictionary; blocks of a table share theirs, and a thread keeps those of the last one."""
    import pyarrow as pa

    known, texts = getattr(_kept, "texts", (None, []))
    if known is None or not dictionary.equals(known):
        texts = dictionary.cast(pa.large_string()).to_pylist()
        _kept.texts = dictionary, texts
    return texts


def _translation(texts: list[str], code_of: Mapping[str, int]) -> IntArray:
    """Return the codes of texts under a numbering, -1 for those that are not in it, and behind the last."""
    known = getattr(_kept, "translation", None)
    if known is None or known[0] is not texts or known[1] is not code_of:
        found = np.array([code_of.get(text, -1) for text in texts] + [-1], dtype=np.int64)
        known = _kept.translation = texts, code_of, found
    return known[2]


def with_codes(column: Any) -> Any:
    """Return a column of texts as codes of one dictionary, if it has few; any other column as it is."""
    import pyarrow as pa
    from pyarrow import types

    if not (types.is_string(column.type) or types.is_large_string(column.type)) or not len(column):
        return column
    # Kernels are loaded where texts are there to be told apart.
    from partsketch.sources.text_codes import MOST_CODED, coded_texts

    # A part of it is made by every core.
    rows = -(-len(column) // pa.cpu_count() // _PART_ROWS) * _PART_ROWS
    chunks = [chunk for first in range(0, len(column), rows) for chunk in column[first : first + rows].chunks]
    with ThreadPoolExecutor(pa.cpu_count()) as pool:
        coded = list(pool.map(coded_texts, chunks))
    if any(part is None for part in coded):
        return column
    whole = pa.chunked_array(coded).unify_dictionaries()
    return whole if len(whole.chunk(0).dictionary) <= MOST_CODED else column
