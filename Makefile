# Two commands for a fresh machine: `make demo` and `make test`. Each sets up .venv by itself.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: setup demo serve test test-fast suite test-slowest test-cpus test-oldest test-newest lint bench docs lock dist clean

setup: $(STAMP)

# constraints.txt pins torch to a CPU build; without it pip would pull gigabytes of CUDA.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt "torch==2.13.0"
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $(STAMP)

demo: setup
	$(BIN)/edrbo demo

# The lab page with a study of invented data, on http://127.0.0.1:8017
serve: setup
	$(BIN)/edrbo serve --demo

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Tests start hundreds of processes; each would compile the package again where Python may not keep what it compiled.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --dist worksteal -q

# Side by side: the tests often wait for a process or a browser, and the type checker fills these gaps.
test: setup
	$(MAKE) --no-print-directory -j 2 lint suite

suite: setup
	$(PYTEST)

# The inner loop, below a minute on two cores: without what starts processes, servers and browsers, loads other libraries,
# or runs whole optimizations.
SLOW := attack bench charts cli conformance parity report research study web $(addprefix test_,$(addsuffix .py,\
  botorch_acquisition botorch_model botorch_surrogate cases cold_ask comfort coming_from confidence constrained_search demo deploy \
  docs examples extend failures feasible gest goal_acquisition goal_posterior goals_followed identify integrated intervals \
  level_contexts mcp methods optuna_conformance optuna_cost optuna_outcomes optuna_sampler optuna_visualization optunahub \
  outliers packaging partial_contexts policy race readme rules sensitivity several_outcomes shown stopping tolerance tradeoff \
  tutorials))

test-fast: setup
	$(subst -n 3,-n 2,$(PYTEST)) $(addprefix --ignore=tests/,$(SLOW)) tests

# Where the time of the tests goes: the forty slowest, slowest first.
test-slowest: setup
	$(PYTEST) --durations=40

# The numeric tests as other CPUs would run them.
test-cpus: setup
	$(BIN)/python scripts/test_on_other_cpus.py

# A part of the tests that leans on every dependency, with the lower bounds of pyproject.toml. The torch of then
# brings gigabytes of CUDA.
test-oldest: setup
	$(BIN)/python scripts/test_versions.py oldest

# The same with the newest of everything; torch alone stays, as the build that can be had without CUDA.
test-newest: setup
	$(BIN)/python scripts/test_versions.py newest --torch 2.13.0

bench: setup
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/run.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/commands.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/scaling.py run

# The documentation as a site in site/, which opens from the file system. Warnings and dead links are errors.
docs: setup
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The hashes of all files of the tested versions. Not of torch: which of its builds is right hangs on the machine.
lock: setup
	$(BIN)/python -m uv pip compile pyproject.toml --extra dev --extra docs --constraints constraints.txt --generate-hashes \
	  --no-emit-package torch --no-annotate --quiet --custom-compile-command "make lock" --output-file requirements.lock

# Wheel, sdist and bill of materials in dist/: what is inside, and that they work with every extra and with none. Goes on where it stopped.
dist: setup
	$(BIN)/python scripts/check_wheel.py

clean:
	rm -rf .venv build dist src/*.egg-info
