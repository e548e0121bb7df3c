# make prove   a first proof: environment, the shipped example proved and verified, phase times
# make test    the test suite        make lint    ruff and mypy
# make bench   measured against other provers on this machine
# make update-kernel-table   registers and spills of every CUDA kernel, as the tests are to hold them from now on
PYTHON  ?= python3
BIN     := .venv/bin
PIP     := $(BIN)/pip install --quiet --disable-pip-version-check
EXAMPLE := examples/mimc_chain
SNARKJS := 0.7.6

.PHONY: prove test lint bench update-kernel-table clean

prove: .venv/.installed
	$(BIN)/cuzk prove $(EXAMPLE)/chain.zkey $(EXAMPLE)/chain.wtns -o out
	$(BIN)/cuzk verify $(EXAMPLE)/verification_key.json out/public.json out/proof.json

test: .venv/.installed-test .node/.tried
	$(BIN)/python -m pytest

lint: .venv/.installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/.installed-bench .node/.tried
	$(BIN)/python benchmarks/cpu.py

update-kernel-table: .venv/.installed-test
	$(BIN)/python -m cuzk.gpu.figures --output tests/kernel_table.json

clean:
	rm -rf .venv .node out build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find cuzk tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# Each stamp is one set of packages; all are made again when the project file changes.
.venv/.made:
	$(PYTHON) -m venv .venv
	@touch $@

.venv/.installed: pyproject.toml .venv/.made
	$(PIP) --editable .
	@touch $@

.venv/.installed-%: pyproject.toml .venv/.made
	$(PIP) --editable ".[$*]"
	@touch $@ .venv/.installed

# snarkjs judges our proofs in the tests. Without npm or a network those tests are skipped, so a failure here is no error.
.node/.tried:
	@mkdir -p .node
	@if command -v npm >/dev/null; then \
	  npm install --silent --no-audit --no-fund --prefix .node snarkjs@$(SNARKJS) \
	    || echo "snarkjs could not be installed: the tests that need it are skipped"; \
	else echo "no npm: the tests that need snarkjs are skipped"; fi
	@touch $@
