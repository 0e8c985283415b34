"""One file per workload."""

from benchmarks.workloads import (
    clusters,
    csv_large,
    exact_in_memory,
    exact_wide,
    fast_sketches,
    gaussian_sketch,
    growth,
    parquet_ill_conditioned,
    parquet_large,
    partitions,
    shapes,
    simulation,
    sparse,
    start_up,
)
from benchmarks.workloads.base import Workload

WORKLOADS: dict[str, Workload] = {
    module.WORKLOAD.name: module.WORKLOAD
    for module in (
        gaussian_sketch,
        fast_sketches,
        exact_in_memory,
        exact_wide,
        shapes,
        sparse,
        simulation,
        growth,
        parquet_large,
        parquet_ill_conditioned,
        csv_large,
        partitions,
        clusters,
        start_up,
    )
}
