# Every target does its own set-up: a virtual environment in .venv, its packages, compiling. Needs Rust, Python 3.10+ and
# make. A second run only does what changed.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
# One feature set, one profile and one environment for cargo and maturin, so that dependencies compile once.
CI := --profile ci --locked
MATURIN := $(BIN)/maturin develop --locked
# What maturin tells pyo3's build scripts; without it clippy and maturin would recompile pyo3 for each other. maturin names the
# file after the version of Python; make test-lowest leaves one of another version beside it.
TARGET := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)
AS_MATURIN := env PYO3_BUILD_EXTENSION_MODULE=1 PYO3_CONFIG_FILE=$$(ls $(TARGET)/maturin/pyo3-config-*-$$($(BIN)/python -c \
	'import sys; print("%d.%d" % sys.version_info[:2])')*.txt)
# What cargo puts into a package beside the files of the project.
ADDED_BY_CARGO := .cargo_vcs_info.json Cargo.toml.orig
# A virtual environment with the lowest version of each package that pyproject.toml allows.
LOWEST := $(TARGET)/lowest
LOWEST_BIN := $(LOWEST)/$(notdir $(BIN))
# Not run: files whose data pyarrow 16 cannot make, which are decimal32, decimal64, uuid and json columns, half floats of other
# values than numpy's, views by a cast and run-end encoded columns of two arrays; then tests of other files with such data.
LOWEST_WITHOUT := decimals_of_any_scale or data_type4-held4 or data_type2-0.5 or (keys_in_chunks and runs) or lookup_in_views \
	or views_of_text_into_csv or (star and form_of)
# pyarrow 16 reads INT96 times that 64 bits of nanoseconds do not reach wrongly.
LOWEST_WITHOUT += or old_parquet_times_far_away
# The csv module of Python 3.10, with which these tests read what was written, refuses the character NUL.
LOWEST_WITHOUT += or x00b
# Hypothesis 6.100 parses the source of each lambda of a strategy anew at each draw: minutes for this test.
LOWEST_WITHOUT += or (condition_joins and every_join_type)
LOWEST_TESTS := -k 'not ($(LOWEST_WITHOUT))' $(patsubst %,--ignore=tests/python/test_%.py,cli_outputs condition_types \
	interchange layouts public_reports types)
unexport PYTHONDONTWRITEBYTECODE PYTHONPATH CONDA_PREFIX
export VIRTUAL_ENV := $(CURDIR)/$(VENV)

.PHONY: help
help: ## Show this list
	@echo "make demo and make test need nothing done before; both set themselves up."
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(VENV)/.demo ## Join a year of real flights to four prepared tables and print what it cost
	$(MATURIN) --release --quiet --skip-install
	$(BIN)/python -m prejoin.demo

.PHONY: test
test: test-rust test-python ## Run all tests: Rust unit, integration and doc tests, then Python

.PHONY: test-rust
test-rust: ## Run the Rust tests alone
	cargo test $(CI)

.PHONY: test-python
test-python: develop ## Run the Python tests alone
	$(BIN)/python -m pytest

.PHONY: test-heavy
test-heavy: develop ## Run the tests that need several GiB of memory, which make test leaves out
	PREJOIN_HEAVY=1 $(BIN)/python -m pytest tests/python/test_public_reports.py tests/python/test_public_scenarios.py

.PHONY: develop
develop: $(VENV)/.dev ## Build the extension module as the tests use it, into .venv
	$(MATURIN) --profile ci --quiet --skip-install

.PHONY: test-lowest
test-lowest: $(LOWEST)/.done ## Run those Python tests that can run with the lowest versions that pyproject.toml allows; use PYTHON=python3.10
	VIRTUAL_ENV=$(LOWEST) $(LOWEST_BIN)/maturin develop --locked --profile ci --quiet --skip-install
	$(LOWEST_BIN)/python -m pytest $(LOWEST_TESTS)

