# Everything sets itself up: Python 3.11 or later, git and make are enough.
# `make run` and `make test` share one .venv; it is rebuilt only when pyproject.toml or constraints.txt change.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
VENV_READY := $(VENV)/.ready-venv
RUN_READY := $(VENV)/.ready-run
DEV_READY := $(VENV)/.ready-dev
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help install run test lint bench docs pictures clean

help:  ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(DEV_READY)  ## set up .venv with the development tools

run: $(RUN_READY)  ## show what eign does, in the terminal
	$(BIN)/eign demo

test: lint  ## lint, types, layers, doctests and tests
	$(BIN)/python -m pytest -n 2 --dist worksteal -q

lint: $(DEV_READY)  ## ruff, mypy strict, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(DEV_READY)  ## the properties with random seeds, and the benchmarks; hours, for BoTorch takes its time
	$(BIN)/python -m pytest -n 2 --dist worksteal -q -m hypothesis --hypothesis-profile random tests
	$(BIN)/python -m eign_lab.speed.import_time
	$(BIN)/eign speed --formulas
	$(BIN)/python -m eign_lab.studies.contour_accuracy
	$(BIN)/python -m eign_lab.speed.by_hand
	$(BIN)/python -m eign_lab.speed.joint_large
	$(BIN)/eign speed --fit
	$(BIN)/eign speed --growth
	$(BIN)/eign speed
	$(BIN)/python -m eign_lab.studies.worker_overhead
	$(BIN)/python -m eign_lab.studies.batch_quality
	$(BIN)/python -m eign_lab.studies.gradient_faults
	$(BIN)/python -m eign_lab.studies.mirrored_acquisition
	$(BIN)/python -m eign_lab.studies.search_beside_botorch
	$(BIN)/python -m eign_lab.studies.kills --kills 1000 --results results/kill_study.jsonl
	$(BIN)/python -m eign_lab.studies.random_sequences --results results/random_sequences.jsonl
	$(BIN)/python -m eign_lab.studies.optuna_comparison

docs: $(DEV_READY)  ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open site/index.html"

pictures: $(DEV_READY)  ## draw the pictures of the documentation anew
	$(BIN)/python docs/pictures.py

clean:  ## remove what the other targets made
	rm -rf $(VENV) site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV_READY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "eign needs Python 3.11 or later; give one with: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(RUN_READY): pyproject.toml constraints.txt | $(VENV_READY)
	@echo "Setting up $(VENV) (a few minutes the first time) ..."
	$(PIP_INSTALL) --editable '.[bench]'
	@touch $@

$(DEV_READY): $(RUN_READY)
	@echo "Adding the development tools ..."
	$(PIP_INSTALL) --editable '.[bench,dev]'
	@touch $@
