from . import simulate, theory
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
from .questions.summaries import Summaries
from .questions.table import table
from .report.page import write_report
from .sites.apply import apply_sketch
from .sites.rounds.answer import Answer
from .sites.rounds.api import answer, refine
from .sites.rounds.question import Question
from .sites.rounds.rounds import Rounds
from .sites.summaries_api import read_summaries, summarise
from .sources.files.csv_format import CsvFiles
from .summaries.noisy_summary import NoisySummary
from .summaries.summary import Summary

__all__ = [
    "Answer",
    "Certificate",
    "CsvFiles",
    "Diagnosis",
    "InputError",
    "Limits",
    "LocalEngine",
    "Model",
    "NoisySummary",
    "PartsketchError",
    "PartsketchWarning",
    "Plan",
    "Question",
    "Rounds",
    "SketchedRegression",
    "Summaries",
    "Summary",
    "__version__",
    "answer",
    "apply_sketch",
    "combine",
    "diagnose",
    "fit",
    "load",
    "plan",
    "read_summaries",
    "refine",
    "simulate",
    "sketch",
    "summarise",
    "table",
    "theory",
    "write_report",
]
