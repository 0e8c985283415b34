"""The picture of the README: what a hundred sketched fits say that they lose, and what they truly lose.

`python examples/picture.py docs/figures/loss.png` makes it again; each fit knows only its own sketches.
"""

from __future__ import annotations

import sys
import warnings
from importlib.resources import files
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pyarrow.parquet as pq

import partsketch as ps

FITS = 100
FEATURES = ["MedInc", "HouseAge", "AveRooms", "AveBedrms", "Population", "AveOccup"]


def main(path: Path) -> None:
    mpl.use("Agg")
    from matplotlib import pyplot

    with files("partsketch.paper").joinpath("data", "house.parquet").open("rb") as file:
        rows = pq.read_table(file)
    exact = ps.fit(rows, "MedHouseVal", FEATURES)
    least = float(np.sum((rows["MedHouseVal"].to_numpy() - exact.predict(rows)) ** 2))
    ends, lost = [], []
    for seed in range(FITS):
        with warnings.catch_warnings():
            # Neighbouring districts are alike, so that partitions in file order are not; the certificate allows for it.
            warnings.simplefilter("ignore", ps.PartsketchWarning)
            model = ps.fit(
                rows, "MedHouseVal", FEATURES, method="stack", n_partitions=8, sketch_size=60, random_state=seed
            )
        ends.append(model.certificate.interval(0.9, relative=True))
        lost.append(float(np.sum((model.predict(rows) - exact.predict(rows)) ** 2)) / least)
    lower, upper = 100 * np.array(ends).T
    truth = 100 * np.array(lost)
    order = np.argsort(truth)
    held = (lower <= truth) & (truth <= upper)

    figure, axes = pyplot.subplots(figsize=(7.2, 2.9), dpi=140)
    axes.vlines(np.arange(FITS), lower[order], upper[order], color="#9ecae1", linewidth=3, label="what the fit says")
    axes.plot(np.arange(FITS), truth[order], "o", color="#08519c", markersize=3, label="what it truly loses")
    axes.set_xlabel(f"{FITS} fits, each from eight sketches of 60 of {rows.num_rows:,} rows, by true loss")
    axes.set_ylabel("excess loss, %")
    axes.set_xticks([])
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left")
    axes.set_title(f"90% intervals made from the sketches alone: {held.sum()} of {FITS} hold the truth", fontsize=10)
    figure.tight_layout()
    figure.savefig(path, metadata={"Software": None})
    print(f"{path}: {held.sum()} of {FITS} intervals hold the truth")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "loss.png"))
