#!/bin/sh
# Builds OpenPBS for the tests: build-openpbs.sh SOURCE TAG PREFIX, as root, on Debian 12.
# SOURCE is a git repository of openpbs/openpbs; it is not changed. PREFIX is the folder of the installation. It
# takes ten minutes on two cores. PROOFMARK_OPENPBS=PREFIX names it to tests/roles/test_pbs.py.
set -eu
source=${1:?SOURCE} tag=${2:?TAG} prefix=${3:?PREFIX}
apt-get -o DPkg::Lock::Timeout=600 install -y --no-install-recommends gcc g++ make autoconf automake libtool libhwloc-dev libx11-dev libxt-dev \
	libxext-dev libxft-dev libedit-dev libical-dev ncurses-dev perl postgresql postgresql-server-dev-all \
	postgresql-contrib python3-dev tcl-dev tk-dev swig libexpat-dev libssl-dev libcjson-dev
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR="$work" # of the tools of the build, too
trap 'exit 143' INT TERM HUP # dash runs no trap of EXIT at a signal
git -C "$source" archive "$tag" | tar -x -C "$work"
cd "$work"
# The release includes a header that Python 3.11 does not have any more. Python.h has its declarations.
: >src/include/eval.h
./autogen.sh
./configure --prefix="$prefix" CFLAGS="-O1 -g0"
make -j"${JOBS:-1}"
make install
chmod 4755 "$prefix/sbin/pbs_iff" "$prefix/sbin/pbs_rcp" # as pbs_postinstall does
