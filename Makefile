# Every target installs its requirements: packages of the system (as root) and .venv.
SUITE ?= quick
ARGS ?=

SHELL := /bin/sh
# Ansible refuses a locale that is not UTF-8. A fresh machine may have one.
export LC_ALL := C.UTF-8
export PATH := $(CURDIR)/.venv/bin:$(PATH)
# Ansible, pip and others write below HOME, which may be missing or belong to another user.
export HOME := $(or $(shell analysis/proofmark/common/home.sh),$(error HOME: no folder of this user))
# Ansible needs a name also of a user without an entry in the user database.
export LOGNAME := $(or $(LOGNAME),$(shell id -un 2>/dev/null))
# Each process would compile the package again.
unexport PYTHONDONTWRITEBYTECODE
ifndef GIT_CONFIG_COUNT
# The checkout may belong to another user.
export GIT_CONFIG_COUNT := 1
export GIT_CONFIG_KEY_0 := safe.directory
export GIT_CONFIG_VALUE_0 := $(CURDIR)
endif

PARTS := lint-types lint-rest core
# All targets share .venv. Only these parts run at the same time, after it is installed.
ifneq ($(filter-out $(PARTS),$(or $(MAKECMDGOALS),help)),)
.NOTPARALLEL:
endif
.PHONY: help site acceptance rehearsal rehearsal-end test test-all test-rest soak counterparts fresh lint lint-files bench lock bundle easybuild clean relock catalogues docs \
	$(PARTS) test-words rest-words .venv .venv-spack .venv-rehearsal .venv-dev .site-lock

help:
	@echo 'make acceptance   measure and judge this machine; SUITE=quick ARGS="-e fresh=true"'
	@echo '                  PROGRAMS=spack: the six packages, with this machine'"'"'s MPI and BLAS; SOURCES=mirror'
	@echo 'make site         choose the site of commands without -i; SITE=nurion'
	@echo 'make rehearsal    an acceptance on a virtual cluster; SUITE=rehearsal FAULT=bmc-hang LIMIT=knl'
	@echo '                  KEEP=1: the cluster stays, to practise restore, gate and Ctrl-C'
	@echo 'make rehearsal-end  removes a cluster that stayed'
	@echo 'make test         lint and the core of the tests, $(TEST_TIME); ARGS="-k name"'
	@echo 'make test-all     make test, then make test-rest: plays, schedulers, the packages, long trials'
	@echo 'make soak         the long tests: random damage, simulated trials; ARGS="-k name"'
	@echo 'make counterparts  as root: builds OpenPBS and Flux of upstream into a cache, and runs the tests that need them;'
	@echo '                  SOURCES=folder has their git repositories; ARGS=flux-core'
	@echo 'make fresh        both commands of the README in a minimal Debian; DEBIAN=trixie USER=name CLONE=/tmp/kit'
	@echo 'make lint         the checks that CI runs beside the tests'
	@echo 'make bench        the overhead of the kit'
	@echo 'make lock         ARCH=knl OS=debian12: the lock of an environment, on that system; ARCH=all: each that'
	@echo '                  has a lock of it; COMPARE=1 only compares it with the pinned recipes, in seconds'
	@echo 'make bundle       ARCH=knl: one file for an install without a network;'
	@echo '                  OUT=file PACKAGES="ior stream" SOURCES=mirror SITE=nurion'
	@echo 'make easybuild    EasyBuild, pinned, in an environment of its own'
	@echo 'make relock       refresh requirements/*.txt from requirements/*.in'
	@echo 'make docs         the documentation as a site in build/docs; every link and every page is checked'
	@echo 'make catalogues   update the translations from the texts of the code'
	@echo 'make clean        remove the files that make created, but never a run'

acceptance: $(if $(filter spack,$(PROGRAMS)),.site-lock,.venv)
	$(if $(filter-out spack,$(PROGRAMS)),$(error PROGRAMS: found '$(PROGRAMS)'; accepted: spack, or nothing))
	ANSIBLE_STDOUT_CALLBACK=proofmark.kit.progress ansible-playbook acceptance.yml -i inventory/local$(PROGRAMS:%=-%) -l local -e suite=$(SUITE) $(ARGS)

# The lock of this machine, with its MPI and BLAS. It stays if it is of the parts, recipes and pins of
# now; else it is made again. MPI=mpich chooses one of several. What the plan refuses is said before.
.site-lock: .venv-spack
	@proofmark check -i inventory/local-spack -l local --suite $(SUITE) >/dev/null
	proofmark lock local -i inventory/local-spack --find $(MPI:%=--mpi=%) $(own)

site: .venv
	proofmark site $(SITE)

