"""How long it takes until the command line answers, beside loading scikit-learn's linear models."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.problem import FloatArray
from benchmarks.workloads.base import Case, Contestant, Target, Workload

_COMMAND = str(Path(sys.executable).parent / "partsketch")


def _started(command: tuple[str, ...], _: None) -> FloatArray:
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return np.zeros(0)


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
    )


_TARGETS = (
    Target(
        "help",
        "`partsketch --help` in at most 0.4 of the time of importing scikit-learn's linear models",
        lambda figures: float(figures["ours"]["best_seconds"] / figures["sklearn"]["best_seconds"]),
        0.4,
        at_least=False,
    ),
)

WORKLOAD = Workload("start-up", "Start-up", _cases, _TARGETS)
