#!/bin/sh
# Prints what is installed on this node, and the address of its BMC, in the syntax of probe.sh.
#
#   sh node-tools.sh compilers|mpi|modules|bmc|fabric
#   sh node-tools.sh rates FOLDER    # measures for two seconds, and writes 256 MiB into FOLDER
#
# Each section is a run of its own, so that a tool that hangs affects only its section.
kind=${1:-compilers}
LC_ALL=C
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
export LC_ALL PATH

newline='
'
absent() { printf '! %s: %s\n' "$kind" "${1%%"$newline"*}"; }
quote() { sed 's/^/| /'; }

# Prints "NAME: PATH: first line of its version" for each program that is installed.
versions() { # NAMES...
    found=
    for name; do
        path=$(command -v "$name") || continue
        case $path in /*) ;; *) continue ;; esac
        found=yes
        printf '%s: %s: %s\n' "$name" "$path" \
            "$("$path" --version 2>&1 </dev/null | sed -n '/[^ ]/{p;q;}' | cut -c 1-200)" | quote
    done
    [ -n "$found" ] || absent "not installed: $*"
}

compilers() {
    versions gcc gfortran clang flang icx ifx icc ifort nvc nvfortran amdclang amdflang armclang \
        armflang cc ftn xlc xlf
}

mpi() { versions mpirun mpiexec srun ompi_info mpichversion; }

# The files of a login shell define the command `module`.
modules() {
    for file in /etc/profile.d/*lmod*.sh /etc/profile.d/*modules*.sh; do
        # shellcheck disable=SC1090 # a file of the site
        [ ! -r "$file" ] || . "$file" >/dev/null 2>&1
    done
    command=module
    if ! type "$command" >/dev/null 2>&1; then absent 'no command module in a login shell'; return; fi
    # Lmod: "Modules based on Lua: Version 8.6.19"; Environment Modules: "Modules Release 5.2.0"
    "$command" --version 2>&1 </dev/null | sed -n '/[^ ]/{s/^ *//;p;q;}' | cut -c 1-200 | quote
    "$command" -t avail 2>&1 </dev/null | head -n 2000 | quote
}

bmc() {
    if ! command -v ipmitool >/dev/null; then absent 'ipmitool is not installed'; return; fi
    if [ "$(id -u)" != 0 ]; then absent 'ipmitool needs root'; return; fi
    lines=$(ipmitool lan print 2>&1 </dev/null) || { absent "ipmitool: $lines"; return; }
    printf '%s\n' "$lines" | quote
    ipmitool mc info 2>/dev/null </dev/null | quote
}

fabric() {
    if ! command -v ibnetdiscover >/dev/null; then absent 'ibnetdiscover is not installed'; return; fi
    lines=$(ibnetdiscover 2>&1 </dev/null) ||
        { absent "ibnetdiscover: $lines"; return; }
    printf '%s\n' "$lines" | quote
}

# Multiply-add of all processors together: as many processes, each with 64 independent sums.
flops() { # FOLDER
    command -v cc >/dev/null || return 0
    cat >"$1/flops.c" <<'END'
#include <stdio.h>
#include <time.h>
int main(void) {
    static double sum[64];
    volatile double given = 0.999;
    double factor = given, total = 0, seconds;
    long turns = 0;
    clock_t begin = clock();
    do {
        for (int turn = 0; turn < 100000; turn++)
            for (int i = 0; i < 64; i++) sum[i] = sum[i] * factor + factor;
        turns++;
        seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    } while (seconds < 0.5);
    for (int i = 0; i < 64; i++) total += sum[i];
    printf("%.6g %.6g\n", turns * 100000.0 * 64 * 2 / seconds, total);
    return 0;
}
END
    cc -O3 -march=native -o "$1/flops" "$1/flops.c" 2>/dev/null ||
        cc -O3 -o "$1/flops" "$1/flops.c" 2>/dev/null || return 0
    for _ in $(seq "$(nproc)"); do "$1/flops" & done >"$1/rates"
    wait
    awk '{sum += $1} END {if (NR) printf "flops: %.4g\n", sum}' "$1/rates" | quote
}

# The rate of one stream that ends when the data are stored. A file that exists, or a link, is not written.
written() { # FILE
    begin=$(date +%s%N)
    timeout 20 dd if=/dev/zero of="$1" bs=1048576 count=256 conv=excl,fsync 2>/dev/null || return 0
    awk -v took="$(($(date +%s%N) - begin))" \
        'BEGIN {printf "write: %.4g\n", 256 * 1048576 * 1e9 / took}' | quote
}

rates() { # FOLDER
    own=$(mktemp -d) && target=$(mktemp -u "$1/proofmark-XXXXXXXXXX") || return 0
    trap 'rm -rf "$own"; rm -f "$target"' EXIT
    trap 'exit 143' INT TERM HUP # dash runs no trap of EXIT at a signal
    flops "$own"
    written "$target"
}

printf 'proofmark-probe 1 tools\n=== %s\n' "$kind"
case $kind in
compilers | mpi | modules | bmc | fabric) "$kind" ;;
rates) rates "${2:-/var/tmp}" ;;
*) absent 'no such section' ;;
esac
printf '=== end\n'