# Root only: namespaces and mounts. `make rehearsal FAULT=x`, with an unknown id, lists the ids.
rehearsal: SUITE =
rehearsal: .venv-rehearsal
	python -m tests.rehearsal $(if $(SUITE),--suite=$(SUITE)) $(if $(LIMIT),--limit=$(LIMIT)) \
		$(if $(FAULT),--fault=$(FAULT)) $(if $(KEEP),--keep) $(if $(ARGS),-- $(ARGS))

rehearsal-end: .venv-rehearsal
	python -m tests.rehearsal --end

# The time on two idle cores, in a new checkout with the installation (docs/tested.md).
TEST_TIME = eight minutes on two idle cores
REST_TIME = 14 minutes on two idle cores

# pytest also runs the tests with the mark lint. mypy has one thread: it runs beside the tests.
test: test-words .venv-dev lint-rest
	@$(MAKE) --no-print-directory -j2 --keep-going lint-types core

core:
	MAKEFLAGS= $(PYTEST) --tier=test --durations=25 $(ARGS)

test-all: test test-rest

test-rest: rest-words .venv-dev
	$(PYTEST) --tier=rest --durations=25 $(ARGS)

test-words:
	@echo 'make test: lint, all unit tests but long ones, one play of each kind, one real scheduler, one'
	@echo 'test of each package; properties with few examples. About $(TEST_TIME).'
	@echo 'make test-all adds the other plays and schedulers, the tests of the packages, ansible-lint, each'
	@echo 'command of the pages, kills at each moment, and properties with more examples.'

rest-words:
	@echo 'make test-rest: what make test-all adds to make test. About $(REST_TIME).'

soak: .venv-dev
	$(PYTEST) --tier=soak $(ARGS)

counterparts: .venv-dev
	python -m tests.emulators.counterparts $(if $(SOURCES),--sources="$(SOURCES)") $(ARGS)

# Tests also wait: two workers more than processors. Each makes all tests again: 6 s of processor time.
WORKERS ?= $(shell n=$$(nproc); echo $$((n < 11 ? n + 2 : 12)))
PYTEST = pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

bench: .venv-dev
	python -m tests.bench $(ARGS)

# SPACK=… and SPACK_PACKAGES=… are the site's own checkouts at the pins, used instead of clones.
own = $(if $(SPACK),--spack="$(SPACK)") $(if $(SPACK_PACKAGES),--spack-packages="$(SPACK_PACKAGES)")
environment = $(or $(ARCH),$(error ARCH: found nothing; accepted: a folder of environments/)) --os=$(OS)

lock: .venv
	proofmark lock $(environment) $(own) $(if $(COMPARE),--compare)

bundle: .venv
	proofmark install bundle $(environment) "$(or $(OUT),proofmark-$(ARCH).tar)" $(own) $(if $(SITE),-i inventory/$(SITE)) \
		$(if $(SOURCES),--sources="$(SOURCES)") \
		$(PACKAGES:%=--package=%)

# The provider easybuild takes it if PATH has no eb.
easybuild: .venv
	python -m venv --clear .provision/easybuild/venv
	.provision/easybuild/venv/bin/python -m pip install -qq --no-input --disable-pip-version-check \
		--require-hashes --no-deps -r requirements/easybuild.txt

# Root only. DEBIAN=trixie is Debian 13. CLONE is the folder of the checkout in the system. USER, if the
# command line has it, is a new ordinary user there. The environment has a USER too.
fresh: DEBIAN = bookworm
fresh: CLONE = /srv/my kit
fresh: .venv-dev
	python -m tests.fresh --release=$(DEBIAN) --clone="$(CLONE)" \
		$(if $(filter command,$(firstword $(origin USER))),--user=$(USER)) $(ARGS)

lint: lint-files
	pytest -q -m lint $$(grep -rl --include='test_*.py' 'pytest\.mark\.lint' tests)

lint-files: .venv-dev
	@$(MAKE) --no-print-directory -j2 --output-sync --keep-going lint-types lint-rest

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

# ARGS=--upgrade takes the newest versions that run.in and dev.in allow.
relock: .venv-dev
	cd requirements && for lock in run rehearsal dev impi spack easybuild bmc; do \
		$(COMPILE) $(ARGS) --output-file=$$lock.txt $$lock.in || exit; \
	done

# -E reads every page again: a page that was read before prints no warning.
docs: .venv-dev
	python -m tests.key_pages
	sphinx-build -E -q -W --keep-going docs build/docs

catalogues: .venv-dev
	python -m tests.catalogues

clean:
	rm -rf .venv .ansible collections playbooks/collections .hypothesis .mypy_cache .pytest_cache .ruff_cache build/docs analysis/*.egg-info
	find analysis plugins tests -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

.venv:
	@requirements/setup.sh run

.venv-spack:
	@requirements/setup.sh spack

.venv-rehearsal:
	@requirements/setup.sh rehearsal

.venv-dev:
	@requirements/setup.sh dev
