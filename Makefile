# Every target sets up what it needs in .venv; nothing else has to be installed first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps
LOWEST := .venv-lowest
WHEEL := .venv-wheel

# Bytecode is kept: otherwise every process of the tests compiles the whole package anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: quickstart setup test mutants attack test-quick durations check format docs lowest lowest-clusters dist test-wheel bench bench-quick clean

$(BIN)/python:
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'partsketch needs Python 3.11 or newer: make PYTHON=/path/to/python3.11')"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# Two environments' worth of packages, one virtual environment: running needs few, developing more.
$(STAMPS)/run: pyproject.toml src/partsketch/_version.py | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/dev: pyproject.toml src/partsketch/_version.py | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	@mkdir -p $(STAMPS) && touch $@ $(STAMPS)/run

# What Python and numba compile is kept beside the sources: made here once, not by every process of the tests.
$(STAMPS)/compiled: | $(STAMPS)/dev
	$(BIN)/python -m compileall -q -j 2 src
	$(BIN)/python -m tests.compiled_kernels
	$(BIN)/python -m pytest --collect-only --quiet > /dev/null
	@touch $@

$(STAMPS)/bench: $(STAMPS)/dev benchmarks/requirements.txt
	$(BIN)/python -m pip install --quiet --requirement benchmarks/requirements.txt
	@touch $@

quickstart: $(STAMPS)/run
	$(BIN)/python examples/quickstart.py

# All that tests need, so that they can run where nothing can be installed.
setup: $(STAMPS)/dev $(STAMPS)/compiled

# The smoke suite is for other versions and the wheel (make lowest, make test-wheel): all that it does is tested elsewhere.
test: setup
	$(BIN)/python -m pytest -n 2 --dist loadgroup --ignore tests/smoke

# While developing: no clusters, browsers, simulations or anything else that takes a fifth of a second; under a minute
# once the kernels are compiled.
test-quick: setup
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not slow"

# How long every test takes, on a quiet machine: decides which are quick, and with which files a run begins.
durations: setup
	$(BIN)/python -m pytest -n 2 --dist loadgroup --junitxml=.pytest_cache/durations.xml
	$(BIN)/python -m tests.durations .pytest_cache/durations.xml

# Small faults put into the program one by one: which of them do the tests not see? A quarter of an hour on two cores,
# and as long again to see that the tests pass without them.
mutants: $(STAMPS)/dev
	$(BIN)/python -m tests.mutants

# An hour of bad inputs, forged files, full disks and kills; ATTACK="--minutes 5 --only outputs" for less.
attack: $(STAMPS)/dev
	$(BIN)/python -m tests.attack $(ATTACK)

check: $(STAMPS)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.mutants --check

format: $(STAMPS)/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The documentation site, in docs/_build/html; a warning is an error.
docs: $(STAMPS)/dev
	$(BIN)/python -m sphinx --fail-on-warning --keep-going -q -b html docs docs/_build/html

# The lowest versions that pyproject.toml declares, in an environment of their own.
$(LOWEST)/.stamps/core: pyproject.toml .ci/lowest_versions.py
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --upgrade pip
	$(LOWEST)/bin/python .ci/lowest_versions.py report > $(LOWEST)/core.txt
	$(LOWEST)/bin/python -m pip install --quiet --constraint $(LOWEST)/core.txt --editable ".[report]" pytest
	@mkdir -p $(@D) && touch $@

$(LOWEST)/.stamps/clusters: $(LOWEST)/.stamps/core
	$(LOWEST)/bin/python .ci/lowest_versions.py report pandas dask ray spark > $(LOWEST)/clusters.txt
	$(LOWEST)/bin/python -m pip install --quiet --constraint $(LOWEST)/clusters.txt --editable ".[report,pandas,dask,ray,spark]"
	@touch $@

lowest: $(LOWEST)/.stamps/core
	$(LOWEST)/bin/python -m pytest -q --confcutdir tests/smoke tests/smoke

lowest-clusters: $(LOWEST)/.stamps/clusters
	$(LOWEST)/bin/python -m pytest -q --confcutdir tests/smoke tests/smoke/on_clusters.py

# A wheel and a source distribution, in dist/.
dist: $(STAMPS)/dev
	rm -rf dist
	$(BIN)/python -m build --outdir dist

# The wheel alone in an empty environment, away from the clone; another Python with make test-wheel PYTHON=python3.13.
test-wheel: dist
	rm -rf $(WHEEL)
	$(PYTHON) -m venv $(WHEEL)
	$(WHEEL)/bin/python -m pip install --quiet --upgrade pip
	$(WHEEL)/bin/python -m pip install --quiet "$$(ls dist/*.whl)[report]" pytest
	mkdir $(WHEEL)/smoke && cp tests/smoke/*.py $(WHEEL)/smoke
	cd $(WHEEL) && bin/python -m pytest -q -p no:cacheprovider --rootdir . smoke

bench: $(STAMPS)/bench
	$(BIN)/python -m benchmarks

# Small sizes: tables are printed, the pages stay as they are.
bench-quick: $(STAMPS)/bench
	$(BIN)/python -m benchmarks --quick

clean:
	rm -rf $(VENV) $(LOWEST) $(WHEEL) build dist docs/_build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
