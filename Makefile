# Every target sets up what it needs in .venv; nothing else has to be installed first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps

.PHONY: quickstart test mutants check format docs bench bench-quick clean

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

$(STAMPS)/bench: $(STAMPS)/dev benchmarks/requirements.txt
	$(BIN)/python -m pip install --quiet --requirement benchmarks/requirements.txt
	@touch $@

quickstart: $(STAMPS)/run
	$(BIN)/python examples/quickstart.py

test: $(STAMPS)/dev
	$(BIN)/python -m pytest -n 2 --dist loadgroup

# Small faults put into the program one by one: which of them do the tests not see? Half an hour on two cores.
mutants: $(STAMPS)/dev
	$(BIN)/python -m tests.mutants

check: $(STAMPS)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tests.mutants --check

format: $(STAMPS)/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The documentation site, in docs/_build/html; a warning is an error.
docs: $(STAMPS)/dev
	$(BIN)/python -m sphinx --fail-on-warning --keep-going -q -b html docs docs/_build/html

bench: $(STAMPS)/bench
	$(BIN)/python -m benchmarks

# Small sizes: tables are printed, the pages stay as they are.
bench-quick: $(STAMPS)/bench
	$(BIN)/python -m benchmarks --quick

clean:
	rm -rf $(VENV) build dist docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
