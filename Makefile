PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
DISTS  := schemas accelerators runtime services/profiler services/matcher services/launcher services/telemetry services/gateway client
STAMP  := $(VENV)/.installed
CODE   := $(DISTS) tests benchmarks examples docs deploy

.PHONY: install demo up test check format bench bench-placement train-policy bench-reader fuzz-reader bench-memory coverage-api schemas clean help
help:
	@echo "make install | demo | up | test | test-<service> | check | format | bench | bench-placement | train-policy | bench-reader | fuzz-reader | bench-memory | coverage-api | schemas | clean"

install: $(STAMP)

$(STAMP): pyproject.toml $(DISTS:%=%/pyproject.toml)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Oarlock needs Python 3.11 or newer; this is " + sys.version.split()[0])'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet $(DISTS:%=--editable ./%) --group dev
	@touch $@

demo: install
	$(BIN)/python examples/demo.py

up: install
	$(BIN)/oarlock up

test: install
	$(BIN)/python -m pytest

test-%: install
	$(BIN)/python -m pytest tests/$*

check: install
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy $(DISTS) tests docs deploy
	$(BIN)/lint-imports
	$(BIN)/python -m oarlock_schemas.export schemas/json --check
	$(BIN)/python docs/events.py --check
	$(BIN)/python deploy/grafana/dashboard.py --check

format: install
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

schemas: install
	$(BIN)/python -m oarlock_schemas.export schemas/json
	$(BIN)/python docs/events.py

# Each prints a table and says where its data is missing. The full runs of the reader and of memory take an hour or so.
bench: install
	$(BIN)/python -m benchmarks.bus_rate.run
	$(BIN)/python -m benchmarks.decision_rate.run
	$(BIN)/python -m benchmarks.latency.run

bench-placement: install
	$(BIN)/python -m benchmarks.placement.run --out .cache/placement.jsonl --check

# Minutes on two cores; the weights in the matcher's package are what this wrote.
train-policy: install
	$(BIN)/python -m benchmarks.placement.train

bench-reader: install
	$(BIN)/python -m benchmarks.reader.run

# 50,000 mutations of scripts and of hostile code, most of an hour on two cores; ARGS='--seed N' repeats one.
fuzz-reader: install
	$(BIN)/python -m benchmarks.reader.fuzz $(ARGS)

bench-memory: install
	$(BIN)/python -m benchmarks.prediction_error --worst 20 --json $(VENV)/predictions.json
	$(BIN)/python -m benchmarks.prediction_error.learning $(VENV)/predictions.json
	$(BIN)/python -m benchmarks.prediction_error.cpu_peaks

coverage-api: install
	$(BIN)/python -m benchmarks.reader.coverage_api

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
