"""Settings for all tests: where real data may be found, how Hypothesis draws its examples, and a browser."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
if "SCIKIT_LEARN_DATA" not in os.environ and _DATA.is_dir():
    os.environ["SCIKIT_LEARN_DATA"] = str(_DATA)

# A shell starts background jobs with interrupts ignored, and processes inherit that: tests that interrupt would hang.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Give a real headless Chromium; without one, tests fail in continuous integration and are skipped elsewhere."""
    reason = ""
    if BROWSER is None:
        reason = "needs Chromium: apt-get install chromium"
    else:
        try:
            from playwright.sync_api import sync_playwright
        except ImportError:
            reason = "needs playwright: pip install playwright"
    if reason:
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield launched
        launched.close()
