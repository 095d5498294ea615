#!/bin/sh
# Install or update .venv and its Debian packages: setup.sh run|rehearsal|dev
# If nothing is missing, it changes nothing and needs no root.
set -eu

kind=${1:?usage: setup.sh run|rehearsal|dev}
cd "$(dirname "$0")/.."
root=$(pwd -P)
# PATH, sh, Ansible, ssh, Slurm or patterns of files give these characters another meaning.
case $root in
*[]\[:\"\'\`\\$%#,\;*?\{\}\|\<\>\&]* | *[[:cntrl:]]*)
    {
        printf "the folder of this checkout: found '%s'; accepted: a path without control" "$root"
        printf ' characters and without any of %s; a blank is accepted\n' \
            ': " '"' \` \\ \$ % # , ; * ? [ ] { } | < > &"
    } >&2
    exit 3
    ;;
esac
exec 9<requirements/setup.sh
flock 9 # of two makes at the same time the second waits, and then has nothing to do

# Print the packages of the lists "$@" without an installed alternative.
missing_packages() {
    sed 's/#.*//' "$@" | while read -r choice; do
        [ -n "$choice" ] || continue
        found=
        for package in $(echo "$choice" | tr '|' ' '); do
            state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || state=
            [ "$state" != installed ] || found=yes
        done
        [ -n "$found" ] || echo "${choice%%|*}"
    done
}

# Install the missing packages of the lists "$@", or print them with the command for root.
install_packages() {
    command -v dpkg-query >/dev/null || return 0 # not Debian: each stage reports its missing programs
    missing=$(missing_packages "$@" | tr '\n' ' ')
    missing=${missing% }
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" -ne 0 ]; then
        {
            echo "Debian packages are missing, and only root can install them:"
            echo "$missing" | tr ' ' '\n' | sed 's/^/  /'
            echo "Nothing was changed. As root, this one command installs them:"
            echo "  apt-get update && apt-get install --no-install-recommends --yes $missing"
        } >&2
        exit 1
    fi
    echo "installing Debian packages: $missing"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq </dev/null
    # shellcheck disable=SC2086 # one word a package
    log=$(apt-get install -qq --no-install-recommends --yes $missing </dev/null 2>&1) || {
        echo "$log" >&2
        exit 1
    }
}

# Are the installed packages of the stamps "$@" still those of the files?
fresh() {
    for stamp; do
        sha256sum --status -c ".venv/$stamp.sha256" 2>/dev/null || return 1
    done
    grep -qF "$root/.venv" .venv/pyvenv.cfg 2>/dev/null # a moved checkout has a broken venv
}

# Install the locks "$@" into .venv, each with its stamp.
install_locks() {
    for lock; do
        echo "installing requirements/$lock.txt into .venv"
        .venv/bin/python -m pip install -qq --no-input --disable-pip-version-check \
            --require-hashes --no-deps -r "requirements/$lock.txt"
        sha256sum "requirements/$lock.txt" >".venv/$lock.sha256"
    done
}

update_venv() {
    if ! fresh run || { [ -e .venv/dev.sha256 ] && [ "$kind" = dev ] && ! fresh dev; }; then
        # A lock changed. pip does not remove packages that a lock no longer names, so start again.
        rm -rf .venv
        python=/usr/bin/python3
        "$python" -c "$recent" 2>/dev/null || python=python3
        "$python" -c "$recent" || {
            echo "Python 3.11 or newer is needed; found $("$python" --version 2>&1)" >&2
            exit 1
        }
        "$python" -m venv .venv
        install_locks run
    fi
    # dev.txt contains all packages of rehearsal.txt.
    [ "$kind" = run ] || fresh dev || fresh "$kind" || install_locks "$kind"
    fresh project || {
        .venv/bin/python -m pip install -qq --no-input --disable-pip-version-check \
            --no-deps --no-build-isolation --no-index -e .
        # A process that cannot write bytecode here compiles the package again at each start.
        .venv/bin/python -m compileall -q analysis/proofmark
        sha256sum pyproject.toml >.venv/project.sha256
    }
}

# Ansible finds the collection proofmark.kit by a folder of that name: a link to the checkout.
link_collection() {
    link=.ansible/collections/ansible_collections/proofmark/kit
    [ -e "$link/galaxy.yml" ] || {
        mkdir -p "${link%/*}"
        ln -sfn ../../../.. "$link"
    }
}

recent='import sys; sys.exit(sys.version_info < (3, 11))'
case $kind in
run) install_packages requirements/debian-run.txt ;;
rehearsal) install_packages requirements/debian-run.txt requirements/debian-rehearsal.txt ;;
dev) install_packages requirements/debian-run.txt requirements/debian-rehearsal.txt \
    requirements/debian-dev.txt ;;
*) echo "setup.sh: found '$kind'; accepted: run, rehearsal, dev" >&2 && exit 3 ;;
esac
update_venv
link_collection
