# Needs Python 3.11 to 3.14 and make; everything else goes into .venv. `make` alone lists the targets.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
DEMO := runs/demo

# PYTHON=... names the Python to use; without it, the first one of these that fits.
PYTHONS := $(or $(PYTHON),python3 python3.11 python3.12 python3.13 python3.14)

# Processes that run tests; each needs about 2 GB. A file's tests share a process, and so what they set up.
PYTEST := $(BIN)/python -m pytest -q -n auto --maxprocesses=4 --dist=loadfile --no-loadscope-reorder

# pip_install(FILE,MESSAGE): installs a file of requirements, with a dot every two seconds.
define pip_install
printf '%s' '$(2)'; \
(while sleep 2; do printf .; done) & dots=$$!; trap 'kill $$dots' EXIT; trap 'exit 130' INT TERM; \
$(PIP) install -q -r $(1) && echo ' done.'
endef

# new_venv(FOLDER): an empty environment of the first Python that fits.
define new_venv
for python in $(PYTHONS); do \
  if $$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2> /dev/null; then \
    echo "Making $(1) with $$($$python --version)."; exec $$python -m venv --clear $(1); \
  fi; \
done; \
echo "t2tlite needs Python 3.11, 3.12, 3.13 or 3.14. Tried: $(PYTHONS)." \
  "Install one of them, or name it: make PYTHON=/path/to/python3.12" >&2; exit 1
endef

