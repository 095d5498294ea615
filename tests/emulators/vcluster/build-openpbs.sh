#!/bin/sh
# Builds OpenPBS for the tests: build-openpbs.sh SOURCE PREFIX, as root.
# SOURCE is a folder, an archive or a git repository of upstream's release (openpbs/openpbs; tried with the
# master branch after 23.06.06). PREFIX is the folder of the installation. It takes ten minutes on two cores.
# PROOFMARK_OPENPBS=PREFIX names it to tests/roles/test_pbs.py. Debian packages: gcc g++ make autoconf automake
# libtool libhwloc-dev libx11-dev libxt-dev libxext-dev libxft-dev libedit-dev libical-dev ncurses-dev perl
# postgresql postgresql-server-dev-all postgresql-contrib python3-dev tcl-dev tk-dev swig libexpat-dev libssl-dev
# libcjson-dev
set -eu
source=$1
prefix=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -f "$source" ]; then
	tar -x -f "$source" -C "$work" --strip-components=1
elif git -C "$source" rev-parse HEAD >/dev/null 2>&1; then
	git -C "$source" archive HEAD | tar -x -C "$work"
else
	cp -R "$source/." "$work"
fi
cd "$work"
./autogen.sh
./configure --prefix="$prefix" CFLAGS="-O1 -g0"
make -j"${JOBS:-1}"
make install
chmod 4755 "$prefix/sbin/pbs_iff" "$prefix/sbin/pbs_rcp" # as pbs_postinstall does
