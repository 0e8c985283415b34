"""The two seconds of measuring behind a calibration."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from partsketch.common.linalg.blas import gram, one_thread_each, padded_width, tile_rows_for
from partsketch.engines.gather import gather, guided
from partsketch.engines.local import LocalEngine, usable_cores
from partsketch.planner.calibration import Calibration, timed_kinds
from partsketch.sketches.base import SEGMENT_ROWS, SketchSpecification, get_sketch, sketch_kinds
from partsketch.sketches.random import derive_key, fill_normals
from partsketch.sources import open_source
from partsketch.sources.base import Source
from partsketch.sources.memory.arrays import array_source
from partsketch.summaries.partitions import single_partition
from partsketch.summaries.tasks import SummaryRequest

#: No powers of two, at which transposed copies are slower than at other widths.
_WIDTHS = (8, 24, 56, 104, 248)
_FACTORISED_WIDTHS = (8, 24, 64, 160, 320)
#: One segment, so that nothing is merged; and sketches of two sizes, which show what a larger one costs.
_PROBED_ROWS, _PROBED_WIDTH = SEGMENT_ROWS, 24
_PROBED_SIZES = (96, 6144)
#: Numbers in the rows of which exact summaries are made: 16 MB.
_EXACT_NUMBERS = 2**21
_FILE_ROWS, _FILE_WIDTH = 60_000, 12
_SUMMARIES = 12
_MOST_RUNS = 200
#: The shortest time stands when another run came this close to it.
_AGREEMENT = 1.02


def measure(machine: dict[str, str]) -> Calibration:
    """Time the kernels on this machine."""
    with one_thread_each():
        for kind in sketch_kinds():
            get_sketch(kind).prepare()
        squares = {width: _square_factorisation(width) for width in _FACTORISED_WIDTHS}
        width = 64
        tall = max(_tall_factorisation(width) - squares[width], 0.1 * squares[width])
        copied_byte = _copied_byte()
        sketching = {kind: _sketching(kind, copied_byte) for kind in timed_kinds()}
        return Calibration(
            machine=machine,
            cores=usable_cores(),
            speedup=_speedup(),
            symmetric_product={width: _symmetric_product(width) for width in _WIDTHS},
            exact_row={width: _exact_row(width) for width in _WIDTHS},
            product={width: _product(width) for width in _WIDTHS},
            small_factorisation=squares,
            tall_factorisation=tall / (7 * width * width * width),
            normal=_normal(),
            copied_byte=copied_byte,
            fresh_byte=_fresh_byte(),
            decoded_number=dict(_decoded_numbers()),
            sketched_number={kind: number for kind, (number, _) in sketching.items()},
            sketch_unit={kind: unit for kind, (_, unit) in sketching.items()},
            summary_overhead=_summary_overhead(),
        )


def _best(
    work: Callable[[], object],
    seconds: float = 0.04,
    least: int = 3,
    clock: Callable[[], float] = time.process_time,
) -> float:
    """Return the shortest of several runs within a budget of seconds; the first, which warms up, does not count.

    Work of a single thread is timed by the processor's clock, which other processes disturb less than that on the wall.
    On a quiet machine a few runs agree, and the rest of the budget is saved.
    """
    work()
    end = time.perf_counter() + seconds
    best, second, runs = float("inf"), float("inf"), 0
    while runs < least or (runs < _MOST_RUNS and time.perf_counter() < end):
        start = clock()
        work()
        taken = clock() - start
        best, second = min(best, taken), min(second, max(best, taken))
        runs += 1
        if runs >= 2 * least and second <= _AGREEMENT * best:
            break
    return best


def _numbers(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.random.default_rng(0).standard_normal(shape)


def _tile(width: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    padded = padded_width(width)
    return _numbers(padded, tile_rows_for(padded))


def _symmetric_product(width: int) -> float:
    tile = _tile(width)
    return _best(lambda: gram(tile)) / tile.shape[1]


def _exact_row(width: int) -> float:
    """Return seconds per row of the exact summary of rows in memory, reading included, overheads not."""
    rows = min(SEGMENT_ROWS, _EXACT_NUMBERS // width)
    source, engine = _rows(rows, width - 1), LocalEngine(threads=1)

    def taken(count: int) -> float:
        request = SummaryRequest(SketchSpecification("triangular"), single_partition(count), False)
        return _best(lambda: gather(source, request, engine), least=2)

    few, many = rows // 8, taken(rows)
    return max(many - taken(few), many / 2) / (rows - few)


def _product(width: int) -> float:
    """Return seconds per multiplication and addition of a strip of a random matrix with a tile."""
    tile = _tile(width)
    strip = _numbers(32, tile.shape[1])
    return _best(lambda: strip @ tile.T) / (32 * tile.shape[1] * tile.shape[0])


def _square_factorisation(width: int) -> float:
    matrix = _numbers(width, width)
    return _best(lambda: np.linalg.svd(matrix, full_matrices=False))


def _tall_factorisation(width: int) -> float:
    matrix = _numbers(8 * width, width)
    return _best(lambda: np.linalg.svd(matrix, full_matrices=False))


def _normal() -> float:
    key = derive_key(0, "gaussian")
    rows = np.arange(8192, dtype=np.int64)
    out = np.empty((32, rows.size))
    return _best(lambda: fill_normals(key, 0, rows, 1.0, out)) / out.size


def _copied_byte() -> float:
    """Return seconds per byte of filling tiles from rows of an array that is too large for the caches."""
    rows = _numbers(2_000_000 // 16, 16)
    tile = np.empty((16, 8192))

    def copy() -> None:
        for start in range(0, len(rows) - 8192, 8192):
            tile[:] = rows[start : start + 8192].T

    return _best(copy) / (rows.nbytes * (1 - 8192 / len(rows)))


def _fresh_byte() -> float:
    """Return seconds per byte of writing to new memory for the first time; the array is too large to be recycled."""
    size = 2**25 + 2**20
    return _best(lambda: np.empty(size // 8).fill(1.0), least=2) / size


def _speedup() -> float:
    """Return how much more all cores do than one, in products of tiles."""
    cores = usable_cores()
    if cores == 1:
        return 1.0
    tile = _tile(64)

    def work() -> None:
        for _ in range(8):
            gram(tile)

    wall = time.perf_counter
    alone = _best(work, 0.06, clock=wall)
    with ThreadPoolExecutor(cores) as pool:
        together = _best(
            lambda: [future.result() for future in [pool.submit(work) for _ in range(cores)]], 0.12, clock=wall
        )
    return float(min(max(cores * alone / together, 1.0), cores))


def _decoded_numbers() -> Iterator[tuple[str, float]]:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet

    columns = _numbers(_FILE_WIDTH, _FILE_ROWS)
    table = pa.table({f"x{number}": column for number, column in enumerate(columns)})
    with tempfile.TemporaryDirectory() as folder:
        writers = {"Parquet": pyarrow.parquet.write_table, "Feather": pyarrow.feather.write_feather}
        for name, write in writers.items():
            path = Path(folder) / f"rows.{name.lower()}"
            write(table, path)
            yield name, _reading(path, _FILE_ROWS)
        few = _FILE_ROWS // 10
        path = Path(folder) / "rows.csv"
        pyarrow.csv.write_csv(table.slice(0, few), path)
        yield "CSV", _reading(path, few)


def _reading(path: Path, rows: int) -> float:
    source = open_source(str(path), target="x0")

    def read() -> None:
        for block in source.read(0, None, 32768):
            block.copy_into(np.empty((_FILE_WIDTH, len(block))), 0, len(block))

    return _best(read, 0.06, clock=time.perf_counter) / (rows * _FILE_WIDTH)


def _sketching(kind: str, copied_byte: float) -> tuple[float, float]:
    """Return seconds per number of the data, and per unit of the sketch for every time that it is gone through."""
    source = _rows(_PROBED_ROWS, _PROBED_WIDTH - 1)
    engine = LocalEngine(threads=1)

    def taken(size: int) -> float:
        request = SummaryRequest(
            SketchSpecification(kind, size, 1), single_partition(_PROBED_ROWS), False, row_count=_PROBED_ROWS
        )
        return _best(lambda: gather(source, guided(source, request, engine), engine), least=2)

    small, large = _PROBED_SIZES
    of_small, of_large = taken(small), taken(large)
    per_row = max(0.0, of_large - of_small) / (large - small)
    cost = get_sketch(kind).cost
    each_time = per_row / cost.rounds(_PROBED_ROWS, 1, _PROBED_WIDTH)
    unit = max(0.0, each_time - cost.copied_bytes(_PROBED_WIDTH) * copied_byte) / cost.units(_PROBED_WIDTH)
    return (of_small - per_row * small) / (_PROBED_ROWS * _PROBED_WIDTH), unit


def _summary_overhead() -> float:
    """Return the seconds per partition of a fit whose rows and columns are next to nothing."""
    from partsketch.fitting.fit import fit_source
    from partsketch.fitting.options import FitOptions

    source = _rows(_SUMMARIES * 8, 2)
    options = FitOptions("average", _SUMMARIES, "order", "spread", "gaussian", None, True, 0)
    engine = LocalEngine()
    return _best(lambda: fit_source(source, options, engine), 0.06) / _SUMMARIES


def _rows(count: int, features: int) -> Source:
    values = _numbers(count, features + 1)
    # Rows of their own, as data come: a part of wider rows would be read in a slower way.
    return array_source(values[:, :features].copy(), values[:, features].copy(), None, None, ["y"])