# link_packages(FOLDER): links to the packages in the places where they are installed: problems/ as FOLDER/problems, and so on.
define link_packages
rm -rf $(1) && mkdir -p $(1) && \
ln -s "$(CURDIR)"/t2tlite/* "$(CURDIR)"/problems "$(CURDIR)"/hparams "$(CURDIR)"/bin $(1)/
endef

.PHONY: help demo bench docs test test-all test-faults check lint types wheel wheel-test release-check hooks install install-tests link-types clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

demo: install  ## train a small English-German model on generated sentences, then score and show its translations
	$(BIN)/t2t-trainer --generate_data --problem=grammar_ende --hparams_set=transformer_tiny \
	  --data_dir=$(DEMO)/data --output_dir=$(DEMO)/grammar_ende
	$(BIN)/t2t-decoder --output_dir=$(DEMO)/grammar_ende --split=test
	@echo "To translate with it in your browser: $(BIN)/t2t-serve --output_dir=$(DEMO)/grammar_ende"

# PEERS=FOLDER: virtual environments with other projects' programs, to compare with; see docs/performance.md.
bench: install  ## measure speed and memory on this machine; PEERS=FOLDER of other programs' environments adds those
	$(BIN)/python benchmarks/compare.py --repeats=1 $(if $(PEERS),--peers="$(PEERS)")

test: install-tests  ## run the tests that a commit must pass, in at most five minutes; needs nothing but the checkout
	$(PYTEST) -m "not slow and not shared"

test-all: install-tests  ## run every test, with the slow ones and the larger cases in ../shared, as CI does
	$(PYTEST)

# KILLS=N: how often the run is killed. FUZZ=N: examples of each fuzz test.
test-faults: install-tests  ## kill one run at random moments and compare its results; fuzz everything that reads files
	T2TLITE_KILLS=$(or $(KILLS),60) T2TLITE_FUZZ_EXAMPLES=$(or $(FUZZ),2000) \
	  $(BIN)/python -m pytest -q -s tests/faults tests/fuzz

check: lint types test  ## everything a commit must pass: ruff, mypy, import direction, tests

lint: install-tests  ## ruff: mistakes and formatting; names and words that have better ones
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m pytest -q tests/test_words.py

# mypy sees the packages where they are installed, not where they lie: problems/ as t2tlite/problems, and so on.
types: install-tests  ## mypy
	@$(call link_packages,build/typecheck/t2tlite)
	cd build/typecheck && $(CURDIR)/$(BIN)/mypy --config-file $(CURDIR)/pyproject.toml -p t2tlite

# Built from a copy: over an old build/lib, setuptools would ship files deleted since.
wheel: install  ## build dist/t2tlite-*.whl
	@rm -rf build/wheel dist && mkdir -p build/wheel
	@cp -R setup.py pyproject.toml README.md LICENSE t2tlite problems hparams bin build/wheel/
	$(PIP) wheel -q --no-deps --no-build-isolation -w dist build/wheel
	@ls dist/*.whl

wheel-test: wheel  ## install the wheel into an environment of its own and try it from outside this folder
	@rm -rf build/wheel-venv && $(BIN)/python -m venv build/wheel-venv
	@echo "Installing the wheel with its requirements into build/wheel-venv, then with those of t2t-serve and of charts."
	@build/wheel-venv/bin/python -m pip install -q --disable-pip-version-check -c requirements.txt dist/*.whl
	cd build/wheel-venv && bin/python -W error::SyntaxWarning $(CURDIR)/.ci/try_wheel.py commands
	@build/wheel-venv/bin/python -m pip install -q --disable-pip-version-check -c requirements.txt "$$(ls dist/*.whl)[serve,plots]"
	cd build/wheel-venv && bin/python -W error::SyntaxWarning $(CURDIR)/.ci/try_wheel.py modules
	@rm -rf build/wheel-venv

# What would be published: both archives of the last commit, as an index takes them. Publishing is a person's work.
release-check: wheel-test  ## wheel-test, then build the source archive, check both descriptions, and try an installation from source
	@test -z "$$(git status --porcelain)" || { echo "A release is made of a commit. There are changes without one: git status." >&2; exit 1; }
	@rm -rf build/release build/release-venv dist && mkdir -p build/release
	@git archive HEAD | tar -x -C build/release
	@$(BIN)/python -m venv build/release-venv
	@build/release-venv/bin/python -m pip install -q --disable-pip-version-check build twine
	build/release-venv/bin/python -m build --outdir dist build/release > build/release.log || { cat build/release.log >&2; exit 1; }
	build/release-venv/bin/twine check --strict dist/*
	@echo "Installing the source archive with its requirements into build/release-venv."
	@build/release-venv/bin/python -m pip install -q --disable-pip-version-check -c requirements.txt dist/*.tar.gz
	cd build/release-venv && bin/python -W error::SyntaxWarning $(CURDIR)/.ci/try_wheel.py commands
	@rm -rf build/release-venv build/release
	@ls dist

docs: build/docs-venv/.locked  ## build the documents as a site in build/site; broken links are errors
	@NO_MKDOCS_2_WARNING=1 build/docs-venv/bin/mkdocs build --strict
	@echo "The site is in build/site; build/docs-venv/bin/mkdocs serve shows it, and each change."

build/docs-venv/.locked: requirements-docs.txt
	@$(call new_venv,build/docs-venv)
	@build/docs-venv/bin/python -m pip install -q --disable-pip-version-check -r requirements-docs.txt
	@touch $@

hooks:  ## let git run `make check` before each commit
	@printf '#!/bin/sh\nexec make --no-print-directory check\n' > "$$(git rev-parse --git-path hooks)/pre-commit"
	@chmod +x "$$(git rev-parse --git-path hooks)/pre-commit"
	@echo "git now runs make check before each commit; git commit --no-verify skips it."

install: $(VENV)/.project  ## make .venv with the exact tested versions of what running needs, and this project in it

install-tests: $(VENV)/.project $(VENV)/.tests-locked  ## add what tests and checks need; they do so by themselves

# A changed lock makes a new environment, so that nothing of the old one is left in it.
$(VENV)/.locked: requirements.txt
	@if [ -L $(VENV) ]; then echo "$(VENV) must be a folder of this checkout alone, since it is emptied before it is" \
	  "made anew. Received: a link to $$(readlink $(VENV)). Remove the link." >&2; exit 1; fi
	@$(call new_venv,$(VENV))
	@$(call pip_install,requirements.txt,Installing TensorFlow and what else running needs into .venv.)
	@touch $@

# .tests-begun stays: if these packages were installed from an older lock, or in part only, the environment is made anew.
$(VENV)/.tests-locked: $(VENV)/.locked requirements-dev.txt | $(VENV)/.project
	@if [ -e $(VENV)/.tests-begun ]; then rm -f $(VENV)/.locked && $(MAKE) --no-print-directory install; fi
	@touch $(VENV)/.tests-begun
	@$(call pip_install,requirements-dev.txt,Installing what tests and checks need in addition.)
	@touch $@

# An egg-info folder left here by another tool would be taken for the installed project's description.
$(VENV)/.project: $(VENV)/.locked setup.py pyproject.toml Makefile
	@rm -rf t2tlite.egg-info
	@$(PIP) install -q --no-deps --no-build-isolation -e . 2> $(VENV)/install.log || \
	  { cat $(VENV)/install.log >&2; exit 1; }
	@$(MAKE) --no-print-directory link-types
	@touch $@

# Type checkers do not run the code by which an editable install finds its packages. They look into a folder NAME-stubs
# first, whose own module must end in .pyi, and which Python never imports. After adding a file to t2tlite/ itself, run
# this again.
link-types: STUBS = $(shell $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/t2tlite-stubs
link-types:
	@$(call link_packages,"$(STUBS)")
	@ln -s "$(CURDIR)"/t2tlite/__init__.py "$(STUBS)/__init__.pyi"

clean:  ## delete what was built; runs/ and its models stay
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
	find t2tlite problems hparams bin tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
