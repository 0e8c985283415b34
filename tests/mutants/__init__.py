"""Small faults put into the program on purpose, to see that the tests see them.

Every `*.toml` file here holds mutants of one part of the program: a file, a piece of its text that occurs there exactly
once, what stands in its place, the tests that must fail then, and what would be wrong. `python -m tests.mutants` puts
them in one by one, each into a copy of `src`, and runs their tests, first the one that saw it last (`killers.json`).
In the end the tests that saw faults are run on the program as it is: there they must pass. A mutant that no test can
see says why (`equivalent`), and one that makes tests hang, too (`hangs`). With `--folder` a run that was stopped goes
on, and tries again only mutants whose file or tests have changed.
"""
