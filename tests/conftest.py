"""Settings for all tests: no network, no seed by chance, how Hypothesis draws its examples, and a browser."""

from __future__ import annotations

import os
import random
import secrets
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Three processes share two cores: threads of the linear algebra library would only wait for one another. Read when
# NumPy is loaded. Tests of threads set their own number.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hypothesis import settings

from tests.durations import read_durations
from tests.network_guard import pytest_runtest_makereport, watch

__all__ = ["pytest_runtest_makereport"]

watch()

# Tests in several processes are given a width for their own reports, and commands would follow it.
os.environ.pop("COLUMNS", None)

# A shell starts background jobs with interrupts ignored, and processes inherit that: tests that interrupt would hang.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(scope="session", autouse=True)
def _one_calibration(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Plans measure the machine once, for all tests of all workers; the user's own measurements are left alone."""
    base = tmp_path_factory.getbasetemp()
    os.environ["XDG_CACHE_HOME"] = str((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Draw fresh seeds, where a test gives none, by the name of the test: what passes once passes always."""
    drawn = random.Random(item.nodeid)
    secrets.randbits = lambda k: drawn.getrandbits(k)


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have intervals of averages come from a quarter of their draws: simulations of many fits take half the time.

    The 2.5% tail of an interval is then known to 0.34 points, little beside what a few hundred fits tell of coverage.
    """
    monkeypatch.setattr("partsketch.theory.excess_draws.DRAWS", 2048)


BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
#: Chromium looks for updates and accounts of its maker by itself; no name but that of this machine leads anywhere.
ALONE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"

#: Files whose first test starts a cluster, the study, the site or a reading room: `make test-quick` does not open them.
SLOW = (
    "engines/test_dask.py",
    "engines/test_dask_network.py",
    "engines/test_faults.py",
    "engines/test_killed_runs.py",
    "engines/test_pages.py",
    "engines/test_ray.py",
    "engines/test_refinement_everywhere.py",
    "engines/test_same_everywhere.py",
    "engines/test_spark.py",
    "paper/test_figures.py",
    "paper/test_page_in_browser.py",
    "paper/test_reproduce.py",
    "smoke/test_commands.py",
    "test_documentation.py",
    "test_site.py",
)

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Save the imports of files of which nothing would be run."""
    if config.option.markexpr == "not slow" and collection_path.relative_to(HERE).as_posix() in SLOW:
        return True
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make test-quick` leaves out, and begin with the clusters and the dearest files.

    Then all processes end together, and clusters are started once.
    """
    durations = read_durations()
    longest: dict[Path, float] = {}
    for item in items:
        file = item.path.relative_to(HERE).as_posix()
        seconds = durations.get(f"{file}::{item.name.split('[')[0]}", 0.0)
        longest[item.path] = max(longest.get(item.path, 0.0), seconds)
        if file in SLOW or seconds or "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
    # Whole files: fixtures of a file are made once as long as its tests follow one another.
    items.sort(key=lambda item: (not _on_clusters(item), -longest[item.path]))


def _on_clusters(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("xdist_group")
    return mark is not None and mark.args == ("clusters",)


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
        launched = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", ALONE])
        yield launched
        launched.close()
