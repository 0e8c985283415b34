"""Least squares on partitioned data, with the error known before and after the fit."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from partsketch._version import __version__

if TYPE_CHECKING:
    from partsketch import theory
    from partsketch.api import fit
    from partsketch.certificate import Certificate
    from partsketch.diagnosis.diagnosing import diagnose
    from partsketch.diagnosis.results import Diagnosis
    from partsketch.engines.local import LocalEngine
    from partsketch.errors import InputError, PartsketchError, PartsketchWarning
    from partsketch.estimator import SketchedRegression
    from partsketch.model import Model
    from partsketch.model_file import load
    from partsketch.planner.api import plan
    from partsketch.planner.limits import Limits
    from partsketch.planner.plan import Plan
    from partsketch.report.page import write_report
    from partsketch.sites import combine, sketch
    from partsketch.summary import Summary

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
    "Summary",
    "__version__",
    "combine",
    "diagnose",
    "fit",
    "load",
    "plan",
    "sketch",
    "theory",
    "write_report",
]

# Names are loaded when first used: the command line answers --help without importing scikit-learn or compiling.
_HOMES = {
    "Certificate": "certificate",
    "Diagnosis": "diagnosis.results",
    "InputError": "errors",
    "Limits": "planner.limits",
    "LocalEngine": "engines.local",
    "Model": "model",
    "PartsketchError": "errors",
    "PartsketchWarning": "errors",
    "Plan": "planner.plan",
    "SketchedRegression": "estimator",
    "Summary": "summary",
    "combine": "sites",
    "diagnose": "diagnosis.diagnosing",
    "fit": "api",
    "load": "model_file",
    "plan": "planner.api",
    "sketch": "sites",
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
