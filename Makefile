PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
DISTS  := schemas accelerators runtime services/profiler services/matcher services/launcher services/telemetry services/gateway client
STAMP  := $(VENV)/.installed

.PHONY: install demo up test check bench clean
install: $(STAMP)

$(STAMP): pyproject.toml $(DISTS:%=%/pyproject.toml)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet $(DISTS:%=--editable ./%) --group dev
	touch $@
