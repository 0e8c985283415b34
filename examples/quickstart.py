"""One pass over the rows, then ten regressions with robust errors; and what sketches of the same rows lose.

The rows come with the package: 20,640 districts of California in the census of 1990. Districts near one another are
alike, so standard errors take squares of one degree for clusters.
"""

from __future__ import annotations

import time
from importlib.resources import files
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

import partsketch as ps

OTHERS = ["HouseAge", "AveRooms", "AveBedrms", "Population", "AveOccup"]


def districts() -> pa.Table:
    """Return the rows, and which square of one degree each lies in."""
    with files("partsketch.paper").joinpath("data", "house.parquet").open("rb") as file:
        rows = pq.read_table(file)
    squares = zip(rows["Latitude"].to_numpy().round(), rows["Longitude"].to_numpy().round(), strict=True)
    return rows.append_column("square", pa.array([f"{north:.0f}N {-west:.0f}W" for north, west in squares]))


def ten_regressions(summaries: ps.Summaries) -> tuple[list[str], list[ps.Model], float]:
    """Fit the value of houses to income and every pair of the other columns, from the summaries alone."""
    pairs = [list(pair) for pair in combinations(OTHERS, 2)]
    started = time.perf_counter()
    models = [summaries.fit("MedHouseVal", ["MedInc", *pair], vcov="CRV1") for pair in pairs]
    return [" + ".join(pair) for pair in pairs], models, time.perf_counter() - started


def main() -> None:
    console = Console(width=110, highlight=False)
    rows = districts()
    ps.summarise(rows, partition_by="square")  # loads the compiled code, so that times are of the work alone
    started = time.perf_counter()
    summaries = ps.summarise(rows, partition_by="square")
    pass_seconds = time.perf_counter() - started

    names, models, seconds = ten_regressions(summaries)
    console.print(
        f"One pass over {rows.num_rows:,} rows ({1000 * pass_seconds:.0f} ms), then {len(models)} regressions from "
        f"{len(summaries)} small summaries ({1000 * seconds:.0f} ms in all), with cluster-robust errors:\n"
    )
    shown = Table(title="What a unit of income adds to the value of houses, beside two other columns")
    shown.add_column("beside")
    for heading in ("coefficient", "robust error", "classical error", "R²"):
        shown.add_column(heading, justify="right")
    for name, model in zip(names, models, strict=True):
        plain = summaries.fit("MedHouseVal", list(model.feature_names))
        place = model.column_names.index("MedInc")
        row = model.summary().rows[place].cells()
        classical = f"{plain.standard_errors[place]:.5f}"
        shown.add_row(name, row[0], row[1], classical, f"{model.inferences[0].r_squared:.3f}")
    console.print(shown)

    console.print("\nAll columns, common intercept and one per square:\n")
    pooled = summaries.fit("MedHouseVal", ["MedInc", *OTHERS], vcov="CRV1")
    within = summaries.fit("MedHouseVal", ["MedInc", *OTHERS], vcov="CRV1", intercept="partition")
    console.print(str(ps.table([pooled, within], ["pooled", "within squares"], stars=True)))

    features = ["MedInc", *OTHERS]
    sketched = ps.fit(rows, "MedHouseVal", features, method="stack", n_partitions=8, sketch_size=60, random_state=1)
    exact = ps.fit(rows, "MedHouseVal", features)
    least = float(np.sum((rows["MedHouseVal"].to_numpy() - exact.predict(rows)) ** 2))
    lost = float(np.sum((sketched.predict(rows) - exact.predict(rows)) ** 2))
    console.print(
        "\nIf eight sites may not pool their rows, each sends a random sketch of 60 rows instead. From these alone:\n"
        f"{sketched.certificate.sentence}\n"
        f"The truth, since the rows are at hand here: {lost / least:.2%}. Where rows may travel, exact is better, and "
        "quicker."
    )


if __name__ == "__main__":
    main()
