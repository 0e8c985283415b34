"""Start-up: asking for help loads none of the libraries that compute."""

from __future__ import annotations

import subprocess
import sys

#: Each takes a noticeable part of a second to load; together they are most of scikit-learn's start-up.
HEAVY = ("numpy", "scipy", "sklearn", "numba", "pyarrow", "pandas", "rich", "fsspec", "matplotlib", "dask", "ray")


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys\n"
        "from partsketch.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as end:\n    assert end.code == 0, end.code\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "Usage: partsketch" in result.stdout
    assert result.stdout.splitlines()[-1] == "[]"
