# Whitewater: `make` lists what there is to do.
# Needs Python 3.11 or newer and, for the first install, a package index; everything after that works offline.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

DEVICE ?=
CORES ?= all
# Of `make run`: one application, a file of configuration, and the name of the run.
APP ?=
CONFIG ?=
NAME ?=
# The interpreter that the environments are made from: the first on the PATH that is new enough, or PYTHON=/path/to/python.
PYTHON := $(or $(PYTHON),$(shell for python in python3 python3.13 python3.12 python3.11 python3.14 python; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && command -v "$$python" && break; done))

# RAPIDS (5.8 GB) is installed only where a driver answers. Elsewhere Whitewater itself says why `device=gpu` cannot run.
HAS_GPU := $(if $(filter gpu auto,$(DEVICE))$(filter gpu-proof,$(MAKECMDGOALS)),$(shell nvidia-smi --list-gpus 2>/dev/null | head -1))
ENVIRONMENT := $(if $(HAS_GPU),.venv-rapids/.gpu,.venv/.cpu)

# A command of an environment: its programs first on the PATH.
in = PATH="$(CURDIR)/$(1)/bin:$$PATH"
HERE := $(call in,$(patsubst %/,%,$(dir $(ENVIRONMENT))))
SNAKEMAKE := $(HERE) snakemake --cores "$(CORES)" $(if $(CONFIG),--configfile "$(CONFIG)") \
	$(if $(DEVICE)$(NAME),--config $(if $(DEVICE),"device=$(DEVICE)") $(if $(NAME),'run={"name": "$(NAME)"}'))
DEV := $(call in,.venv)
# Where the library is not of this checkout, the environment has it.
CLEANS := $(if $(wildcard vendor),.venv/bin/python,$(PYTHON))
SNAKEFILES := Snakefile workflows $(wildcard tests/workflows/fifth_application)
PYTEST := python -m pytest --numprocesses auto --dist worksteal

# Certificates of the machine, which a company's proxy may have added to, rather than those that uv brings.
export UV_SYSTEM_CERTS ?= 1

.PHONY: help run test test-slow test-newer test-image test-conda lint clean clean-downloads distclean

help: ## List the targets
	@grep --no-filename --extended-regexp '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | while IFS=$$'\t' read -r target text; do \
		printf '  make %-22s %s\n' "$$target" "$$text"; done

run: $(ENVIRONMENT) ## Run all applications on small generated data, or yours: make run [APP=taxi CONFIG=mine.yaml NAME=mine] [DEVICE=cpu|gpu|auto] [CORES=all]
	@$(SNAKEMAKE) -- $(APP)
	@name=$(or $(NAME),$$($(HERE) whitewater config --run-name $(if $(CONFIG),--configfile "$(CONFIG)"))); \
	folder=results$${name:+/$$name}$(if $(APP),/$(APP)); report=$$folder/report.html; \
	if [ ! -e $$report ] || [ -n "$$(find $$folder -name manifest.json -newer $$report)" ]; then \
		$(SNAKEMAKE) --report $$report -- $(APP); fi; \
	$(HERE) whitewater results $$name

test: lint ## Lint, then the tests, but for the slow ones
	$(DEV) $(PYTEST) -m "not slow"

test-slow: .venv/.dev .venv/.slurm $(if $(wildcard envs/docs.lock),.venv/.docs) ## The slow tests: notebooks, kills, clusters, one fault after another; CI runs them too
	$(DEV) $(PYTEST) -m slow

# The locks hold two sets of packages: zarr, SciPy, XGBoost and others dropped Python 3.11.
test-newer: ## The tests with the newer packages that Python 3.12 and later get, where one is installed
	@for python in python3.13 python3.12; do if "$$python" -c 'import ensurepip' 2>/dev/null; then \
		$(MAKE) --no-print-directory PYTHON="$$python" .venv-newer/.dev; \
		$(call in,.venv-newer) $(PYTEST) -m "not slow"; exit; fi; done; \
	echo "Not tested with newer packages: neither python3.13 nor python3.12 is on the PATH."

