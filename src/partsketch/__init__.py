"""Least squares on partitioned data, with the error known before and after the fit."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from partsketch._version import __version__

if TYPE_CHECKING:
    from partsketch import theory
    from partsketch.api import combine, fit, read_summaries, sketch, summarise
    from partsketch.common.errors import InputError, PartsketchError, PartsketchWarning
    from partsketch.engines.local import LocalEngine
    from partsketch.estimator import SketchedRegression
    from partsketch.fitting.limits import Limits
    from partsketch.model.certificate import Certificate
    from partsketch.model.file import load
    from partsketch.model.model import Model
    from partsketch.planner.api import plan
    from partsketch.planner.diagnosis.api import diagnose
    from partsketch.planner.diagnosis.results import Diagnosis
    from partsketch.planner.plan import Plan
    from partsketch.questions.summaries import Summaries
    from partsketch.questions.table import table
    from partsketch.report.page import write_report
    from partsketch.summaries.summary import Summary

__all__ = [
    "Certificate",
    "Diagnosis",
    "InputError",
    "Limits",
    "LocalEngine",
    "Model",
    "PartsketchError",
    "PartsketchWarning",
    "Plan",
    "SketchedRegression",
    "Summaries",
    "Summary",
    "__version__",
    "combine",
    "diagnose",
    "fit",
    "load",
    "plan",
    "read_summaries",
    "sketch",
    "summarise",
    "table",
    "theory",
    "write_report",
]

# Names are loaded when first used: the command line answers --help without importing scikit-learn or compiling.
_HOMES = {
    "Certificate": "model.certificate",
    "Diagnosis": "planner.diagnosis.results",
    "InputError": "common.errors",
    "Limits": "fitting.limits",
    "LocalEngine": "engines.local",
    "Model": "model.model",
    "PartsketchError": "common.errors",
    "PartsketchWarning": "common.errors",
    "Plan": "planner.plan",
    "SketchedRegression": "estimator",
    "Summaries": "questions.summaries",
    "Summary": "summaries.summary",
    "combine": "api",
    "diagnose": "planner.diagnosis.api",
    "fit": "api",
    "load": "model.file",
    "plan": "planner.api",
    "read_summaries": "api",
    "sketch": "api",
    "summarise": "api",
    "table": "questions.table",
    "write_report": "report.page",
}


def __getattr__(name: str) -> Any:
    if name == "theory":
        return import_module("partsketch.theory")
    if name in _HOMES:
        value = getattr(import_module(f"partsketch.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'partsketch' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
