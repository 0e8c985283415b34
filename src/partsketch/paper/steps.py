"""Every table and figure of the study, cut into units that are run, stored and resumed one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from partsketch.paper import data_sets
from partsketch.paper.bound_experiment import BoundSettings, bound_experiment
from partsketch.paper.clock import ClockSettings
from partsketch.paper.data_sets import DataSet
from partsketch.paper.designs import DESIGNS
from partsketch.paper.divergence_experiments import (
    DesignSettings,
    data_divergence_experiment,
    heat_map_experiment,
    random_design_experiment,
)
from partsketch.paper.excess_loss_experiment import ExcessLossSettings, excess_loss_experiment
from partsketch.paper.results import Tables
from partsketch.paper.settings import Settings, derive_seed
from partsketch.paper.theorem_experiment import TheoremSettings, theorem_experiment
from partsketch.paper.timing_experiment import hadamard_experiment, timing_experiment

HEAT_MAP_PARTITIONS = 10
HIGH_LEVERAGE_ROWS = 20
HADAMARD_ROWS = (1024, 256, 128)
HADAMARD_COUNTS = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class Unit:
    """A piece of work: its step, its name within the step, all that decides its outcome, and how it is done."""

    step: str
    name: str
    settings: Mapping[str, Any]
    run: Callable[[], Tables]

    @property
    def full_name(self) -> str:
        """Name of the unit's file."""
        return f"{self.step}.{self.name}"


#: Name and title of every step, in the order of the page.
STEPS = {
    "table-1": "Table 1: the data sets",
    "figure-1": "Figure 1: excess loss against k, m = d + 2, default order",
    "figure-1-shuffled": "Figure 1 again: the same rows in shuffled order",
    "figure-1-larger": "Figure 1 again: m = 2d",
    "figure-2": "Figure 2: time per estimator against k",
    "figure-3": "Figure 3: randomised Hadamard transform beside Gaussian sketches",
    "figure-4": "Figure 4: Theorems 3.1 and 3.3 on synthetic fixed designs",
    "figure-5": "Figure 5: the divergence D and the Burg divergence",
    "figure-6": "Figure 6: the gap between β̄ and θ̄, as printed and as it is",
    "figure-7": "Figure 7: the high-probability bound",
    "figure-8": "Figure 8: which partitions are unlike which",
}

#: Steps that are drawn from the units of others.
SHARED_UNITS = {"figure-6": "figure-5"}

Loader = Callable[[str], DataSet]


def all_units(settings: Settings, data_home: Path | None) -> list[Unit]:
    """Return the units of the study in the order in which they run."""

    def load(name: str) -> DataSet:
        return data_sets.load(name, data_home)

    units = [_table_unit(name, load) for name in data_sets.NAMES]
    for step, shuffled, larger in (
        ("figure-1", False, False),
        ("figure-1-shuffled", True, False),
        ("figure-1-larger", False, True),
    ):
        units += [_loss_unit(step, name, settings, load, shuffled, larger) for name in data_sets.NAMES]
    units += [_timing_unit(name, settings, load) for name in data_sets.NAMES]
    units.append(_hadamard_unit(settings, load))
    units += [_theorem_unit(design, settings) for design in DESIGNS]
    units += [_design_unit(settings), _data_divergence_unit(settings, load), _bound_unit(settings)]
    for order in ("default", "shuffled"):
        units += [_heat_map_unit(name, order, load) for name in data_sets.NAMES]
    return units


def _table_unit(name: str, load: Loader) -> Unit:
    def run() -> Tables:
        data = load(name)
        row = {"data_set": name, "instances": len(data.X), "features": data.X.shape[1]}
        return {"data_sets": [{**row, "loaded_instances": data.loaded_rows, "loaded_features": data.loaded_features}]}

    return Unit("table-1", name, {"data_set": name, "sample_seed": data_sets.COVER_SEED}, run)


