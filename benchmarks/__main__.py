"""Command line: `python -m benchmarks [run|table|planner]`; alone it does the first two."""

from __future__ import annotations

import argparse
import json
import shlex
import sys

from benchmarks.runner import RESULTS, environment, results_folder, run, save
from benchmarks.tables import ACCURACY, DRIVER, ESTIMATORS, PRIVACY, QUESTIONS, generated_parts, write_pages
from benchmarks.workloads import WORKLOADS

#: What is measured in digits and squares, not in seconds, or has rivals of another kind.
UNTIMED = (ACCURACY, ESTIMATORS, QUESTIONS, DRIVER, PRIVACY)


def main() -> None:
    """Parse and act."""
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument("--repeats", type=int, default=None, help="how often every contestant is started (default 3)")
    options.add_argument("--quick", action="store_true", help="small sizes, one repeat, README left alone")
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__, parents=[options])
    commands = parser.add_subparsers(dest="step")
    run_parser = commands.add_parser("run", parents=[options], help="measure and save results as JSON")
    run_parser.add_argument("workload", nargs="*", metavar="workload", help=", ".join([*WORKLOADS, *UNTIMED]))
    run_parser.add_argument("--only", default="", help="only these parts, or cases, of a workload")
    commands.add_parser("planner", parents=[options], help="plan and fit many settings: are plans right?")
    commands.add_parser("table", help="write the pages with results from the saved ones")
    arguments = parser.parse_args()
    if arguments.step == "table":
        write_pages(RESULTS)
        return
    if arguments.step == "planner":
        check_plans(arguments.quick)
        return
    names = getattr(arguments, "workload", [])
    if unknown := [name for name in names if name not in WORKLOADS and name not in UNTIMED]:
        parser.error(f"unknown workload {unknown[0]!r}: choose from {', '.join([*WORKLOADS, *UNTIMED])}")
    repeats = arguments.repeats or (1 if arguments.quick else 3)
    command = shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]])
    only = [name for name in getattr(arguments, "only", "").split(",") if name]
    if not names or ACCURACY in names:
        measure_accuracy(arguments.quick, command, only)
    if not names or ESTIMATORS in names:
        measure_estimators(arguments.quick, command, only)
    if not names or QUESTIONS in names:
        measure_questions(arguments.quick, command)
    if not names or DRIVER in names:
        measure_driver(arguments.quick, command)
    if not names or PRIVACY in names:
        measure_privacy(arguments.quick, command, only)
    if timed := [name for name in names if name not in UNTIMED] or ([] if names else list(WORKLOADS)):
        known = [case.name for name in timed for case in WORKLOADS[name].cases(arguments.quick)]
        if unknown := [name for name in only if name not in known]:
            parser.error(f"unknown case {unknown[0]!r}: choose from {', '.join(known)}")
        run(timed, repeats, arguments.quick, command, only)
    if arguments.step is None:
        if arguments.quick:
            for name, part in generated_parts(results_folder(quick=True)).items():
                print(f"\n## {name}\n{part}")
        else:
            write_pages(RESULTS)


def measure_accuracy(quick: bool, command: str, only: list[str]) -> None:
    """Count the digits that are right and how often intervals cover, and save both; or some parts, beside the saved."""
    from benchmarks.accuracy import running

    path = results_folder(quick) / f"{ACCURACY}.json"
    found = {**environment(), "command": command}
    if not only:
        save({**found, **running.run(quick)}, path)
        return
    if not path.exists():
        raise SystemExit("Parts of accuracy are saved beside the others: measure all of them once, without --only.")
    saved = json.loads(path.read_text())
    origins = {**saved.get("origins", {}), **dict.fromkeys(only, found)}
    save({**saved, **running.run_parts(quick, only), "origins": origins}, path)


def measure_estimators(quick: bool, command: str, only: list[str]) -> None:
    """Measure what each way to combine sketches loses ("losses"), and some more parts.

    How often intervals hold ("coverage", with measured noise, and "coverage-estimated"), what other ways to estimate
    noise would lose ("rules"), and bytes and losses of short sketches from many sites ("sites").

    Of the losses single rows may be asked for by how their names begin, without commas: "unlike noise 5".
    """
    from benchmarks.estimators import coverage, many_sites, noise_rules, running

    path = results_folder(quick) / f"{ESTIMATORS}.json"
    found = json.loads(path.read_text()) if only and path.exists() else {}
    names = [name for name in only if name not in ("losses", "coverage", "coverage-estimated", "rules", "sites")]
    if not only or "losses" in only or names:
        rows = running.run(quick, command, names, found)
        found |= {**environment(), "command": command, "rows": rows}
    for part, noise in (("coverage", "measured"), ("coverage-estimated", "estimated")):
        if not only or part in only:
            rows = coverage.run(20 if quick else 1000, noise)
            found[part] = {**environment(), "command": command, "rows": rows}
    if not only or "rules" in only:
        found["rules"] = {**environment(), "command": command, "rows": noise_rules.run(10 if quick else 600)}
    if not only or "sites" in only:
        found["sites"] = {**environment(), "command": command, "rows": many_sites.run(quick)}
    save(found, path)


def measure_questions(quick: bool, command: str) -> None:
    """Measure summaries by group and questions to them, and save that."""
    from benchmarks.questions import running

    save({**environment(), "command": command, **running.run(quick)}, results_folder(quick) / f"{QUESTIONS}.json")


def measure_driver(quick: bool, command: str) -> None:
    """Measure what the driver of a fit bears, and save it."""
    from benchmarks.driver import running

    save({**environment(), "command": command, **running.run(quick)}, results_folder(quick) / f"{DRIVER}.json")


def measure_privacy(quick: bool, command: str, only: list[str]) -> None:
    """Measure what privacy costs, part by part; each is saved when it is done, beside those that were saved before."""
    from benchmarks.privacy import running

    if unknown := [name for name in only if name not in running.PARTS]:
        raise SystemExit(f"unknown part {unknown[0]!r}: choose from {', '.join(running.PARTS)}")
    path = results_folder(quick) / f"{PRIVACY}.json"
    for name in only or running.PARTS:
        part = {**environment(), "command": command, "lines": running.run_part(name, quick)}
        # Read now: parts may be measured side by side.
        saved = json.loads(path.read_text()) if path.exists() else {"parts": {}}
        save({"parts": {**saved["parts"], name: part}}, path)


def check_plans(quick: bool) -> None:
    """Run the check of the planner, save what it measured and put its table into docs/plan.md."""
    from benchmarks.planner import results, running

    result = {**environment(), **running.run(quick)}
    results.save(result, results_folder(quick) / "planner.json")
    print(results.report(result))
    if not quick:
        results.write_page(result)


if __name__ == "__main__":
    main()
