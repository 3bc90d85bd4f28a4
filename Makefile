# Every target sets itself up from nothing: Python >= 3.11 and make are all it takes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

.PHONY: demo test quick lint bench storm docs clean

demo: $(READY)
	$(BIN)/discreet demo

# A worker a processor and two more, as tests wait for browsers, servers and disks; kernels are compiled
# before they start, so that no two of them compile the same, and the tests too: Python may keep what it compiled.
unexport PYTHONDONTWRITEBYTECODE
WORKERS := $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 2)')
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test: $(READY)
	$(BIN)/python -m tests.support.warm
	$(PYTEST)

# What takes long (marked `slow`) is left out.
quick: $(READY)
	$(BIN)/python -m tests.support.warm
	$(PYTEST) -m "not slow"

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	$(BIN)/python -m benchmarks

# Ten thousand workers and three hundred servers killed at random points, on SQLite and, if it is installed, on
# PostgreSQL.
KILLS ?= 10000
SERVERS ?= 300
storm: $(READY)
	$(BIN)/python -m tests.support.storm --kills $(KILLS)
	$(BIN)/python -m tests.support.outage --kills $(SERVERS)

docs: $(READY)
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "discreet needs Python 3.11 or newer: run make PYTHON=python3.12, for instance" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(READY)

clean:
	rm -rf $(VENV) node_modules docs/_build dist .pytest_cache .mypy_cache .ruff_cache
