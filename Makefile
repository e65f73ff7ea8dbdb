# One command each. They need python3 (3.11 or later) and make; everything else goes into .venv.
PYTHON ?= python3
BIN := .venv/bin
DEMO := build/demo
PIP := -m pip install --quiet --disable-pip-version-check --no-compile --only-binary=:all: --require-hashes
# On all processors, in long stretches: most of what a file sets up for its tests is then set up once, and no
# processor waits at the end for another's long file. What Python compiles of the tests is kept, whatever the
# environment says: else each process would compile it anew.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/pytest --numprocesses auto --dist worksteal
# Tests that run only by a target of their name. The tiers of the others are in tests/README.md.
ON_DEMAND := endurance or simulate or frameworks or cluster
FAST := not ($(ON_DEMAND)) and (end_to_end or not (slow or browser or container))
SLOW := not ($(ON_DEMAND)) and not end_to_end and (slow or browser or container)
# The files with fast tests, and those with others: no others are imported.
MARKED = grep --recursive --files-with-matches --extended-regexp --include='test_*.py'
SLOW_FILES = $(shell $(MARKED) 'mark\.(slow|browser|container)\b' tests)
ALL_SLOW = $(shell grep --files-without-match end_to_end $$($(MARKED) '^pytestmark = .*mark\.(slow|browser|container)\b' tests))
# First, so that no process is left alone with one of them at the end.
LONGEST = $(addprefix tests/,test_budget.py test_injected_faults.py test_docs.py test_bench.py)
LONGEST_FAST = $(addprefix tests/,test_faults.py test_bundled_suites.py extensions/mcp_server/test_mcp_server.py test_threads.py)
FAST_FILES = $(filter-out $(ALL_SLOW) $(LONGEST_FAST),$(sort $(shell find tests -name 'test_*.py')))
PROCESSORS = $$(getconf _NPROCESSORS_ONLN)
UV := uv==0.13.9
TOO_OLD = ci-evals needs Python 3.11 or later as $(PYTHON). To name another: make PYTHON=python3.13 $(MAKECMDGOALS)
CHECK_PYTHON = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo '$(TOO_OLD)' >&2; exit 1; }
LOCK = $(BIN)/uv pip compile $(UPGRADE) --quiet --no-config --generate-hashes --no-emit-index-url --no-emit-find-links \
	--custom-compile-command 'make lock'

.PHONY: help demo test test-all lint unit docs reference lookalikes pictures bench endurance simulate frameworks cluster image lock upgrade clean
.DEFAULT_GOAL := help

help:
	@echo 'make demo    run two bundled suites against the embedded agent: no key, no network'
	@echo 'make test    every check, then the fast tests; some minutes'
	@echo 'make test-all  the same, then all other tests'
	@echo 'make lint    the checks alone'
	@echo 'make unit    the fast tests alone'
	@echo 'make docs    build the documentation site in build/site'
	@echo 'make reference  write the generated pages of docs/reference'
	@echo 'make lookalikes FROM=FILE  write the table of look-alikes from Unicode'"'"'s confusables.txt'
	@echo 'make pictures  draw the pictures of README again; needs Chromium'
	@echo 'make bench   measure speed and memory for bench/README.md; half an hour, on an idle machine'
	@echo 'make simulate  the tables of docs/statistics.md and docs/rounds.md again, in full; takes many minutes'
	@echo 'make endurance  thousands of trials through faults and kills, and all of the bench in small; takes some minutes'
	@echo 'make frameworks  test agents of real frameworks, in environments of their own; takes some minutes'
	@echo 'make cluster  test real Ray clusters, in an environment of its own; takes some minutes'
	@echo 'make image   build the container image ci-evals'
	@echo 'make lock    lock what pyproject.toml asks for, keeping versions where it can'
	@echo 'make upgrade lock the newest versions that pyproject.toml allows'
	@echo 'make clean   remove .venv, results and caches'

demo: $(DEMO)/installed
	$(DEMO)/bin/python -m ci_evals run demo:hr demo:retail --provider=offline
	@echo 'Open results/report.html first; results/junit.xml and results/_results.json are for programs.'

