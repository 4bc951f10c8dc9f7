# Everything runs in an environment of its own: .venv, or .venv-python3.13 for `make test PYTHON=python3.13`.
PYTHON ?= python3
VENV ?= .venv$(if $(filter-out python3,$(notdir $(PYTHON))),-$(notdir $(PYTHON)))
BIN := $(VENV)/bin
unexport PYTHONDONTWRITEBYTECODE # or each process compiles all modules, and pytest all of their asserts, anew

.PHONY: help demo test test-all newest check docs audit gpu clean
.DEFAULT_GOAL := help

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /  make \1	/p' Makefile

demo: $(VENV)/.base ## Train on Python's own documentation and show what was learned
	@$(BIN)/daskw2v demo

# Many tests wait: there are more processes than cores.
PROCESSES = $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) * 3 / 2)))
TESTS = $(BIN)/python -m pytest -q -n $(PROCESSES) --maxprocesses 4 --dist loadfile

test: $(VENV)/.test ## Run the tests, but for those that are marked slow
	@$(BIN)/daskw2v warm-up
	@$(TESTS) -m 'not slow' $(PYTEST)

test-all: $(VENV)/.test ## Run all tests, as before a release
	@$(BIN)/daskw2v warm-up
	@$(TESTS) --hypothesis-profile thorough $(PYTEST)

# In an environment that is made anew; pyproject.toml bounds Dask by nothing, but may bound others.
NEWEST_BIN := .venv-newest/bin
NEWEST_INSTALL ?= $(NEWEST_BIN)/python -m pip install --quiet --disable-pip-version-check
NEWEST_TESTS ?= tests/store tests/cluster tests/sequences/test_sessions.py tests/training/test_train.py

newest: ## Test the newest releases of Dask, Zarr and Numba (to be scheduled; PYTHON=python3.14: the newest Python, too)
	@$(PYTHON) -m venv --clear .venv-newest
	@$(NEWEST_INSTALL) --editable '.[test]'
	@$(NEWEST_INSTALL) --upgrade dask distributed zarr numba
	@$(NEWEST_BIN)/python -c 'import sys, dask, numba, numpy, zarr; print("Python", sys.version.split()[0], *(f"{m.__name__} {m.__version__}" for m in (dask, zarr, numba, numpy)))'
	@$(NEWEST_BIN)/python -m pytest -q -n 2 --dist loadfile -m 'not slow' $(NEWEST_TESTS)

check: $(VENV)/.check ## Check style, types and layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

docs: $(VENV)/.docs ## Build the documentation in build/docs/html: notebooks are run, links are followed
	@$(BIN)/python -m pipelines.docs.build

audit: $(VENV)/.check ## Look for known vulnerabilities of what is installed (asks a database on the network)
	@$(BIN)/python -m pip freeze --exclude-editable > $(VENV)/audit.txt
	@$(BIN)/python -m pip_audit --strict --disable-pip --no-deps -r $(VENV)/audit.txt

gpu: $(if $(INSTALLED),,$(VENV)/.gpu) ## Test and measure on an NVIDIA GPU (WHEELS=folder: no network; INSTALLED=python: nothing installed)
	@$(or $(INSTALLED),$(BIN)/python) -m benchmarks.gpu $(GPU)

clean: ## Remove the environments, caches and the demo's work
	@rm -rf .venv* demo-work build *.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp for each set of dependencies; pip leaves alone whatever already fits.
$(VENV)/.base: REQUIREMENT = .
$(VENV)/.test: REQUIREMENT = .[test]
$(VENV)/.check: REQUIREMENT = .[check]
$(VENV)/.docs: REQUIREMENT = .[docs]
$(VENV)/.gpu: REQUIREMENT = .[test,cuda]
$(VENV)/.base $(VENV)/.test $(VENV)/.check $(VENV)/.docs $(VENV)/.gpu: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("daskw2v needs Python 3.11 or newer: make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV) (a few minutes the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(WHEELS),--no-index --find-links '$(WHEELS)') --editable '$(REQUIREMENT)'
	@touch $@
