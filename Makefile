# Every target but paper works on a machine with only Python 3.11+ and make: it creates .venv and installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# One more than there are cores: tests of live nodes wait more than they compute.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(1 + (os.cpu_count() or 1))')
# The tests that drive a browser: auto runs them if Chromium is there or can be installed, yes fails without it, no
# leaves them out.
BROWSER ?= auto
DOCS_STAMP := $(VENV)/.installed-docs
PAPER := docs/theory/paper

.PHONY: install demo browser test test-slow lint format bench docs dist paper clean

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
# Python keeps what it compiles, even where the environment says otherwise: tests start hundreds of interpreters.
test: export PYTHONDONTWRITEBYTECODE =
test: $(STAMP)
ifneq ($(BROWSER),no)
	@sh tests/install_chromium.sh || test $(BROWSER) = auto
endif
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not slow and not browser"
# A browser answers keys and clicks when it gets round to it: its tests have the machine to themselves.
	@if test $(BROWSER) != no && sh tests/install_chromium.sh --check; then \
	    $(BIN)/python -m pytest -m "not slow and browser" tests/web tests/test_animations.py tests/test_story.py; \
	else \
	    echo "Left out: the tests that drive a browser. Run them too with 'make browser test'."; \
	fi

# Chromium of the system's packages, which the tests of the page drive.
browser:
	@sh tests/install_chromium.sh

test-slow: $(STAMP)
	$(BIN)/python -m pytest -n auto -m "slow and not alone"
# What is quick with few examples, with many.
	$(BIN)/python -m pytest -n auto -m "hypothesis and not slow and not browser" --hypothesis-profile banditmesh
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

# The wheel and the source distribution, as a release has them.
dist: $(STAMP)
	@rm -rf dist
	$(BIN)/python -m hatchling build -d dist

# The article, with LaTeX of the system's packages (on Debian texlive-latex-extra and lmodern).
paper:
	@command -v pdflatex >/dev/null || { echo "make paper needs pdflatex, which is not installed; on Debian: apt-get install texlive-latex-extra lmodern" >&2; exit 1; }
	@cd $(PAPER) && for pass in 1 2; do pdflatex -interaction=nonstopmode -halt-on-error article.tex >/dev/null || { tail -20 article.log; exit 1; }; done
	@echo "$(PAPER)/article.pdf is the article; $(PAPER)/make_numbers.py computes its numbers anew."

clean:
	rm -rf $(VENV) build dist docs/_build docs/api $(PAPER)/article.[!t]* .pytest_cache .mypy_cache .ruff_cache .hypothesis
