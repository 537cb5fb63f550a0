# Every target works on a machine with only Python 3.11+ and make: it creates .venv and installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# One more than there are cores: tests of live nodes wait more than they compute.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(1 + (os.cpu_count() or 1))')
# BROWSER=no leaves out the tests that drive a browser.
BROWSER ?= yes
CHROMIUM := $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)
SUDO := $(shell test "$$(id -u)" = 0 || command -v sudo)
DOCS_STAMP := $(VENV)/.installed-docs

.PHONY: install demo browser test test-slow lint format bench docs clean

install: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("banditmesh needs Python 3.11 or newer, got " + sys.version.split()[0] + "; set PYTHON=...") if sys.version_info < (3, 11) else None'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing banditmesh and what it needs into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(STAMP)
	@$(BIN)/banditmesh paper --figure 3 --out demo-output

# A file's tests go to one worker, which makes its fixtures and compiles its kernels once; tests/conftest.py says in which
# order.
test: $(STAMP)
ifneq ($(BROWSER),no)
	@test -n "$(CHROMIUM)" || { echo "make test drives Chromium, which is not installed; run 'make browser', or 'make test BROWSER=no' without the tests that need it" >&2; exit 1; }
endif
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not slow and not browser"
# A browser answers keys and clicks when it gets round to it: its tests have the machine to themselves.
ifneq ($(BROWSER),no)
	$(BIN)/python -m pytest -m "not slow and browser" tests
endif

# Chromium of the system's packages, which the tests of the page drive.
browser:
	@test -n "$(CHROMIUM)" || { $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq --no-install-recommends chromium; }

test-slow: $(STAMP)
	$(BIN)/python -m pytest -n auto -m "slow and not alone"
	$(BIN)/python -m pytest -m alone

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)
	$(BIN)/python benchmarks/run.py

docs: $(DOCS_STAMP)
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html
	@echo "docs/_build/html/index.html is the front page."

$(DOCS_STAMP): $(STAMP)
	@echo "Installing what the docs need into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

clean:
	rm -rf $(VENV) build dist docs/_build docs/api .pytest_cache .mypy_cache .ruff_cache .hypothesis
