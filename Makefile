# Two commands matter: `make demo` runs the whole loop, `make test` the whole suite.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= 2
export PIP_DISABLE_PIP_VERSION_CHECK = 1
export PIP_CONSTRAINT = $(CURDIR)/constraints.txt

.PHONY: demo test test-slurm lint wheel pilots replicate bench calibration docs clean

demo: $(VENV)/.demo
	@$(BIN)/platocast demo --jobs $(JOBS) --installed-in "$$(cat $(VENV)/.demo)"

test: $(VENV)/.test lint
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup -m "not slurm"

# Only the tests that need a real SLURM (Debian: slurmctld slurmd slurm-client slurmdbd and MariaDB's server).
test-slurm: $(VENV)/.test
	$(BIN)/python -m pytest tests/slurm

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The shipped ledgers, from nothing: about forty minutes on two cores; what is finished is never repeated.
pilots: $(VENV)/.demo
	@for study in glyphs-quick glyphs-pilot; do \
	  $(BIN)/platocast launch data/studies/$$study.toml --folder runs/$$study --jobs $(JOBS) && \
	  $(BIN)/platocast collect runs/$$study --ledger data/runs/$$study.jsonl || exit 1; done

# The replication, from nothing: hours, resumable (SMOKE=1: the same steps on tiny studies, about a minute).
replicate: $(VENV)/.demo
	PLATOCAST=$(BIN)/platocast JOBS=$(JOBS) bash benchmarks/replicate.sh

# Speed against peers, into benchmarks/results.json: some ten minutes; `make bench ONLY=m4_curve` renews one entry.
bench: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/bench.py $(ONLY)

# Coverage of every interval method and of the peer's: an hour, resumable; UNTIL=16:00 stops it there.
calibration: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/calibration.py $(if $(UNTIL),--until $(UNTIL))
	$(BIN)/python benchmarks/coverage_table.py

# The site, into build/site; a broken link or an unexecutable tutorial fails it.
docs: $(VENV)/.docs
	$(BIN)/python -m mkdocs build --strict --quiet

$(VENV)/.docs: $(VENV)/.test
	@$(BIN)/python -m pip install --quiet -e '.[train,world,test,docs]'
	@touch $@

wheel: $(VENV)/.test
	$(BIN)/python -m build --outdir dist

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# What `platocast demo` needs; the file keeps how many seconds it took.
$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing into $(VENV) ..."
	@start=$$(date +%s); $(BIN)/python -m pip install --quiet -e '.[train]' && \
	  echo $$(( $$(date +%s) - start )) > $@ && echo "installed in $$(cat $@) s"

$(VENV)/.test: $(VENV)/.demo
	@$(BIN)/python -m pip install --quiet -e '.[train,world,test]'
	@touch $@

clean:
	rm -rf build dist *.egg-info reports/demo
