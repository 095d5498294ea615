#!/bin/sh
# sh tests/emulators/flux-core.sh SOURCE TAG PREFIX   builds and installs a real Flux, on Debian 12, as root
# SOURCE is a git folder of flux-framework/flux-core; it is not changed. flux-security and flux-sched are
# not needed, nor is the data of Flux's own tests. About 10 minutes on two idle cores; JOBS is the number of processes (default: 1).
set -eu
source=${1:?SOURCE} tag=${2:?TAG} prefix=${3:?PREFIX}
apt-get -o DPkg::Lock::Timeout=600 install -y --no-install-recommends autoconf automake libtool make gcc g++ pkg-config libzmq3-dev \
	libczmq-dev uuid-dev libjansson-dev liblz4-dev libarchive-dev libhwloc-dev libsqlite3-dev lua5.1 \
	liblua5.1-dev liblua5.3-dev lua-posix python3-dev python3-cffi python3-ply python3-yaml \
	python3-jsonschema libsystemd-dev libmunge-dev munge libncursesw5-dev mpich libmpich-dev
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
export TMPDIR="$build" # of the tools of the build, too
trap 'exit 143' INT TERM HUP # dash runs no trap of EXIT at a signal
git -C "$source" archive "$tag" -- . ":(exclude)t/resource" | tar -x -C "$build"
cd "$build"
FLUX_VERSION=${tag#v} ./autogen.sh
PYTHON=/usr/bin/python3 ./configure --prefix="$prefix" --disable-docs
make -j"${JOBS:-1}" -C src
make -C src install
make -C etc install
"$prefix/bin/flux" --version
