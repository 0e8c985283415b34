"""Damaged and strange data files: refused in one sentence or read, never changed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tests.attack.case import Case, Fault
from tests.attack.judges import judge_command
from tests.attack.material import FORMATS, ROWS, command, lay_out, numbers, outputs_of, write

#: Commands that read rows.
READERS = (
    "fit", "fit a sketch", "fit averages", "fit to files", "keep", "predict", "predict text", "sketch", "sketch parts",
    "report", "plan", "diagnose", "summarise", "summarise parts", "predict intervals", "fit a formula", "promise",
)  # fmt: skip
HEADERS = (
    b"a,b,y\n", b"a,a,y\n", b",,y\n", b"\xef\xbb\xbfa,b,y\n", "é,b,y\n".encode("latin-1"),
    "a,b,y\n".encode("utf-16"), b"a\0,b,y\n",
    b'"a,b,y\n', b'"a\nb",b,y\n', b"a;b;y\n", b"a\tb\ty\n", b"a,b,y\r", b"a,b,y\r\n", b"y\n", b"a,b,y,\n",
    b"\n\n", b"a,b,y\n\n\n",
    b"1,2,3\n", b" a , b , y \n", b"a,b,y" + b",c" * 3000 + b"\n", "名,b,y\n".encode("shift-jis"), b"\x1b[31ma,b,y\n",
)  # fmt: skip
VALUES = (
    b"1,2,3", b"1,2", b"1,2,3,4", b"", b"x,y,z", b"nan,2,3", b"1e999,2,3", b"-inf,2,3", b"1,,3", b'"1",2,3',
    b"1 ,2,3", b"\xff,2,3",
    b"true,false,1", b"1.2.3,4,5", b"0x1,2,3", b"1e-400,2,3", b'1,"2,3', b"2020-01-01,2,3", b"\0,1,2",
    b"1_0,2,3", b"9" * 400 + b",1,2",
)  # fmt: skip
EXTREMES = (
    0.0,
    -0.0,
    5e-324,
    1e-308,
    1e-200,
    1e154,
    1e155,
    1e200,
    1e308,
    -1e308,
    1.7976931348623157e308,
    np.inf,
    -np.inf,
    np.nan,
    1.0,
    1e16,
)
NPY_SHAPES = (
    "(-5, 4)",
    "(80,-4)",
    "(80, 0)",
    "(0, 4)",
    "(80,)",
    "()",
    "(1<<70, 4)",
    "(9999999999999, 4)",
    "(80, 4, 1)",
    "'x'",
    "(80, 4",
)
NPY_TYPES = (
    "'<f8'",
    "'>f8'",
    "'<c16'",
    "'|O'",
    "'<U8'",
    "'<M8[s]'",
    "'<f2'",
    "'|b1'",
    "'<u8'",
    "'|V8'",
    "'xx'",
    "[('a','<f8')]",
    "[]",
)


def cases(seed: int) -> Iterator[Case]:
    """Yield a reader and a file that is damaged, strange in its header or types, or holds extreme values."""
    draw = random.Random(seed)
    makers: tuple[Callable[[random.Random], tuple[str, Callable[[Path], object]]], ...]
    makers = (_damaged, _damaged, _csv, _csv, _types, _types, _extremes, _extremes, _shapes, _npy)
    while True:
        name, make = draw.choice(makers)(draw)
        reader = draw.choice(READERS)
        extra = draw.choice(([], [], ["--missing", "drop"], ["--no-intercept"], ["--json"]))
        extra = [] if reader == "report" or (reader.startswith("predict") and extra == ["--no-intercept"]) else extra
        yield Case(f"{reader} {extra} of {name}", partial(_attack, reader, extra, name.split()[0], make))


def _attack(reader: str, extra: list[str], format: str, make: Callable[[Path], object], folder: Path) -> Fault | None:
    places = lay_out(folder, format)
    make(Path(places["data"]))
    arguments = [*command(reader, places), *extra]
    if reader.startswith("fit") or reader in ("plan", "diagnose", "keep"):
        arguments = [word for word in arguments if word != "--no-intercept"] + (
            ["--no-intercept"] if "--no-intercept" in extra else []
        )
    return judge_command(arguments, folder, outputs=outputs_of(folder))


def _damaged(draw: random.Random) -> tuple[str, Callable[[Path], object]]:
    format, way, place, size = (
        draw.choice(FORMATS),
        draw.choice(("cut", "flip", "hole", "noise", "twice", "insert", "end")),
        draw.random(),
        draw.choice((1, 4, 64, 700)),
    )
    noise = draw.randbytes(size)

    def damage(path: Path) -> None:
        content = bytearray(path.read_bytes())
        at = int(place * len(content))
        if way == "cut":
            del content[at:]
        elif way == "flip":
            for number, byte in enumerate(noise[:8]):
                content[(at + 997 * number) % len(content)] ^= byte
        elif way in ("hole", "noise"):
            content[at : at + size] = bytes(size) if way == "hole" else noise
        elif way == "twice":
            content += bytes(content)
        else:
            content[at if way == "insert" else len(content) :] = noise + content[at:]
        path.write_bytes(bytes(content))

    return f"{format} with a {way} of {size} at {place:.3f}", damage


def _csv(draw: random.Random) -> tuple[str, Callable[[Path], object]]:
    header, strange, at = draw.choice(HEADERS), draw.choice(VALUES), draw.randrange(40)
    plain = draw.random() < 0.3
    lines = [b"%d,%d,%d" % (number, number * number % 17, number % 5) for number in range(40)]
    lines[at] = lines[at] if plain else strange
    content = (b"a,b,y\n" if draw.random() < 0.5 and not plain else header) + b"\n".join(lines)
    return f"csv {content[:60]!r} with {lines[at]!r}", lambda path: path.write_bytes(content)


def _strange_column(draw: random.Random) -> Any:
    """Return a column of any type that Arrow has."""
    count = list(range(ROWS))
    instants = pa.array(count, pa.int64())
    made: list[Callable[[], Any]] = [
        lambda: instants.cast(pa.timestamp("ns")), lambda: instants.cast(pa.timestamp("s", "UTC")),
        lambda: pa.array(count, pa.int32()).cast(pa.date32()), lambda: instants.cast(pa.duration("ms")),
        lambda: pa.array(count, pa.int32()).cast(pa.time32("s")), lambda: pa.nulls(ROWS),
        lambda: pa.nulls(ROWS, pa.float64()),
        lambda: pa.array([b"\xff"] * ROWS, pa.binary()), lambda: pa.array([[1.0]] * ROWS),
        lambda: pa.array([{"x": 1}] * ROWS), lambda: pa.array([[("k", 1)]] * ROWS, pa.map_(pa.string(), pa.int8())),
        lambda: pa.array([[1.0, 2.0]] * ROWS, pa.list_(pa.float64(), 2)),
        lambda: pa.array(["u"] * ROWS, pa.string_view()),
        lambda: pa.array(["u"] * ROWS).dictionary_encode(), lambda: pa.array(count).dictionary_encode(),
        lambda: pa.array([True, False] * (ROWS // 2)), lambda: pa.array([2**64 - 1] * ROWS, pa.uint64()),
        lambda: pa.array(np.arange(ROWS, dtype=np.float16)), lambda: pa.array(count, pa.decimal128(38, 0)),
        lambda: pa.array([None] * (ROWS - 1) + [1.0]), lambda: pa.array(["1", "x"] * (ROWS // 2)),
        lambda: pa.array(count, pa.int8()), lambda: pa.array([3.0] * ROWS), lambda: pa.array([""] * ROWS),
        lambda: pa.array([None, "a"] * (ROWS // 2)),
    ]  # fmt: skip
    return draw.choice(made)()


def _types(draw: random.Random) -> tuple[str, Callable[[Path], object]]:
    format = draw.choice(("parquet", "feather"))
    column, place = _strange_column(draw), draw.choice(("a", "y", "extra", "both"))
    rows = numbers()
    if place == "extra":
        rows = rows.append_column("extra", column)
    else:
        for name in ("a", "y") if place == "both" else (place,):
            rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    return f"{format} with {place} of type {column.type}", lambda path: write(rows, path)


def _extremes(draw: random.Random) -> tuple[str, Callable[[Path], object]]:
    format = draw.choice(FORMATS)
    rows = {
        name: column.to_numpy().copy() for name, column in zip(("a", "b", "y", "w"), numbers().columns, strict=True)
    }
    done = []
    for name in draw.sample(sorted(rows), draw.choice((1, 1, 2, 4))):
        value, way = draw.choice(EXTREMES), draw.choice(("one", "all", "scale", "some", "copy"))
        with np.errstate(all="ignore"):
            if way == "one":
                rows[name][draw.randrange(ROWS)] = value
            elif way == "all":
                rows[name][:] = value
            elif way == "some":
                rows[name][:: draw.choice((2, 7))] = value
            elif way == "copy":
                rows[name] = rows["a"] * value
            else:
                rows[name] *= value
        done.append(f"{name} {way} {value}")
    return f"{format} with {done}", lambda path: write(pa.table(rows), path)


def _shapes(draw: random.Random) -> tuple[str, Callable[[Path], object]]:
    format, count, width = (
        draw.choice(("parquet", "csv", "feather")),
        draw.choice((0, 1, 2, 3, 4, 5)),
        draw.choice((1, 2, 3, 20, 150)),
    )
    values = np.random.default_rng(draw.randrange(9)).normal(size=(width, count))
    names = ["y", "a", "b", *(f"c{number}" for number in range(width))][:width]
    return f"{format} of {count} rows and {width} columns", lambda path: write(
        pa.table(dict(zip(names, values, strict=True))), path
    )


def _npy(draw: random.Random) -> tuple[str, Callable[[Path], object]]:
    shape, type_name, order = "(80, 4)", "'<f8'", draw.choice(("False", "True", "2", "None"))
    if draw.random() < 0.5:
        shape = draw.choice(NPY_SHAPES)
    else:
        type_name = draw.choice(NPY_TYPES)
    header = f"{{'descr': {type_name}, 'fortran_order': {order}, 'shape': {shape}, }}".ljust(117) + "\n"
    version = draw.choice((b"\x01\x00", b"\x01\x00", b"\x02\x00", b"\x09\x00"))
    length = draw.choice((len(header), len(header), 0, 65535)).to_bytes(2, "little")
    body = np.random.default_rng(0).normal(size=(80, 4)).tobytes()
    return f"npy header {header.strip()}", lambda path: path.write_bytes(
        b"\x93NUMPY" + version + length + header.encode() + body
    )
