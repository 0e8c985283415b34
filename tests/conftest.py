"""Settings for all tests: no network, how Hypothesis draws its examples, and a browser."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

# Two processes share two cores: threads of the linear algebra library would only wait for one another. Read when NumPy
# is loaded. Tests of threads set their own number.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hypothesis import settings

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

#: Folders and files whose tests start clusters or other processes, simulate, or take seconds; marked slow as a whole.
SLOW = (
    "engines/test_bundles.py",
    "engines/test_checkpoint.py",
    "engines/test_checkpoint_refusals.py",
    "engines/test_dask.py",
    "engines/test_dask_network.py",
    "engines/test_deadline.py",
    "engines/test_faults.py",
    "engines/test_killed_runs.py",
    "engines/test_local.py",
    "engines/test_partition_faults.py",
    "engines/test_ray.py",
    "engines/test_refinement_everywhere.py",
    "engines/test_same_everywhere.py",
    "engines/test_spark.py",
    "fitting/test_fast_fits.py",
    "laws/",
    "paper/",
    "smoke/test_commands.py",
    "sources/test_laws.py",
    "test_documentation.py",
    "test_estimator_checks.py",
    "test_extensions.py",
    "test_site.py",
)


#: Tests of other files that take more than half a second of processor time, with all their parameters together.
SLOW_TESTS = frozenset((Path(__file__).parent / "slow_tests.txt").read_text(encoding="utf-8").split())


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Mark what `make test-quick` leaves out; single tests may carry the mark themselves."""
    here = Path(__file__).parent
    for item in items:
        file = item.path.relative_to(here).as_posix()
        listed = file.startswith(SLOW) or f"{file}::{item.name.split('[')[0]}" in SLOW_TESTS
        if listed or "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


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
