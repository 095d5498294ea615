# Every target installs what it needs: Debian packages (as root) and .venv.
SUITE ?= quick
ARGS ?=

SHELL := /bin/sh
# Ansible refuses a locale that is not UTF-8, which a fresh machine may have.
export LC_ALL := C.UTF-8
export PATH := $(CURDIR)/.venv/bin:$(PATH)
# Ansible, pip and others write below HOME, which may be missing or be somebody else's.
export HOME := $(shell requirements/home.sh)
ifndef GIT_CONFIG_COUNT
# The checkout may belong to another user.
export GIT_CONFIG_COUNT := 1
export GIT_CONFIG_KEY_0 := safe.directory
export GIT_CONFIG_VALUE_0 := $(CURDIR)
endif

LINT_PARTS := lint-ansible lint-types lint-rest
# All targets share .venv. Only the parts of lint run at the same time: lint has installed it.
ifneq ($(MAKECMDGOALS),$(LINT_PARTS))
.NOTPARALLEL:
endif
.PHONY: help acceptance rehearsal test soak fresh lint lint-files bench lock bundle clean relock \
	$(LINT_PARTS) .venv .venv-rehearsal .venv-dev

help:
	@echo 'make acceptance   measure and judge this machine; SUITE=quick ARGS="-e fresh=true"'
	@echo 'make rehearsal    the same on a virtual cluster; SUITE=rehearsal FAULT=bmc-hang LIMIT=knl'
	@echo 'make test         lint and the tests, without those of make soak; ARGS="-k name"'
	@echo 'make soak         the long tests: random damage, simulated trials; ARGS="-k name"'
	@echo 'make fresh        both commands of the README in a minimal Debian; DEBIAN=trixie'
	@echo 'make lint         what CI checks beside the tests'
	@echo 'make bench        the costs of the kit itself'
	@echo 'make lock         ARCH=knl OS=debian12: the lock of an environment, on that system'
	@echo 'make bundle       ARCH=knl: all that an install without a network needs;'
	@echo '                  BUILDCACHE=folder OUT=file PACKAGES="ior stream" SOURCES=mirror'
	@echo 'make relock       refresh requirements/*.txt from requirements/*.in'
	@echo 'make clean        remove what make made, but never a run'

acceptance: .venv
	ansible-playbook acceptance.yml -i inventory/local -l local -e suite=$(SUITE) $(ARGS)

# Root only: namespaces and mounts. `make rehearsal FAULT=` with no such id names those there are.
rehearsal: SUITE = rehearsal
rehearsal: .venv-rehearsal
	python -m tests.rehearsal --suite=$(SUITE) $(if $(LIMIT),--limit=$(LIMIT)) \
		$(if $(FAULT),--fault=$(FAULT)) $(if $(ARGS),-- $(ARGS))

# The tests of the mark lint are among them.
test: lint-files
	$(PYTEST) --tier=test $(ARGS)

soak: .venv-dev
	$(PYTEST) --tier=soak $(ARGS)

PYTEST := pytest -n 3 --dist loadfile --no-loadscope-reorder

bench: .venv-dev
	python -m tests.bench $(ARGS)

# A site's own checkouts at the pins, instead of clones: SPACK=… SPACK_PACKAGES=…
own = $(if $(SPACK),--spack=$(SPACK)) $(if $(SPACK_PACKAGES),--spack-packages=$(SPACK_PACKAGES))
environment = $(or $(ARCH),$(error ARCH: found nothing; accepted: a folder of environments/)) --os=$(OS)

lock: .venv
	proofmark lock $(environment) $(own)

bundle: .venv
	proofmark bundle $(environment) $(or $(OUT),proofmark-$(ARCH).tar) $(own) \
		$(if $(BUILDCACHE),--cache=$(BUILDCACHE)) $(if $(SOURCES),--sources=$(SOURCES)) \
		$(PACKAGES:%=--package=%)

# Root only. DEBIAN=trixie for Debian 13; CLONE: where the checkout is in it.
fresh: DEBIAN = bookworm
fresh: CLONE = /srv/my kit
fresh: .venv-dev
	python -m tests.fresh --release=$(DEBIAN) --clone="$(CLONE)" $(ARGS)

lint: lint-files
	pytest -q -m lint $$(grep -rl --include='test_*.py' 'pytest\.mark\.lint' tests)

lint-files: .venv-dev
	@$(MAKE) --no-print-directory -j2 --output-sync --keep-going $(LINT_PARTS)

lint-ansible:
	PROOFMARK_SITE=local ansible-lint

lint-types:
	mypy $(wildcard analysis plugins tests)

lint-rest:
	ruff check .
	ruff format --check .
	lint-imports --no-cache
	yamllint --strict .
	@echo shellcheck
	@{ git ls-files -co --exclude-standard '*.sh'; git ls-files -coz --exclude-standard | \
		xargs -0 grep -slzP '\A#! ?/(usr/)?bin/(env )?(ba|da)?sh\b'; } | sort -u | xargs shellcheck

COMPILE := pip-compile --quiet --generate-hashes --strip-extras --allow-unsafe \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host

# ARGS=--upgrade takes the newest of what run.in and dev.in leave open.
relock: .venv-dev
	cd requirements && for lock in run rehearsal dev impi spack; do \
		$(COMPILE) $(ARGS) --output-file=$$lock.txt $$lock.in || exit; \
	done

clean:
	rm -rf .venv .ansible .hypothesis .mypy_cache .pytest_cache .ruff_cache analysis/*.egg-info
	find analysis plugins tests -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

.venv:
	@requirements/setup.sh run

.venv-rehearsal:
	@requirements/setup.sh rehearsal

.venv-dev:
	@requirements/setup.sh dev
