# Every target installs what it needs: Debian packages (as root) and .venv.
SUITE ?= quick
ARGS ?=

SHELL := /bin/sh
# Ansible refuses a locale that is not UTF-8, which a fresh machine may have.
export LC_ALL := C.UTF-8
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.NOTPARALLEL:
.PHONY: help acceptance test lint bench clean relock .venv .venv-dev

help:
	@echo 'make acceptance   measure and judge this machine; SUITE=quick ARGS="-e fresh=true"'
	@echo 'make test         lint and all the tests; ARGS="-k name"'
	@echo 'make lint         what CI checks beside the tests'
	@echo 'make bench        the costs of the kit itself'
	@echo 'make relock       refresh requirements/*.txt from requirements/*.in'
	@echo 'make clean        remove what make made, but never a run'

acceptance: .venv
	ansible-playbook acceptance.yml -i inventory/local -l local -e suite=$(SUITE) $(ARGS)

test: lint
	pytest $(ARGS)

bench: .venv-dev
	python -m tests.bench $(ARGS)

lint: .venv-dev
	ruff check .
	ruff format --check .
	mypy $(wildcard analysis plugins tests)
	yamllint --strict .
	PROOFMARK_SITE=local ansible-lint
	@echo shellcheck
	@{ git ls-files -co --exclude-standard '*.sh'; git ls-files -coz --exclude-standard | \
		xargs -0 grep -slzP '\A#! ?/(usr/)?bin/(env )?(ba|da)?sh\b'; } | sort -u | xargs shellcheck
	pytest -q -m lint

COMPILE := pip-compile --quiet --generate-hashes --strip-extras --allow-unsafe \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host

# ARGS=--upgrade takes the newest of what run.in and dev.in leave open.
relock: .venv-dev
	cd requirements && for lock in run dev impi spack; do \
		$(COMPILE) $(ARGS) --output-file=$$lock.txt $$lock.in || exit; \
	done

clean:
	rm -rf .venv .ansible .hypothesis .mypy_cache .pytest_cache .ruff_cache analysis/*.egg-info
	find analysis plugins tests -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

.venv:
	@requirements/setup.sh run

.venv-dev:
	@requirements/setup.sh dev
