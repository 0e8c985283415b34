from . import theory
from ._version import __version__
from .api import combine, fit, sketch
from .common.errors import InputError, PartsketchError, PartsketchWarning
from .engines.local import LocalEngine
from .estimator import SketchedRegression
from .fitting.limits import Limits
from .model.certificate import Certificate
from .model.file import load
from .model.model import Model
from .planner.api import plan
from .planner.diagnosis.api import diagnose
from .planner.diagnosis.results import Diagnosis
from .planner.plan import Plan
from .report.page import write_report
from .summaries.summary import Summary

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
