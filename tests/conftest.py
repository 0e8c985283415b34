"""Settings for all tests: where real data may be found, and how Hypothesis draws its examples."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import settings

_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
if "SCIKIT_LEARN_DATA" not in os.environ and _DATA.is_dir():
    os.environ["SCIKIT_LEARN_DATA"] = str(_DATA)

settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")
