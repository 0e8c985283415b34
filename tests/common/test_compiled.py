"""Kernels whose code is kept on disk, and where it can be kept nowhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core.caching import CompileResultCacheImpl

from partsketch.common.linalg.compiled import compiled


def test_a_kernel_that_can_be_kept_nowhere_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CompileResultCacheImpl, "_locator_classes", [])

    @compiled
    def doubled(number: float) -> float:
        return 2 * number

    assert doubled(1.5) == 3.0


def test_code_on_disk_is_made_anew_when_a_kernel_of_another_module_changes(tmp_path: Path) -> None:
    """Old code called the kernel as it had been, whatever it took by then, and wrote outside its memory."""
    (tmp_path / "outer.py").write_text(
        "from inner import NUMBER, inner\nfrom partsketch.common.linalg.compiled import compiled\n"
        "@compiled\ndef outer(x):\n    return inner(x) + NUMBER\n"
        "print(outer(1), sum(outer.stats.cache_hits.values()))\n"
    )

    # As users have it: kept beside the sources.
    own = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT")}
    own["PYTHONDONTWRITEBYTECODE"] = "1"

    def answer(number: int, more: str) -> str:
        (tmp_path / "inner.py").write_text(
            f"from partsketch.common.linalg.compiled import compiled\nNUMBER = {number}\n"
            f"@compiled\ndef inner(x):\n    return x + 1{more}\n"
        )
        ran = subprocess.run(
            [sys.executable, "outer.py"], capture_output=True, text=True, cwd=tmp_path, env=own, check=True
        )
        return ran.stdout.strip()

    # (what is said, whether it was compiled before)
    assert [answer(10, ""), answer(10, ""), answer(200, ""), answer(200, " + 1000")] == [
        "12 0",
        "12 1",
        "202 0",
        "1202 0",
    ]
