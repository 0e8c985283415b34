"""The search for faults that no test sees: what makes its verdicts ones to rely on."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutants.compiled import Kernels
from tests.mutants.killers import failures
from tests.mutants.outcomes import Outcome, Outcomes, digest_of
from tests.mutants.reading import Mutant, faults_of
from tests.warm_process import WarmProcess

THIS = "tests/test_mutants.py"
WARM = "tests/warm_process.py"
MUTANT = Mutant("one", WARM, "class WarmProcess:", "class ColdProcess:", (f"{THIS}::test_kept_outcomes",), "all of it")


def test_kernels_that_take_in_a_changed_file(tmp_path: Path) -> None:
    texts = {
        "constant": "SIZE = 3\n",
        "inner": "from room.constant import SIZE\n@compiled\ndef f(): return SIZE\n",
        "passed_on": "import room.inner\n",
        "outer": "from room import passed_on\n@compiled_with(fastmath=True)\ndef g(): pass\n",
        "plain": "from room.inner import f\n",
        "alone": "@njit(cache=True)\ndef h(): pass\n",
    }
    (tmp_path / "room").mkdir()
    files = {name: tmp_path / "room" / f"{name}.py" for name in texts}
    for name, text in texts.items():
        files[name].write_text(text)
    kernels = Kernels(tmp_path)
    stale = {name: [path.stem for path in kernels.made_stale_by(file)] for name, file in files.items()}
    assert stale["constant"] == stale["inner"] == ["inner", "outer"]
    assert stale["passed_on"] == stale["outer"] == ["outer"]
    assert stale["plain"] == []
    assert stale["alone"] == ["alone"]
    before = kernels.digest()
    files["plain"].write_text("")
    assert Kernels(tmp_path).digest() == before
    files["constant"].write_text("SIZE = 4\n")
    assert Kernels(tmp_path).digest() != before


def test_kept_outcomes(tmp_path: Path) -> None:
    path = tmp_path / "kept" / "outcomes.json"
    killer = MUTANT.tests[0]
    Outcomes(path).keep(Outcome("one", "killed", 0.5, killer, "abc", digest_of(MUTANT, killer)))
    known = Outcomes(path).of(MUTANT)
    assert known is not None
    assert (known.result, known.killer, known.revision) == ("killed", killer, "abc")
    assert Outcomes(path).of(replace(MUTANT, after="class Other:")) is None
    assert Outcomes(path).of(replace(MUTANT, file="tests/conftest.py")) is None
    assert Outcomes(path).of(replace(MUTANT, id="two")) is None


def test_faults_of_mutants_and_killers() -> None:
    assert faults_of([MUTANT], {"one": MUTANT.tests[0]}) == []
    wrong = [replace(MUTANT, before="nowhere"), replace(MUTANT, id="two", tests=(f"{THIS}::test_gone",))]
    assert faults_of(wrong, {"one": "tests/gone.py", "three": THIS}) == [
        f"one: its text occurs 0 times in {WARM}, not once: write it anew.",
        f"two: there is no {THIS}::test_gone.",
        "killers.json, one: there is no test tests/gone.py any more: take the line out.",
        "killers.json, three: there is no such mutant any more: take the line out.",
    ]


def test_failures_are_read_from_the_summary() -> None:
    said = "..F\nFAILED tests/a.py::test_b[c d] - assert 1 == 2\nERROR tests/e.py - ImportError\n1 failed\n"
    assert failures(said) == ["tests/a.py::test_b[c d]", "tests/e.py"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that split off others")
def test_a_warm_process(tmp_path: Path) -> None:
    out = tmp_path / "printed"
    warm = WarmProcess("number = 41\n", os.environ)
    try:
        assert warm.run("number += 1; print(number, os.environ['ONE'])", tmp_path, out, {"ONE": "two"}) == 0
        assert out.read_text() == "42 two\n"
        assert warm.run("print(number, os.environ.get('ONE')); sys.exit(7)", tmp_path, out) == 7
        assert out.read_text() == "41 None\n"
        assert warm.run("sys.exit('why')", tmp_path, out) == 1
        assert out.read_text() == "why\n"
        assert warm.run("os.abort()", tmp_path, out) == -6
        assert warm.run("time.sleep(60)", tmp_path, out, seconds=1) is None
        assert warm.run("print(os.getcwd())", tmp_path, out) == 0
        assert Path(out.read_text().strip()).samefile(tmp_path)
    finally:
        warm.close()
