"""How long it takes until the command line answers, beside loading scikit-learn's linear models."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.problem import TARGET, FloatArray, Problem
from benchmarks.workloads.base import Case, Contestant, Figures, Target, Workload

_COMMAND = str(Path(sys.executable).parent / "partsketch")


def _started(command: tuple[str, ...], _: None) -> FloatArray:
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return np.zeros(0)


def _imported(_: Path) -> FloatArray:
    code = "import numpy, numba, pyarrow.parquet, click, rich.console"
    return _started((sys.executable, "-c", code), None)


def _of_libraries(figures: Figures) -> str:
    used, libraries = (figures[name]["best_cpu_seconds"] for name in ("ours", "libraries"))
    return (
        f"the process used {used:.2f} s of processor, {libraries:.2f} s of it to load numpy, numba, pyarrow, click and "
        "rich"
    )


def _of_compiling(figures: Figures) -> str:
    more = figures["first"]["best_cpu_seconds"] - figures["ours"]["best_cpu_seconds"]
    return f"it used {more:.2f} s more of processor"


def _fitted(first: bool, path: Path) -> FloatArray:
    with tempfile.TemporaryDirectory() as empty:
        surroundings = {**os.environ, **({"NUMBA_CACHE_DIR": empty} if first else {})}
        # An installation has bytecode; a source tree gets it from the run that warms up.
        surroundings.pop("PYTHONDONTWRITEBYTECODE", None)
        command = (_COMMAND, "fit", str(path), "--target", TARGET)
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=surroundings)
    return np.zeros(0)


def _fit_case() -> Case:
    problem = Problem(50_000, 10)
    return Case(
        name="fit",
        title=f"`partsketch fit` of {problem.rows:,} × {problem.width + 1} in a Parquet file, the whole process",
        contestants=(
            Contestant("ours", "compiled code on disk", partial(_fitted, False), "ours"),
            Contestant("first", "nothing compiled yet", partial(_fitted, True), "ours"),
            Contestant("libraries", "only loading the libraries that it uses", _imported, "baseline"),
        ),
        make=problem.parquet,
        load=problem.parquet,
        load_small=problem.parquet,
        judge=lambda answer: {},
        main="ours",
        in_memory=True,
    )


def _cases(quick: bool) -> tuple[Case, ...]:
    sklearn = (sys.executable, "-c", "import sklearn.linear_model")
    return (
        Case(
            name="help",
            title="A new process from its start to its end",
            contestants=(
                Contestant("ours", "`partsketch --help`", partial(_started, (_COMMAND, "--help")), "ours"),
                Contestant(
                    "sklearn", '`python -c "import sklearn.linear_model"`', partial(_started, sklearn), "baseline"
                ),
                Contestant("python", "`python -c pass`", partial(_started, (sys.executable, "-c", "pass")), "baseline"),
            ),
            make=lambda: None,
            load=lambda: None,
            load_small=lambda: None,
            judge=lambda answer: {},
            main="ours",
            in_memory=True,
        ),
        _fit_case(),
    )


_TARGETS = (
    Target(
        "help",
        "`partsketch --help` in at most 0.4 of the time of importing scikit-learn's linear models",
        lambda figures: float(figures["ours"]["best_seconds"] / figures["sklearn"]["best_seconds"]),
        0.4,
        at_least=False,
    ),
    Target(
        "fit",
        "`partsketch fit` of 50,000 rows in at most 0.7 s, the whole process",
        lambda figures: float(figures["ours"]["best_seconds"]),
        0.7,
        at_least=False,
        reason=_of_libraries,
    ),
    Target(
        "fit",
        "The first fit after an installation takes at most 1 s more than a later one",
        lambda figures: float(figures["first"]["best_seconds"] - figures["ours"]["best_seconds"]),
        1.0,
        at_least=False,
        reason=_of_compiling,
    ),
)

WORKLOAD = Workload("start-up", "Start-up", _cases, _TARGETS)
