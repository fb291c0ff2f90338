# `make prove` and `make test` do all the set-up themselves; nothing is installed outside .venv except, as root on
# Debian, Chromium, fio, ShellCheck and Slurm, which tests drive (tools/install_real.py).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help prove test check fmt golden docs validate bench corpus fuzz clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

# Sources are compiled once: where PYTHONDONTWRITEBYTECODE is set, each start would compile them anew.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, found " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[local,dev]'
	$(BIN)/python -m compileall -q src
	touch $(READY)

prove: $(READY) ## prove examples/two-workers on the embedded engine: no root, no GPU
	$(BIN)/python tools/prove_example.py

test: $(READY) ## run the whole test suite, with the real components it can install
	$(BIN)/python tools/install_real.py
	$(BIN)/python -m pytest

check: $(READY) ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fmt: $(READY) ## format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

golden: $(READY) ## write the golden files anew; read the diff before committing it
	$(BIN)/python tools/write_golden.py

docs: $(READY) ## write the generated pages in docs/ anew
	$(BIN)/python tools/write_docs.py

validate: $(READY) ## score the planner against public measurements beside the clone; write docs/accuracy.md
	$(BIN)/python tools/validate.py --docs

bench: $(READY) ## measure start-up, planning, readers and scheduling beside named peers
	$(BIN)/python bench/startup.py
	$(BIN)/python bench/readers.py
	$(BIN)/python bench/peers.py
	$(BIN)/python bench/growth.py
	$(BIN)/python bench/queueing.py
	$(BIN)/python bench/planner_speed.py
	$(BIN)/python bench/serving_estimates.py

corpus: $(READY) ## read a folder of tool outputs (public ones beside the clone, else the fixtures): kind × read, partly, refused
	$(BIN)/python tools/read_corpus.py

fuzz: $(READY) ## fuzz every reader for FUZZ_SECONDS (30) each under coverage guidance
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt atheris
	$(BIN)/python tools/fuzz_readers.py --seconds $(or $(FUZZ_SECONDS),30)

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist proof .fuzz
