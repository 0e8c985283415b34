"""A bounded sample of every class of attacks, the same cases every time; `make attack` takes an hour and others."""

from __future__ import annotations

import os

import pytest

from tests.attack.classes import CLASSES, AttackClass
from tests.attack.judges import CONTROL, Ended, judge_ended, judge_reading
from tests.attack.running import run_class

#: Seconds for all classes together.
SECONDS = 4.0
#: A failure names it; PARTSKETCH_ATTACK_SEED takes another.
SEED = int(os.environ.get("PARTSKETCH_ATTACK_SEED", "20774"))


@pytest.mark.slow
@pytest.mark.parametrize("known", CLASSES, ids=lambda known: known.name)
def test_a_sample_keeps_all_promises(known: AttackClass) -> None:
    share = SECONDS * known.share / sum(other.share for other in CLASSES)
    # On a busy machine at least a few.
    outcomes = list(run_class(known, SEED, share, least=5))
    faults = [
        f"--only {known.name} --seed {SEED} --case {outcome.number}: {outcome.case}\n{outcome.fault}"
        for outcome in outcomes
        if outcome.fault is not None
    ]
    assert not faults, "\n".join(faults)


def test_the_judges_see_faults() -> None:
    """A judge that finds nothing wrong with anything would make every attack pass."""
    good = Ended(2, "", "Error: There is no column 'z': correct it.\n")
    assert judge_ended(good, "refuse") is None
    wrong = {
        "wrong refusal": judge_ended(good, "accept"),
        "wrong accept": judge_ended(Ended(0, "done\n", ""), "refuse"),
        "traceback": judge_ended(Ended(1, "", "Traceback (most recent call last):\n")),
        "sentence": judge_ended(Ended(2, "", "KeyError: 'z'\n")),
        "raw control": judge_ended(Ended(0, "\x1b[2J", "")),
    }
    assert {kind: fault.kind for kind, fault in wrong.items() if fault is not None} == {kind: kind for kind in wrong}
    exit_70 = judge_ended(Ended(70, "", good.err))
    assert exit_70 is not None
    assert exit_70.kind == "traceback"
    nan = judge_ended(Ended(0, '{"a": NaN}', ""))
    assert nan is not None
    assert nan.kind == "wrong accept"

    def broken() -> None:
        raise KeyError("z")

    read = judge_reading(broken)
    assert read is not None
    assert read.kind == "traceback"
    assert judge_reading(lambda: None, "refuse") is not None
    assert all(CONTROL.search(character) for character in "\x00\x07\x1b\x7f\x85\x9b\u202e\u2066\u2028")
    assert not CONTROL.search("größe\n\t日本 σ² ─ ●")
