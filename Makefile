# The commands of the README. Everything goes into .venv; nothing outside this folder is changed.
# `make PYTHON=python3.12 demo` chooses another interpreter.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INPUTS := pyproject.toml constraints.txt

# The folder that the environment was made in. A copied checkout brings an environment that would run the code of the
# place it was copied from, so it is made anew.
MADE_IN := $(shell cat $(VENV)/.made-in 2>/dev/null)

# pyright from PyPI would ask the npm registry for a newer release of itself at every start.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
# Dagster's usage reports are sent by no command that is started here.
export DAGSTER_DISABLE_TELEMETRY := 1

# Hundreds of Python processes are started here, many of them by tests; each would compile the same files anew. What
# nobody imports is never compiled: pip would spend a minute on it.
unexport PYTHONDONTWRITEBYTECODE

# Test processes at once: more than the two cores of a small machine, since many tests wait for a process or a clock.
WORKERS ?= 4

# After an installation, beside the type check: compiles what tests import. Each test process would do that for itself.
COMPILE := { $(BIN)/python -m rag_eval_assets_tests.servers.warm && $(BIN)/python -m pytest --collect-only -qq \
  && touch $(VENV)/.compiled; } >/dev/null

# Pairs that `make bench` measures.
SIZES ?= 16 64 250 1000 4000

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test soak lint ui bench clean

help: ## list the targets
	@grep -E '^[a-z]+: .*## ' Makefile | sed -E 's/^([a-z]+):.*## /  make \1\t/'

demo: $(VENV)/.installed-run ## evaluate the bundled suite and say where the report lies
	$(BIN)/rag-eval run

test: $(VENV)/.installed-dev ## lint, type check, and run every test
	@.ci/install-debian-packages
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright --pythonpath $(BIN)/python & types=$$!; [ -e $(VENV)/.compiled ] || $(COMPILE); wait $$types
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

soak: $(VENV)/.installed-dev ## the tests that take minutes: runs killed at many moments
	$(BIN)/python -m pytest -m soak

lint: $(VENV)/.installed-dev ## ruff and pyright alone
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright --pythonpath $(BIN)/python

ui: $(VENV)/.installed-run ## Dagster's web server and daemon on 127.0.0.1, until Ctrl-C
	$(BIN)/rag-eval ui

bench: $(VENV)/.installed-run ## measure scoring beside the public packages, an hour or so; SIZES="16 64" for less
	$(BIN)/python -m benchmarks.scoring --sizes $(SIZES) --out .rag-eval/benchmarks/results.json

clean: ## remove the environment, .rag-eval with all reports, and caches
	rm -rf $(VENV) .rag-eval build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find rag_eval_assets rag_eval_assets_tests -name __pycache__ -type d -prune -exec rm -rf {} +

# A file per set of packages says that the set is there and newer than what names it. The larger set holds the smaller.
$(VENV)/.installed-run: $(VENV)/.made-in $(INPUTS)
	@echo "Installing the package into $(VENV) (a few minutes the first time) ..."
	@$(BIN)/python -m pip install -qq --no-compile --disable-pip-version-check -c constraints.txt -e '.[offline]'
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.made-in $(INPUTS)
	@echo "Installing the package and its test tools into $(VENV) (a few minutes the first time) ..."
	@$(BIN)/python -m pip install -qq --no-compile --disable-pip-version-check -c constraints.txt -e '.[offline,dev]'
	@touch $(VENV)/.installed-run $@

ifneq ($(MADE_IN),$(CURDIR))
.PHONY: $(VENV)/.made-in
endif
$(VENV)/.made-in:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed and '$(PYTHON)' is not; choose one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "'$(PYTHON)' cannot make virtual environments; on Debian or Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo "Creating $(VENV) with $$($(PYTHON) --version) ..."
	@$(PYTHON) -m venv $(if $(MADE_IN),--clear) $(VENV)
	@# The pip that comes with an older Python takes nearly twice as long for what follows.
	-@$(BIN)/python -m pip install -qq --disable-pip-version-check -U pip
	@pwd -P > $@
