#!/bin/sh
# Install or update .venv and the packages of the system: setup.sh run|spack|rehearsal|dev
# If nothing is missing, it changes nothing and needs no root.
set -eu

kind=${1:?usage: setup.sh run|spack|rehearsal|dev}
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

# Print the first Python 3.11 or newer that can make a virtual environment, that of the system before
# others. Some systems install it beside an older python3, with its version in its name.
find_python() (
    case :$PATH: in *:/usr/bin:*) PATH=/usr/bin:$PATH ;; esac
    IFS=:
    for folder in $PATH; do
        case $folder in */.venv/bin) continue ;; esac # it is about to be replaced
        for candidate in "$folder/python3" "$folder"/python3.[1-9][0-9]; do
            [ ! -x "$candidate" ] || ! "$candidate" -c "$recent" 2>/dev/null || {
                echo "$candidate"
                return
            }
        done
    done
)

# Print the kind of the system's packages, as in the names of the lists; nothing if it has no list.
find_family() {
    # dpkg may be installed on systems whose packages are those of rpm.
    if is_installed debian dpkg; then
        echo debian
    elif command -v rpm >/dev/null && command -v dnf >/dev/null; then
        echo rhel
    elif command -v rpm >/dev/null && command -v zypper >/dev/null; then
        echo suse
    fi
}

is_installed() { # is_installed FAMILY PACKAGE
    case $1 in
    debian) [ "$(dpkg-query -W -f '${db:Status-Status}' "$2" 2>/dev/null)" = installed ] ;;
    *) rpm -q "$2" >/dev/null 2>&1 ;;
    esac
}

# Print the packages of the lists "$@" without an installed alternative. A Python that can make a
# virtual environment is an alternative to every package of Python.
missing_packages() {
    sed 's/#.*//' "$@" | while read -r choice; do
        case $choice in
        '') continue ;;
        python3*) [ -z "$python" ] || continue ;;
        esac
        found=
        for package in $(echo "$choice" | tr '|' ' '); do
            ! is_installed "$family" "$package" || found=yes
        done
        [ -n "$found" ] || echo "${choice%%|*}"
    done
}

# Install the missing packages of the lists "$@" (run, rehearsal, dev), or print them with the
# command for root.
install_packages() {
    python=$(find_python)
    family=$(find_family)
    for name; do
        shift
        list=requirements/$family-$name.txt
        # Without a list, each stage reports its missing programs.
        [ ! -e "$list" ] || set -- "$@" "$list"
    done
    [ $# -gt 0 ] || return 0
    missing=$(missing_packages "$@" | tr '\n' ' ')
    missing=${missing% }
    [ -n "$missing" ] || return 0
    case $family in
    debian) how="apt-get update && apt-get install --no-install-recommends --yes" ;;
    rhel) how="dnf install --assumeyes" ;;
    suse) how="zypper --non-interactive install --no-recommends" ;;
    esac
    if [ "$(id -u)" -ne 0 ]; then
        {
            echo "Packages of the system are missing, and only root can install them:"
            echo "$missing" | tr ' ' '\n' | sed 's/^/  /'
            echo "Nothing was changed. As root, this one command installs them:"
            echo "  $how $missing"
        } >&2
        exit 1
    fi
    echo "installing packages of the system: $missing"
    # shellcheck disable=SC2086 # one word a package
    log=$(install_as_root $missing 2>&1) || {
        echo "$log" >&2
        exit 1
    }
    python=$(find_python)
}

install_as_root() {
    export DEBIAN_FRONTEND=noninteractive
    case $family in
    debian) apt-get update -qq && apt-get install -qq --no-install-recommends --yes "$@" ;;
    rhel) dnf install --assumeyes "$@" ;;
    suse) zypper --non-interactive install --no-recommends "$@" ;;
    esac </dev/null
}

# Are the installed packages of the stamps "$@" still those of the files?
fresh() {
    for stamp; do
        sha256sum --status -c ".venv/$stamp.sha256" 2>/dev/null || return 1
    done
    grep -qF "$root/.venv" .venv/pyvenv.cfg 2>/dev/null # a moved checkout has a broken venv
}

# Install the first lock, which has all packages of the others, into .venv; write the stamps of all.
# pip would compile the modules with one processor.
install_locks() {
    echo "installing requirements/$1.txt into .venv"
    .venv/bin/python -m pip install -qq --no-input --disable-pip-version-check \
        --no-compile --require-hashes --no-deps -r "requirements/$1.txt"
    # A package may have files that are templates of modules, and no modules.
    .venv/bin/python -m compileall -qq -j 0 .venv/lib || true
    for lock; do
        sha256sum "requirements/$lock.txt" >".venv/$lock.sha256"
    done
}

update_venv() {
    if ! fresh run || { [ -e .venv/dev.sha256 ] && [ "$kind" = dev ] && ! fresh dev; }; then
        # A lock changed. pip does not remove packages that a lock no longer names, so start again.
        rm -rf .venv
        [ -n "$python" ] || {
            echo "PATH: found no suitable Python; accepted: Python 3.11 or newer with the modules" \
                "venv and ensurepip, under any name (python3, python3.12)" >&2
            exit 1
        }
        "$python" -m venv .venv
        [ "$kind" = dev ] || install_locks run
    fi
    # dev.txt contains all packages of run.txt and of rehearsal.txt.
    case $kind in
    dev) fresh dev || install_locks dev run ;;
    rehearsal) fresh dev || fresh rehearsal || install_locks rehearsal ;;
    esac
    fresh project || {
        .venv/bin/python -m pip install -qq --no-input --disable-pip-version-check \
            --no-deps --no-build-isolation --no-index -e .
        # A process that cannot write bytecode here compiles the package again at each start.
        .venv/bin/python -m compileall -q analysis/proofmark
        sha256sum pyproject.toml >.venv/project.sha256
    }
}

# Ansible finds the collection proofmark.kit by a folder of that name: a link to the checkout. With
# any ansible.cfg it looks into the folder collections beside a playbook.
link_collection() {
    link=.ansible/collections/ansible_collections/proofmark/kit
    [ -e "$link/galaxy.yml" ] || {
        mkdir -p "${link%/*}"
        ln -sfn ../../../.. "$link"
    }
    [ -e collections ] || ln -sfn .ansible/collections collections
    [ -e playbooks/collections ] || ln -sfn ../.ansible/collections playbooks/collections
}

recent='import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))'
case $kind in
run) install_packages run ;;
spack) install_packages run spack ;;
rehearsal) install_packages run rehearsal ;;
dev) install_packages run rehearsal dev ;;
*) echo "setup.sh: found '$kind'; accepted: run, spack, rehearsal, dev" >&2 && exit 3 ;;
esac
update_venv
link_collection
