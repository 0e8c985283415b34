"""Runs the study: units that are stored already are not run again, so an interrupted study goes on where it stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from partsketch.common.errors import InputError
from partsketch.common.files import check_path, make_folder, write_atomically
from partsketch.paper.machine import machine, versions
from partsketch.paper.results import Result, Row, fingerprint, to_csv
from partsketch.paper.settings import Places, Settings
from partsketch.paper.steps import SHARED_UNITS, STEPS, Unit, all_units

#: Versions that change numbers; the drawing library does not.
_DECIDING_VERSIONS = ("partsketch", "python", "numpy", "scipy", "scikit-learn", "numba")


@dataclass(frozen=True)
class Study:
    """Results of the units that could be run, and sentences about those that could not.

    Attributes
    ----------
    settings
        How much was done.
    results
        By the full name of the unit.
    problems
        One sentence per data set that is missing.
    chosen
        The steps that were asked for.
    """

    settings: Settings
    results: Mapping[str, Result]
    problems: tuple[str, ...] = ()
    chosen: tuple[str, ...] = field(default_factory=lambda: tuple(STEPS))

    def rows(self, step: str, table: str, unit: str | None = None) -> list[Row]:
        """Return the rows of a table of one unit, or of all units of a step; empty when none was run."""
        return [
            row
            for name, result in self.results.items()
            if name.split(".")[0] == step and (unit is None or name == f"{step}.{unit}")
            for row in result.tables.get(table, ())
        ]

    def units(self, step: str) -> list[str]:
        """Return the names of the units of a step that were run."""
        return [name.split(".", 1)[1] for name in self.results if name.split(".")[0] == step]

    @property
    def seconds(self) -> float:
        """Time that all units took together."""
        return sum(result.seconds for result in self.results.values())


def chosen_units(settings: Settings, data_home: Path | None, only: Sequence[str]) -> list[Unit]:
    """Return the units that the chosen steps need, all when none is chosen."""
    unknown = [name for name in only if name not in STEPS]
    if unknown:
        raise InputError(f"There is no {unknown[0]!r} in the study: choose one of {', '.join(STEPS)}.")
    needed = {SHARED_UNITS.get(name, name) for name in only or STEPS}
    if "figure-6" in (only or STEPS):
        needed |= {"figure-1"}
    return [unit for unit in all_units(settings, data_home) if unit.step in needed]


def run_study(
    settings: Settings,
    places: Places,
    only: Sequence[str] = (),
    report: Callable[[str], None] = lambda text: None,
    fresh: bool = False,
) -> Study:
    """Run what is not stored yet and return all results.

    Parameters
    ----------
    settings : Settings
        How much of everything.
    places : Places
        `output/raw` receives one JSON file per unit and one CSV file per table of a unit, as soon as it is done.
    only : sequence of str
        Names of steps; all of them by default.
    report : callable
        Receives one line per unit.
    fresh : bool
        Run everything anew.

    Returns
    -------
    Study
        A data set that is missing costs its units and one sentence, nothing else.
    """
    units = chosen_units(settings, places.data_home, only)
    raw = places.output / "raw"
    check_path(places.output)
    if (places.output / "index.html").exists() and not raw.exists():
        raise InputError(
            f"Cannot write to {places.output}: its index.html is of no study, and would be lost; choose another folder."
        )
    try:
        make_folder(raw)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"Cannot write to {places.output}: {reason}; choose another folder.") from error
    results: dict[str, Result] = {}
    problems: list[str] = []
    for number, unit in enumerate(units, 1):
        result = None if fresh else _stored(raw, unit)
        place = f"[{number}/{len(units)}] {unit.full_name}"
        if result is not None:
            report(f"{place}: stored already")
        else:
            try:
                result = run_unit(unit)
            except InputError as error:
                # Every unit of a missing data set fails with the same sentence: once is enough.
                if str(error) not in problems:
                    problems.append(str(error))
                    report(str(error))
                continue
            _store(raw, result)
            report(f"{place}: {result.seconds:.1f} s")
        results[unit.full_name] = result
    return Study(settings, results, tuple(problems), tuple(only or STEPS))


def _key(unit: Unit) -> str:
    found = versions()
    return fingerprint(unit.full_name, unit.settings, {name: found[name] for name in _DECIDING_VERSIONS})


def _stored(raw: Path, unit: Unit) -> Result | None:
    path = raw / f"{unit.full_name}.json"
    try:
        result = Result.from_json(path.read_bytes())
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return result if result.key == _key(unit) else None


def run_unit(unit: Unit) -> Result:
    """Run one unit of the study, timed."""
    started = time.perf_counter()
    tables = unit.run()
    seconds = time.perf_counter() - started
    return Result(unit.full_name, _key(unit), unit.settings, tables, {**machine(), "versions": versions()}, seconds)


def _store(raw: Path, result: Result) -> None:
    for name, rows in result.tables.items():
        write_atomically(raw / f"{result.unit}.{name}.csv", to_csv(rows))
    # The JSON file comes last: a unit counts as done when it exists.
    write_atomically(raw / f"{result.unit}.json", result.to_json())


def tables_of(study: Study, step: str) -> Iterable[tuple[str, list[Row]]]:
    """Yield every table of a step with the rows of all its units, each row naming its unit."""
    names = dict.fromkeys(
        name for unit, result in study.results.items() if unit.split(".")[0] == step for name in result.tables
    )
    for table in names:
        rows: list[Row] = []
        for unit in study.units(step):
            rows += [{"unit": unit, **row} for row in study.rows(step, table, unit)]
        yield table, rows