def _loss_unit(step: str, name: str, settings: Settings, load: Loader, shuffled: bool, larger: bool) -> Unit:
    draws = settings.draws[name]
    # Shuffling does not change the law of β̄: it has been drawn once already.
    whole_limit = 0 if shuffled else settings.whole_limit[name]
    seed = derive_seed(settings.seed, step, name)
    chosen = {
        "data_set": name,
        "sample_seed": data_sets.COVER_SEED,
        "order": f"shuffled with seed {data_sets.SHUFFLE_SEED}" if shuffled else "default",
        "sketch_size": "2d" if larger else "d + 2",
        "partition_counts": settings.partition_counts[name],
        "draws": draws,
        "whole_limit": whole_limit,
        "seed": seed,
    }

    def run() -> Tables:
        data = load(name).shuffled() if shuffled else load(name)
        d = data.X.shape[1]
        size = 2 * d if larger else d + 2
        asked = ExcessLossSettings(settings.partition_counts[name], size, draws, whole_limit, seed)
        return excess_loss_experiment(data, asked)

    return Unit(step, name, chosen, run)


def _clock(settings: Settings, *names: str) -> ClockSettings:
    return ClockSettings(settings.timing_seconds, settings.timing_repeats, derive_seed(settings.seed, *names) % 2**32)


def _timing_unit(name: str, settings: Settings, load: Loader) -> Unit:
    clock, counts = _clock(settings, "figure-2", name), settings.timing_counts[name]

    def run() -> Tables:
        data = load(name)
        return timing_experiment(data, counts, data.X.shape[1] + 2, clock)

    return Unit("figure-2", name, {"data_set": name, "partition_counts": counts, **asdict(clock)}, run)


def _hadamard_unit(settings: Settings, load: Loader) -> Unit:
    clock = _clock(settings, "figure-3")
    sweep = (128, 256, 1024, 4096) if settings.quick else (128, 256, 512, 1024, 2048, 4096, 8192, 16384)
    chosen = {"row_counts": HADAMARD_ROWS, "partition_counts": HADAMARD_COUNTS, "sweep": sweep, **asdict(clock)}

    def run() -> Tables:
        return hadamard_experiment(load("digits"), HADAMARD_ROWS, HADAMARD_COUNTS, sweep, clock)

    return Unit("figure-3", "digits", chosen, run)


def _theorem_unit(design: str, settings: Settings) -> Unit:
    seed = derive_seed(settings.seed, "figure-4", design)
    grid = (settings.grid_counts, settings.grid_sizes, settings.grid_draws, seed)
    asked = TheoremSettings(design, 480, 5, *grid)
    return Unit("figure-4", design, asdict(asked), lambda: theorem_experiment(asked))


def _design_unit(settings: Settings) -> Unit:
    counts = (1, 5, 20, 80, 125) if settings.quick else (1, 2, 5, 10, 20, 40, 80, 125)
    asked = DesignSettings(2000, 10, counts, 20, settings.designs, derive_seed(settings.seed, "figure-5"))
    return Unit("figure-5", "designs", asdict(asked), lambda: random_design_experiment(asked))


def _data_divergence_unit(settings: Settings, load: Loader) -> Unit:
    # House is the one data set whose partitions have full rank.
    counts = settings.partition_counts["house"]
    chosen = {"data_set": "house", "partition_counts": counts, "shuffle_seed": data_sets.SHUFFLE_SEED}
    chosen |= {"rows_left_out": HIGH_LEVERAGE_ROWS}
    run = partial(data_divergence_experiment, counts=counts, left_out=HIGH_LEVERAGE_ROWS)
    return Unit("figure-5", "house", chosen, lambda: run(load("house")))


def _bound_unit(settings: Settings) -> Unit:
    seed = derive_seed(settings.seed, "figure-7")
    asked = BoundSettings(2000, 5, 4, settings.bound_sizes, 0.05, settings.bound_draws, seed)
    return Unit("figure-7", "bound", asdict(asked), lambda: bound_experiment(asked))


def _heat_map_unit(name: str, order: str, load: Loader) -> Unit:
    def run() -> Tables:
        data = load(name)
        return heat_map_experiment(data.shuffled() if order == "shuffled" else data, HEAT_MAP_PARTITIONS)

    chosen = {"data_set": name, "sample_seed": data_sets.COVER_SEED, "order": order, "k": HEAT_MAP_PARTITIONS}
    return Unit("figure-8", f"{name}-{order}", {**chosen, "shuffle_seed": data_sets.SHUFFLE_SEED}, run)
