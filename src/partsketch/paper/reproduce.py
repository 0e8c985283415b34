"""Everything that `partsketch reproduce` does: run, draw, judge, write."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from partsketch.common.files import write_atomically
from partsketch.paper.claims import Claim, check_claims
from partsketch.paper.claims_on_time import slopes
from partsketch.paper.drawing import require_matplotlib
from partsketch.paper.figures import Picture, available_figures, draw_figure
from partsketch.paper.machine import machine, versions
from partsketch.paper.page import make_page
from partsketch.paper.results import Row, dumps, to_csv
from partsketch.paper.settings import Places, Settings
from partsketch.paper.study import Study, run_study, tables_of


def reproduce(
    settings: Settings,
    places: Places,
    only: Sequence[str] = (),
    report: Callable[[str], None] = lambda text: None,
    fresh: bool = False,
) -> tuple[Study, list[Claim]]:
    """Run the study and write `index.html`, figures, tables and raw results.

    Parameters
    ----------
    settings, places, only, report, fresh
        As in `run_study`.

    Returns
    -------
    study, claims
        What was written.
    """
    require_matplotlib()
    study = run_study(settings, places, only, report, fresh)
    pictures = []
    for name in available_figures(study):
        started = time.perf_counter()
        picture = draw_figure(study, name)
        _write_picture(places, picture)
        pictures.append(picture)
        report(f"{name}: drawn in {time.perf_counter() - started:.1f} s")
    claims = check_claims(study)
    fitted = slopes(study)
    _write_tables(places, study, claims, fitted)
    write_atomically(places.output / "index.html", make_page(study, pictures, claims, fitted))
    return study, claims


def _write_picture(places: Places, picture: Picture) -> None:
    folder = places.output / "figures"
    folder.mkdir(exist_ok=True)
    write_atomically(folder / f"{picture.name}.svg", picture.wide_svg)
    write_atomically(folder / f"{picture.name}.png", picture.png)


def _write_tables(places: Places, study: Study, claims: Sequence[Claim], fitted: Sequence[Row]) -> None:
    folder = places.output / "tables"
    folder.mkdir(exist_ok=True)
    tables: dict[str, Sequence[Row]] = {"claims": [claim.to_row() for claim in claims]}
    if fitted:
        tables["figure-2-slopes"] = fitted
    for step in dict.fromkeys(name.split(".")[0] for name in study.results):
        for table, rows in tables_of(study, step):
            tables[f"{step}-{table}".replace("_", "-")] = rows
    circumstances = {
        "seed": study.settings.seed,
        "quick": study.settings.quick,
        "versions": versions(),
        "machine": machine(),
    }
    for name, content in tables.items():
        write_atomically(folder / f"{name}.csv", to_csv(content))
        write_atomically(folder / f"{name}.json", dumps({**circumstances, "rows": list(content)}))
