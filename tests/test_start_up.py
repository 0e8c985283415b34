"""Start-up: a command loads what it needs, and no more."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

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


#: What only the compiler, or only a fit by sketches, needs: longer to load than a small exact fit takes.
NOT_FOR_EXACT = ("scipy.linalg", "scipy.special", "sklearn", "pandas", "numba.np.arraymath")


def test_exact_fit_loads_neither_scipy_nor_the_compilers_tables(tmp_path: Path) -> None:
    """The second of two processes finds the compiled code of the first."""
    rng = np.random.default_rng(5)
    columns = {name: rng.normal(size=20_000) for name in ("a", "b", "y")}
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    program = (
        "import sys\n"
        "from partsketch.cli import run\n"
        f"assert run(['fit', {str(tmp_path / 'rows.parquet')!r}, '--target', 'y', '--json']) == 0\n"
        f"print([name for name in {NOT_FOR_EXACT!r} if name in sys.modules])\n"
    )
    for _ in range(2):
        result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert '"method": "exact"' in result.stdout
    assert result.stdout.splitlines()[-1] == "[]"


def test_limit_of_threads_knows_the_library_of_scipy() -> None:
    """It is loaded before the libraries are looked for, though SciPy itself may come later."""
    program = (
        "from partsketch.common.linalg.blas import one_thread_each\n"
        "with one_thread_each():\n"
        "    import scipy.linalg\n"
        "    from threadpoolctl import threadpool_info\n"
        "    print([one['num_threads'] for one in threadpool_info() if one['user_api'] == 'blas'])\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(json.loads(result.stdout)) == {1}
