"""Large products are shared among threads, and have the same bits whoever makes them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from partsketch.common.linalg.blas import gram
from partsketch.common.linalg.helpers import Helpers, helped_by, share, shared_map, sharing_with
from partsketch.common.linalg.solve_many import solve_factors, tall_factors


def _with_helpers(count: int, work: Callable[[], object]) -> None:
    """Call `work` in a thread of a fit in which so many others have nothing to do; it must not wait for ever."""
    helpers = Helpers()
    threads = [threading.Thread(target=helpers.help, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    while helpers.idle < count:
        pass
    raised: list[BaseException] = []

    def fit() -> None:
        try:
            with helped_by(helpers):
                work()
        except BaseException as error:
            raised.append(error)

    fitting = threading.Thread(target=fit, daemon=True)
    fitting.start()
    fitting.join(10)
    helpers.close()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in [fitting, *threads])
    if raised:
        raise raised[0]


def test_every_part_is_done_once_and_those_who_are_idle_take_some() -> None:
    done: list[tuple[int, int]] = []
    # The first two parts wait for each other: one thread alone would not come past them.
    both = threading.Barrier(2, timeout=10)

    def part(number: int) -> None:
        if number < 2:
            both.wait()
        done.append((number, threading.get_ident()))

    _with_helpers(3, lambda: share([lambda number=number: part(number) for number in range(20)]))  # type: ignore[misc]
    assert sorted(number for number, _ in done) == list(range(20))
    assert len({thread for _, thread in done}) >= 2


def test_what_goes_wrong_in_a_helper_is_raised_by_who_shared() -> None:
    both = threading.Barrier(2, timeout=10)

    def part(own: int) -> None:
        both.wait()
        if threading.get_ident() != own:
            raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        _with_helpers(1, lambda: share([partial(part, threading.get_ident())] * 2))


@pytest.mark.parametrize("height", [1024, 513])
@pytest.mark.parametrize("width", [136, 264, 712, 1160])
def test_products_have_the_same_bits_whoever_makes_them_and_however_rows_lie(width: int, height: int) -> None:
    rows = np.random.default_rng(width).normal(size=(height, width))
    alone, found = gram(rows.T), np.zeros((width, width))
    _with_helpers(2, lambda: np.copyto(found, gram(rows.T)))
    assert np.array_equal(found, alone)
    assert np.array_equal(gram(np.ascontiguousarray(rows.T)), alone)
    assert np.array_equal(alone, alone.T)
    # Sums of 1024 products of about one: rounding of 1024 ε times √1024 at most.
    np.testing.assert_allclose(alone, rows.T @ rows, rtol=0, atol=1024 * 2.3e-16 * 32)


def test_threads_are_lent_for_as_long_as_they_are_wanted() -> None:
    before = threading.active_count()
    both = threading.Barrier(2, timeout=10)
    with sharing_with(1):
        assert threading.active_count() == before  # nothing was shared yet
        share([both.wait, both.wait])
        assert threading.active_count() == before + 1
    assert threading.active_count() == before
    own: set[int] = set()
    share([lambda: own.add(threading.get_ident())] * 9)
    assert own == {threading.get_ident()}


def test_what_is_shared_comes_back_in_order_under_the_rules_of_who_asked() -> None:
    both = threading.Barrier(2, timeout=10)

    def squared(number: float) -> float:
        both.wait()  # two threads, or nobody comes past
        return float(np.square(number))

    with sharing_with(1), np.errstate(over="ignore"):
        assert shared_map(squared, [3.0, 1e200, 2.0, -1.0]) == [9.0, np.inf, 4.0, 1.0]
    with sharing_with(1), np.errstate(over="raise"), pytest.raises(FloatingPointError):
        shared_map(squared, [1e200, 1e200])


def test_many_triangles_have_the_same_bits_whoever_makes_them() -> None:
    rng = np.random.default_rng(3)
    rows = [rng.normal(size=(40, 7)) for _ in range(50)]
    with sharing_with(2):
        shared = tall_factors(rows)
        solved = solve_factors(np.stack(shared), 1, 1, np.zeros(50))
    alone = tall_factors(rows)
    assert all(np.array_equal(one, other) for one, other in zip(shared, alone, strict=True))
    for factor, solution in zip(alone, solved, strict=True):
        (lonely,) = solve_factors(factor[None], 1, 1, np.zeros(1))
        assert solution is not None
        assert lonely is not None
        assert np.array_equal(solution.coefficients, lonely.coefficients)
