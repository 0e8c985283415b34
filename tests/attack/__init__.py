"""Attacks: bad inputs, forged files, full disks and kills, made by the thousand, and what must hold for each.

`make attack` (`python -m tests.attack --minutes 60`) runs for an hour; `make test` takes a bounded sample of every
class, 60 seconds in all (`test_attacks.py`). A report counts cases and faults: tracebacks, wrong accepts, wrong
refusals, inputs changed, hangs, things left behind. `docs/faults.md` states the promises and the last counts.

A class of attacks is a module that is listed in `classes.py`. It has

- a docstring that says in one sentence what is attacked and what is promised;
- `cases(seed: int) -> Iterator[Case]`: an endless generator; the same seed gives the same cases in the same order, and
  a prefix of any length is a fair sample. Valid cases belong among them: a tool that refuses everything is not safe.

A `Case` (`case.py`) has a name that tells a reader what it is, and `attack(folder) -> Fault | None`, which builds what
it needs in an empty folder of its own, lets the program at it, and judges. The judges are in `judges.py`:

- `judge_command(arguments, folder, ...)` runs a command in this process (`subprocess=True`: in one of its own), and
  finds tracebacks, exit codes that are not promised, inputs that changed, files left behind, raw control characters;
- `judge_reading(read, must)` calls a function that reads a forged file: it must raise an `InputError` of one sentence
  ("refuse"), return ("accept"), or may do either ("any"); anything else is a fault.

Cases run in a worker process with bounded memory, and a watchdog outside: one that takes more than `HANG_SECONDS` is a
hang. A fault names class, seed and number of its case; `python -m tests.attack --only CLASS --seed SEED --case NUMBER`
runs it alone and shows all it printed.
"""
