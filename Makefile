# Everything a user or a contributor starts. Targets install what they need into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install demo test check format sample ablations reproduce-small clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; ok = (3, 11) <= sys.version_info[:2] < (3, 14); sys.exit(0 if ok else "DocMemo needs Python 3.11 to 3.13; this is %d.%d. Name another: make PYTHON=python3.12 ..." % sys.version_info[:2])'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1' 
	@PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable . --group dev
	@touch $@

install: $(STAMP)  ## install into .venv

demo: $(STAMP)  ## run the whole pipeline on the bundled sample documents
	@test -d .dvc || (echo "no .dvc folder here: run this in a git clone of the project" && exit 1)
	@PATH="$(CURDIR)/$(BIN):$$PATH" dvc repro
	@$(BIN)/docmemo summary

test: $(STAMP)  ## run the tests
	@$(BIN)/python -m pytest

check: $(STAMP)  ## lint, types, layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache | tail -n 4

format: $(STAMP)  ## format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

ablations: $(STAMP)  ## switch off each part of the method, and compare: metrics/ablations.md
	@test -d .dvc || (echo "no .dvc folder here: run this in a git clone of the project" && exit 1)
	@PATH="$(CURDIR)/$(BIN):$$PATH" dvc repro embed schema
	@$(BIN)/python -m flows.ablations $(if $(NAMES),--names $(NAMES))

# A folder of MMLongBench-Doc; empty is the bundled sample.
DATASET ?= $(wildcard ../shared/datasets/mmlongbench)

reproduce-small: $(STAMP)  ## baselines, DocMemo and key ablations on a small part of DATASET
	@$(BIN)/python -m scripts.reproduce_small $(if $(DATASET),--dataset "$(DATASET)") $(if $(NAMES),--names $(NAMES))

sample: $(STAMP)  ## make the bundled sample documents again
	@$(BIN)/python -m scripts.make_sample

clean:  ## remove the virtual environment and caches of tools
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