test-image: ## Build the image for CPUs and run taxi in it (needs Docker)
	docker build --target cpu --tag whitewater:cpu .
	mkdir --parents results/image
	docker run --rm --user "$$(id -u):$$(id -g)" --volume "$(CURDIR)/results/image:/work" whitewater:cpu taxi

# GitHub's machines name conda's folder by CONDA. An environment for GPUs is solved as if their driver were there.
test-conda: .venv/.dev ## Solve the conda environments and run taxi in its own (needs conda)
	export PATH="$$PATH$${CONDA:+:$$CONDA/bin}"; for file in envs/*.yaml; do \
		CONDA_OVERRIDE_CUDA=13.0 conda env create --dry-run --name solved --file "$$file"; done; \
	$(DEV) snakemake --cores "$(CORES)" --sdm conda -- taxi

lint: .venv/.dev ## Check style, types and workflows
	$(DEV) ruff check
	$(DEV) ruff format --check
	$(DEV) mypy
	$(DEV) snakefmt --check $(SNAKEFILES)
	$(DEV) snakemake --lint

clean: ## Remove what runs wrote, and caches; your own files, downloads and the environments stay
	@PYTHONPATH=src "$(CLEANS)" -B -m whitewater.cli.clean

clean-downloads: ## As clean, and remove the downloads, too
	@PYTHONPATH=src "$(CLEANS)" -B -m whitewater.cli.clean --downloads

distclean: ## As clean-downloads, and remove the environments, too; asks before
	@read -r -p "Remove results, downloads and the environments $$(echo .venv*)? [y/N] " answer && [ "$$answer" = y ]
	@$(MAKE) --no-print-directory clean-downloads
	@rm -rf .venv*

# One stamp an environment's lock: a newer lock installs what it changed. The other locks hold all of the cpu lock. The checkout
# itself is installed as editable, by its pyproject.toml; in a project, the library by its wheel in vendor/.
LIBRARY := $(wildcard envs/library.lock)
.PRECIOUS: %/.uv
%/.uv: envs/bootstrap.lock
	@[ -n "$(PYTHON)" ] || { echo >&2 "Whitewater needs Python 3.11 or newer, and none is on the PATH. Install one, or name it: make PYTHON=/path/to/python3.12"; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11) and f"Whitewater needs Python 3.11 or newer; $(PYTHON) is {sys.version.split()[0]}. Name another: make PYTHON=/path/to/python3.12")'
	@echo "Setting up $* with $(PYTHON) ..."
	@"$(PYTHON)" -m venv $*
	@$*/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $<
	@touch $@

define install
@echo "Installing $< into $* ..."
@$*/bin/uv pip install --quiet --compile-bytecode --python $*/bin/python --excludes envs/excluded.in --require-hashes --requirement $<
$(if $(LIBRARY),@$*/bin/uv pip install --quiet --compile-bytecode --python $*/bin/python --offline --no-deps --reinstall --find-links vendor \
	--require-hashes --requirement $(LIBRARY))
@$*/bin/uv pip install --quiet --python $*/bin/python --offline --no-deps --no-build-isolation --editable .
@touch $@
endef

# XGBoost without a GPU, of the locks for development and documents, has the same files as that with one.
define put_back
@[ ! -e $*/.gpu ] || $*/bin/uv pip install --quiet --python $*/bin/python --require-hashes \
	--reinstall-package xgboost --requirement envs/gpu.lock
endef

%/.cpu: envs/cpu.lock pyproject.toml $(LIBRARY) %/.uv
	$(install)
%/.dev: envs/dev.lock pyproject.toml $(LIBRARY) %/.uv
	$(install)
	$(put_back)
# Apart from the others, because Snakemake imports each plugin whenever it starts, and this one imports pandas.
%/.slurm: envs/slurm.lock %/.uv
	@$*/bin/uv pip install --quiet --python $*/bin/python --require-hashes --no-deps --target $*/slurm --requirement $<
	@touch $@
%/.gpu: envs/gpu.lock pyproject.toml $(LIBRARY) %/.uv
	$(install)

# What this repository alone has: its benchmarks, its documents, and how its locks are made.
-include repository.mk