.PHONY: check
check: develop check-docs check-package ## Check folders, format, lints, types, documentation and the packaged crate; warnings are errors
	$(BIN)/python tests/check_layers.py
	cargo fmt --check
	cargo clippy $(CI) --all-targets -- -D warnings
	$(AS_MATURIN) cargo clippy $(CI) --all-targets --features python -- -D warnings
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/python -m mypy --strict --config-file= tests/typing examples
	$(BIN)/pyright --project tests/typing --pythonpath $(BIN)/python
	$(BIN)/python -m mypy.stubtest prejoin --mypy-config-file pyproject.toml --allowlist tests/typing/stubtest.txt --ignore-unused-allowlist

.PHONY: check-docs
check-docs: ## Build the Rust documentation; warnings are errors
	RUSTDOCFLAGS='-D warnings' cargo doc $(CI) --no-deps

.PHONY: check-package
check-package: ## Compile the crate as it would be published, its tests and benchmarks too
	cargo package --locked --no-verify --allow-dirty --quiet
	@untracked=$$(comm -23 <(cargo package --locked --allow-dirty --list | sort) <((git ls-files; printf '%s\n' $(ADDED_BY_CARGO)) | sort)); \
	if [ -n "$$untracked" ]; then echo "the package holds files that git does not track: $$untracked" >&2; exit 1; fi
	rm -rf $(TARGET)/package/unpacked && mkdir $(TARGET)/package/unpacked
	tar -xzf $$(ls -t $(TARGET)/package/*.crate | head -n 1) -C $(TARGET)/package/unpacked --strip-components 1
	CARGO_TARGET_DIR=$(TARGET) cargo check $(CI) --all-targets --manifest-path $(TARGET)/package/unpacked/Cargo.toml

.PHONY: fix
fix: $(VENV)/.dev ## Format the sources and apply the lints' own fixes
	cargo fmt
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

.PHONY: bench
bench: ## Run the Rust benchmarks (minutes)
	cargo bench --locked

.PHONY: bench-counts
bench-counts: ## Count instructions (valgrind) and compare with those on record; RECORD=1 records them
	$(PYTHON) benches/counts.py $(if $(RECORD),--record)

.PHONY: bench-peers
bench-peers: $(VENV)/.peers ## Measure prejoin beside other engines, say which bars it reaches, and write docs/performance.md (20 minutes)
	$(MATURIN) --release --quiet --skip-install
	$(BIN)/python benches/peers.py --out $(TARGET)/peers.jsonl
	$(BIN)/python benches/report.py $(TARGET)/peers.jsonl
	$(BIN)/python benches/skew.py

.PHONY: clean
clean: ## Remove everything that was built, the virtual environment too
	rm -rf target $(VENV) demo-out dist .pytest_cache .mypy_cache .ruff_cache
	rm -f python/prejoin/_core*.so python/prejoin/_core*.pyd

# The stamps: one per set of packages, remade when pyproject.toml changes.
$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "prejoin needs Python 3.10 or later; pass PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'maturin>=1.14,<2'

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(MATURIN) --release --extras demo
	touch $@

$(VENV)/.peers: pyproject.toml | $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --disable-pip-version-check numpy pandas polars duckdb datafusion chdb matplotlib
	touch $@

# `>=` becomes `==` in the requirements of the package and of the extra `test`; pip chooses the rest.
$(LOWEST)/.done: pyproject.toml
	rm -rf $(LOWEST)
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST_BIN)/python -m pip install --quiet --disable-pip-version-check 'maturin>=1.14,<2' \
		$$(sed -nE '/^(dependencies|test) = /p' pyproject.toml | grep -oE '"[^"]+"' | tr -d '"' | sed 's/>=/==/')
	VIRTUAL_ENV=$(LOWEST) $(LOWEST_BIN)/maturin develop --locked --profile ci --quiet
	touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(MATURIN) --profile ci --extras demo,test,dev
	touch $@
