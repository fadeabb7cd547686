# Targets of this repository alone; a project made from it has the Makefile without them.

UPGRADE ?=
# Of `make docs`: where the site goes.
SITE ?= site
# Of `make gpu-proof`: names of pieces, or patterns such as 'published-*'; empty: all.
PIECE ?=

.PHONY: docs notebooks bench bench-guard gpu-proof lock test-contract-rapids

docs: .venv/.dev .venv/.docs ## Build the documentation site into site/, and check what documents name: links, commands, settings
	$(DEV) python -m pytest tests/workflows/test_documents.py
	@$(DEV) NO_MKDOCS_2_WARNING=1 mkdocs build --site-dir "$(SITE)"
	@echo "The site: $(SITE)/index.html; with its search: python -m http.server --bind 127.0.0.1 --directory $(SITE)"

notebooks: $(ENVIRONMENT) $(dir $(ENVIRONMENT)).docs ## Open the tutorials in JupyterLab: make notebooks [DEVICE=gpu]
	@# As root, for example in a container, Jupyter asks for a word of consent.
	$(HERE) jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) notebooks

bench: $(ENVIRONMENT) $(if $(HAS_GPU),,.venv/.bench) ## Run the published tables again, beside their peers, about 8 minutes: make bench [DEVICE=gpu]
	@$(SNAKEMAKE) --forceall benchmarks
	@cat results/benchmarks/$(if $(HAS_GPU),gpu,cpu)/table.md

bench-guard: .venv/.bench ## Measure what has become slower since the first edition, about 12 minutes
	@$(DEV) python -m benchmarks.guard

gpu-proof: $(ENVIRONMENT) $(if $(HAS_GPU),.venv-rapids/.dev) ## Show what runs on a GPU, piece by piece, each up to 8 minutes: make gpu-proof [PIECE=taxi_tips]
	@$(HERE) python -m benchmarks.gpu_proof $(PIECE)

lock: .venv/.uv ## Write the lock and conda files in envs/: make lock [UPGRADE=1]
	$(DEV) python envs/lock.py $(if $(UPGRADE),--upgrade)

test-contract-rapids: .venv-rapids/.gpu .venv-rapids/.dev ## Check the GPU code against RAPIDS itself (5.8 GB; needs no GPU)
	$(call in,.venv-rapids) python -m pytest tests/contract -m "rapids or not rapids"

%/.docs: envs/docs.lock pyproject.toml %/.uv
	$(install)
	$(put_back)
%/.bench: envs/bench.lock pyproject.toml %/.uv
	$(install)
