# Every target installs what it needs into .venv; the machine needs Python 3.11 or later, make and git.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# What is compiled once is not compiled again: pytest rewrites five hundred files, each worker anew where it may not.
unexport PYTHONDONTWRITEBYTECODE
# What fails is run once more, alone, at the end (tests/unstable.py). The slow ones wait more than they compute.
PYTEST := $(BIN)/python -m pytest --rerun-alone

.PHONY: help demo near test test-all slow e2e real artefacts peers tables check docs format bench mutants lock licences sbom image lock-image archive release clean
help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST)

$(VENV)/.runtime: requirements.lock $(wildcard packages/*/pyproject.toml)
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"runup needs Python 3.11 or later; $(PYTHON) is {v[0]}.{v[1]}. Set PYTHON=/path/to/python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing runup into $(VENV)"
	@tools/install $(BIN) requirements.lock
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.runtime
	@tools/install $(BIN) requirements-dev.lock
	@touch $@

demo: $(VENV)/.runtime ## a 5.0.0 cluster is checked by release 5.2.0, with no cluster at all
	@$(BIN)/python -m runup demo

BASE ?= HEAD
near: $(VENV)/.dev ## the fast tests of the code that differs from BASE (what is not committed): after each edit
	@$(BIN)/python -m tools.near $(BASE)

test: $(VENV)/.dev ## the tests that take milliseconds, some seconds at most: before each commit
	$(PYTEST) -n 3 --dist loadfile --no-loadscope-reorder -m "not slow"

# In this order also where make may do two things at once: each takes both cores.
test-all: test ## those and the slow ones: everything that needs no real server
	@$(MAKE) --no-print-directory slow

slow: $(VENV)/.dev
	$(PYTEST) -n 4 --dist loadgroup -m slow

e2e: $(VENV)/.dev ## the API contract and the journeys on a real kube-apiserver and etcd, built once (needs Go)
	@$(BIN)/python -m tests.controlplane -n 2 --dist loadgroup

real: $(VENV)/.dev ## a real cluster with two nodes on this machine, built once (needs root, Go and Debian's packages)
	@$(BIN)/python -m tests.realcluster

# What a user installs: no file of the checkout but the tests themselves.
artefacts: $(VENV)/.dev ## the journeys, the pages of docs/ and the API contract with installed wheels instead of the checkout
	@tools/install-wheel $(BIN) build/artefacts
	@$(BIN)/uv pip install -q --python build/artefacts --require-hashes -r requirements-dev.lock
	@build/artefacts/bin/python -c 'import kubekit, kubesandbox, runup, sys; sys.exit(any("site-packages" not in m.__file__ for m in (kubekit, kubesandbox, runup)))'
	build/artefacts/bin/python -m pytest --rerun-alone -n 4 --dist loadgroup $(ARTEFACT_TESTS)

ARTEFACT_TESTS ?= tests/journeys tests/transcripts tests/contract tests/install tests/stored

peers: $(VENV)/.dev ## test suites of other projects against kubesandbox, from the package registries (needs Go and kubectl)
	@$(BIN)/python -m bench suites

tables: $(VENV)/.dev ## update the tables of what Kubernetes adds, locks and removes, and print the differences (needs Go)
	@$(BIN)/python tools/removed_apis.py
	@$(BIN)/python tools/kubernetes_tables.py
	@$(BIN)/python tools/tables_page.py
	@git --no-pager diff --stat -- packages/runup/src/runup/checks/decide/data

check: $(VENV)/.dev ## format, lint, types, imports, docs, citations, English, sizes
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/check_docs.py
	$(BIN)/python -m tests.contract.differences --check
	$(BIN)/python tools/check_citations.py
	$(BIN)/python tools/check_english.py
	$(BIN)/python tools/sizes.py --check
	$(BIN)/sphinx-build -q -W --keep-going -d build/doctrees docs build/docs

docs: $(VENV)/.dev ## the documentation as a site, in build/docs
	$(BIN)/sphinx-build -q -W --keep-going -d build/doctrees docs build/docs

format: $(VENV)/.dev ## rewrite the code in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.dev ## speed and memory, as JSON
	$(BIN)/python -m bench

SEED ?= 1
COUNT ?= 50
mutants: $(VENV)/.dev ## which of COUNT small changes to the code no test notices (SEED chooses them), as JSON
	@$(BIN)/python -m bench mutants --seed $(SEED) --count $(COUNT)

LOCK := $(BIN)/uv pip compile -q --no-header --python-version 3.11.0 --generate-hashes --no-emit-index-url
# Our three packages are not in the locks: they are what is installed with them.
OURS := $(foreach name,kubekit kubesandbox kube-runup,--no-emit-package $(name))
ALL := packages/runup/pyproject.toml --extra sandbox
lock: $(VENV)/.dev ## pin the newest versions that the floors allow
	$(LOCK) $(OURS) $(ALL) -o requirements.lock
	$(LOCK) $(OURS) $(ALL) --group pyproject.toml:dev -o requirements-dev.lock
	$(LOCK) --group pyproject.toml:build -o requirements-build.lock

licences: $(VENV)/.dev ## the licences of what runup installs; fails on one that does not fit
	@$(BIN)/python tools/licences.py

# PROGRAM: of another installation, such as that of an image, /opt/runup/bin/python in it.
PROGRAM ?= build/sbom/bin/python
sbom: $(VENV)/.dev ## what an installation of our wheels consists of, as CycloneDX, in build/runup.cdx.json
	@test $(PROGRAM) != build/sbom/bin/python || tools/install-wheel $(BIN) build/sbom
	$(BIN)/cyclonedx-py environment $(PROGRAM) --pyproject packages/runup/pyproject.toml --output-reproducible --of JSON -o build/runup.cdx.json

ARCHITECTURES ?= amd64
image: $(VENV)/.dev ## the operator's image from source, as an OCI layout in build/image (ARCHITECTURES="amd64 arm64" for both)
	@$(BIN)/python -m tools.image $(ARCHITECTURES:%=--architecture %)

lock-image: $(VENV)/.dev ## pin the Debian packages in the image that the machine's mirror has today
	@$(BIN)/python -m tools.image --lock

archive: $(VENV)/.dev ## kubesandbox as one file that needs Python alone, in build/kubesandbox.pyz
	@$(BIN)/python -m tools.kubesandbox_archive build/kubesandbox.pyz

# IMAGE is where the image will be found, such as registry.example/runup; RUNUP_SIGNING_KEY the publisher's key.
release: $(VENV)/.dev ## all that is published of a commit, in build/release: wheel, image, archives, bills, checksums
	@RUNUP_IMAGE="$(IMAGE)" $(BIN)/python -m tools.release

clean: ## remove what the targets made
	rm -rf build $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
