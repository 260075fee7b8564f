# Everything runs in .venv, made from nothing with `python3 -m venv` and pip.
# One stamp file per set of dependencies, renewed when pyproject.toml changes.
# Bytecode is not compiled by pip, on one core: `make demo` imports little of what it installs.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install -qq --disable-pip-version-check

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo test test-all fuzz mutate lint format docs gallery browser bench reproduce clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/stamp-core  ## a cube slides, a gripper holds, a robot stands: tables, a picture
	@$(BIN)/python -m holdfast demo --picture holdfast-demo.png --force

test: $(VENV)/stamp-dev  ## tests that take seconds
	@$(BIN)/python -m pytest -q -m "not slow"

test-all: $(VENV)/stamp-dev $(VENV)/stamp-dask $(VENV)/stamp-ray  ## all tests, thoroughly; then again without compilation
	@HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -q
	@NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q -m "not slow and not jit"

SECONDS ?= 600
fuzz: $(VENV)/stamp-dev  ## random scenes, interrupts and forgeries for SECONDS=600, as figures
	@PYTHONPATH=tests $(BIN)/python -m fuzz.run --seconds $(SECONDS)

mutate: $(VENV)/stamp-dev  ## mutants of the sources against the tests that reach them; hours, goes on where it stopped
	@PYTHONPATH=tests $(BIN)/python -m mutate.score

lint: $(VENV)/stamp-dev  ## ruff (rules and format) and pyright
	@failed=0; \
	for check in "ruff check -q" "ruff format -q --check" "pyright"; do \
		$(BIN)/python -m $$check || failed=1; \
	done; \
	exit $$failed

format: $(VENV)/stamp-dev  ## let ruff format the code and fix what it can
	@$(BIN)/python -m ruff check --fix .
	@$(BIN)/python -m ruff format .

docs: $(VENV)/stamp-docs  ## HTML pages in docs/_build/html; warnings are errors
	@$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

gallery: $(VENV)/stamp-dev  ## every picture of README and docs, in docs/images
	@$(BIN)/python -m holdfast demo --picture docs/images/demo.png \
		--video docs/images/side_by_side.gif --force --width 240 --fps 12.5 --duration 4
	@$(BIN)/python docs/gallery.py

browser:  ## Debian's Chromium, EGL and ffmpeg, which tests of the viewer and of videos use
	@if ! command -v chromium > /dev/null || ! command -v ffmpeg > /dev/null || ! ldconfig -p | grep -q libEGL.so.1; then \
		apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
			chromium ffmpeg libegl1 libgl1-mesa-dri > /dev/null; \
	fi

bench: $(VENV)/stamp-bench  ## ratios against other solvers on this machine
	@$(BIN)/python benchmarks/run.py
	@$(BIN)/python benchmarks/grasp.py
	@$(BIN)/python benchmarks/step.py
	@$(BIN)/python benchmarks/overview.py
	@$(BIN)/python benchmarks/convergence.py
	@$(BIN)/python benchmarks/quadruped.py
	@$(BIN)/python benchmarks/corpus.py
	@$(BIN)/python benchmarks/coulomb.py
	@$(BIN)/python benchmarks/random_problems.py
	@$(BIN)/python benchmarks/islands.py
	@$(BIN)/python benchmarks/publish.py

reproduce: $(VENV)/stamp-core  ## the paper's experiments: report/index.html, tables of the documentation
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m holdfast reproduce all --out report --resume
	@$(BIN)/python benchmarks/publish_report.py report

clean:  ## remove the environment, caches and everything built
	@rm -rf $(VENV) build dist report docs/_build .pytest_cache .ruff_cache .hypothesis .benchmarks
	@find src tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment remembers where it was made: a moved or copied checkout gets a new one,
# because an editable install points at the old place.
ifneq ($(shell cat $(VENV)/stamp-root 2>/dev/null),$(CURDIR))
.PHONY: $(VENV)/stamp-root
endif

$(VENV)/stamp-root:
	@$(PYTHON) -c 'import sys; sys.exit("holdfast needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; try make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	@echo "creating $(VENV)"
	@$(PYTHON) -m venv --clear $(VENV)
	@echo "$(CURDIR)" > $@

$(VENV)/stamp-core: pyproject.toml $(VENV)/stamp-root
	@echo "installing holdfast into $(VENV)"
	@$(PIP) --no-compile -e .
	@touch $@

$(VENV)/stamp-%: pyproject.toml $(VENV)/stamp-core
	@echo "installing the extra '$*' into $(VENV)"
	@$(PIP) --no-compile -e '.[$*]'
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true
	@touch $@