# Most checks keep one processor busy, so the tests have the others meanwhile.
test: .venv/installed
	$(MAKE) --jobs 2 lint unit

# Two at a time on each processor: these tests wait for processes more than they compute.
test-all: test
	$(PYTEST) --numprocesses $(shell expr 2 '*' $(PROCESSORS)) -m '$(SLOW)' $(LONGEST) $(filter-out $(LONGEST),$(SLOW_FILES))

# One more than there are processors, since some tests wait.
unit: .venv/installed
	$(PYTEST) --numprocesses $(shell expr 1 + $(PROCESSORS)) -m '$(FAST)' $(LONGEST_FAST) $(FAST_FILES)

bench: .venv/installed
	$(BIN)/python -m bench

simulate: .venv/installed
	$(PYTEST) -m simulate --durations 0
	$(PYTEST) -m 'hypothesis and not ($(ON_DEMAND))' --hypothesis-profile all

endurance: .venv/installed
	$(BIN)/pytest -m endurance --durations 0

frameworks: .venv/installed
	$(BIN)/pytest -m frameworks tests/frameworks

cluster: .venv/installed
	$(BIN)/pytest -m 'cluster and not endurance' --durations 0 tests/extensions/ray_cluster

docs: .venv/installed
	$(BIN)/zensical build --strict --clean
	$(BIN)/python -m docsite llms

reference: .venv/installed
	$(BIN)/python -m docsite

lookalikes: .venv/installed
	$(BIN)/python -m docsite.look_alikes $(FROM)

pictures: .venv/installed
	$(BIN)/python -m docsite pictures

lint: .venv/installed
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/zizmor --offline --quiet --config .github/zizmor.yml . examples/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-actions action.yml run/action.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml examples/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.azure-pipelines --regex-variant python examples/other-ci/azure-pipelines.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.circle-ci examples/other-ci/circleci.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.buildkite --regex-variant python examples/other-ci/buildkite.yml
	$(BIN)/hadolint Dockerfile
	$(BIN)/actionlint .github/workflows/*.yml examples/*.yml
	$(BIN)/codespell
	$(BIN)/zensical build --strict --clean

image:
	docker build --network host --tag ci-evals .

lock: .venv/installed
	$(BIN)/pip install --quiet '$(UV)'
	$(LOCK) pyproject.toml --group dev --universal --python-version 3.11 --output-file requirements/dev.txt
	$(LOCK) pyproject.toml --extra zstd --constraint requirements/dev.txt --universal --python-version 3.11 \
		--output-file requirements/run.txt
	$(LOCK) pyproject.toml --extra ray --constraint requirements/dev.txt --universal --python-version 3.11 \
		--output-file requirements/cluster.txt
	$(LOCK) --group build --constraint requirements/dev.txt --universal --python-version 3.11 \
		--output-file requirements/build.txt
	$(LOCK) --group pip --universal --python-version 3.11 --output-file requirements/pip.txt

upgrade:
	$(MAKE) lock UPGRADE=--upgrade

clean:
	rm -rf .venv results build dist .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

# An environment without this mark was left half done, so it is made anew. The pip that comes with some Pythons takes
# twice as long for the lock as the newest one, so that is installed first.
.venv/installed: requirements/pip.txt requirements/dev.txt pyproject.toml
	@$(CHECK_PYTHON)
	@[ -e $@ ] || $(PYTHON) -m venv --clear .venv
	$(BIN)/python $(PIP) -r requirements/pip.txt
	$(BIN)/python $(PIP) -r requirements/dev.txt
	$(BIN)/python -m compileall -q -j 0 .venv/lib  # on all processors, where pip uses one
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# What a run needs, and what installs the package: its extensions are found by the lines of the installation.
$(DEMO)/installed: requirements/pip.txt requirements/run.txt requirements/build.txt pyproject.toml
	@$(CHECK_PYTHON)
	@[ -e $@ ] || $(PYTHON) -m venv --clear $(DEMO)
	$(DEMO)/bin/python $(PIP) -r requirements/pip.txt
	$(DEMO)/bin/python $(PIP) -r requirements/run.txt -r requirements/build.txt
	$(DEMO)/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
