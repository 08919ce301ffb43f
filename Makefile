# Fogline's commands. `make help` lists them; settings are environment variables (see docs/reference/settings.md).
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

PY := .venv/bin/python
export PYTHON
export PYTHONPATH := $(CURDIR)
# Container images like to set it. Each process would then compile all that it imports: a quarter of its start.
unexport PYTHONDONTWRITEBYTECODE
# glibc gives each thread a memory area of its own, and a node has many threads.
export MALLOC_ARENA_MAX ?= 2

.PHONY: help up node install install-tests test test-browser-code check check-full static-check format api-types reference pictures bench flames soak mutants clean

help: ## list the commands
	@awk -F':.*## ' '/^[a-z%-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: ## install what is missing, start nothing
	@.ci/install python java jars classes bundle

up: install ## start everything on this machine; Ctrl-C stops it
	@exec $(PY) -m workers.supervisor

node: ## run a node on this machine: FOGLINE_TOKEN=T make node ARGS="--join URL --name N"
	@.ci/install node java
	@exec $(PY) -m workers.node $(ARGS)

test: install-tests ## run the tests of the build server; ARGS="tests/unit -k name" runs some
	@$(if $(ARGS),$(PY) -m pytest $(ARGS),$(PY) -m tests.lanes)

check: install-tests ## what the build server runs: formatting, lint, types, layers, tests
	@$(PY) -m tests.lanes --static

check-full: install-tests ## the same with each case of each test, then 200 handovers with faults
	@$(PY) -m tests.lanes --static --full
	@HANDOVERS=200 $(PY) -m tests.handover.soak

install-tests:
	@.ci/install python java jars classes node_modules bundle chromium mosquitto postgresql

test-browser-code: ## the tests of the browser code alone
	@.ci/install python node_modules
	@.ci/npm run --silent test

static-check: ## formatting, lint, words, types and layers, without the tests
	@.ci/install python node_modules
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m tests.words
	$(PY) -m mypy
	$(PY) -c 'import sys; from importlinter.cli import lint_imports_command; sys.argv[1:] = ["--no-cache"]; lint_imports_command()'
	@.ci/npm run --silent check

format: ## format the code and fix what ruff can
	@.ci/install python node_modules
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .
	@.ci/npm run --silent format

api-types: ## write the browser's types of the REST API and the live messages: static/shared/api.gen.ts
	@.ci/install python
	@mkdir -p build
	@$(PY) manage.py api_types > build/api.gen.ts
	@mv build/api.gen.ts static/shared/api.gen.ts

reference: ## write what is made from the code: docs/reference, docs/errors, drawings of phases
	@.ci/install python
	@$(PY) -m pipeline_runtime.settings_page
	@$(PY) -m pipeline_runtime.operators.reference
	@$(PY) -m pipeline_runtime.error_pages
	@$(PY) -m workers.control.phase_diagrams

pictures: ## take the pictures of docs/images from the real dashboard; PARTS="tutorial" takes some
	@.ci/install python java jars classes bundle chromium
	@$(PY) -m tests.pictures $(PARTS)

bench: ## every benchmark; QUICK=1 is short
	@.ci/install python java jars classes bundle chromium
	@set -e; for file in tests/benchmarks/bench_*.py; do $(PY) "$$file"; done

bench-%: ## one benchmark, e.g. make bench-throughput; PARTS=proof make bench-placement: sites come and go, against an oracle
	@.ci/install python java jars classes $(if $(filter editor placement,$*),bundle) $(if $(filter editor,$*),chromium)
	@test -f tests/benchmarks/bench_$(subst -,_,$*).py || { echo "There is no benchmark $*: $$(ls tests/benchmarks | sed -n 's/^bench_\(.*\)\.py/\1/p' | tr '_\n' '- ')" >&2; exit 1; }
	@$(PY) tests/benchmarks/bench_$(subst -,_,$*).py

flames: ## flame graphs of a task and of its agent at full load, into docs/images; WORK=keyed is another work
	@.ci/install python java jars classes
	@$(PY) -m tests.benchmarks.flames

soak: ## 1,000 handovers, each fault at each step, then at random; SEED=n repeats a schedule, HANDOVERS=n shortens it
	@.ci/install python java jars classes
	@$(PY) -m tests.handover.soak

mutants: ## the code with one mistake at a time: does a test find each?
	@.ci/install python
	@$(PY) -m tests.mutants

clean: ## remove what was built or installed here; data (.fogline) stays
	rm -rf .venv build static/node_modules static/dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
