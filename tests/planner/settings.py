"""A made-up machine and made-up sizes: nothing in these tests depends on how fast this one is."""

from __future__ import annotations

from partsketch.planner.calibration import Calibration
from partsketch.sketches.base import sketch_kinds

KINDS = sketch_kinds()

MACHINE = Calibration(
    machine={"processor": "imaginary"},
    cores=4,
    speedup=3.0,
    symmetric_product={8: 1e-8, 64: 2e-7, 256: 3e-6},
    exact_row={8: 2e-8, 64: 3e-7, 256: 4e-6},
    product={8: 1e-10, 64: 6e-11, 256: 5e-11},
    small_factorisation={8: 1e-5, 64: 4e-4, 160: 4e-3},
    tall_factorisation=5e-10,
    normal=2e-9,
    copied_byte=2e-10,
    fresh_byte=1e-9,
    decoded_number={"Parquet": 1.5e-8, "Feather": 3e-9, "CSV": 2e-7},
    sketched_number={kind: 3e-9 for kind in KINDS if kind != "gaussian"},
    sketch_unit={kind: 1e-9 for kind in KINDS if kind != "gaussian"},
    summary_overhead=6e-4,
)
