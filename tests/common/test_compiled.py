"""Kernels where their code can be kept nowhere."""

from __future__ import annotations

import pytest
from numba.core.caching import CompileResultCacheImpl

from partsketch.common.linalg.compiled import compiled


def test_a_kernel_that_can_be_kept_nowhere_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CompileResultCacheImpl, "_locator_classes", [])

    @compiled
    def doubled(number: float) -> float:
        return 2 * number

    assert doubled(1.5) == 3.0
