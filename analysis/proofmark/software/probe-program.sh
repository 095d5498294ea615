#!/bin/sh
# Prints facts of a program: its hash, libraries, MPI and BLAS, and the kernel that the BLAS chooses.
#
#   sh probe-program.sh [-k 'HASWELL SKYLAKEX'] PROGRAM...
#
# The output is one stream per program, in the syntax of probe.sh. Run this script in the environment
# and on the kind of node of the program's later runs, because both decide which libraries are loaded.
# -k names OpenBLAS kernels to try; the output has, for each, the kernel that the library then uses.
# The script runs no PROGRAM. It only loads libraries.
set -u
LC_ALL=C
export LC_ALL
unset PROOFMARK_BMC_USER PROOFMARK_BMC_PASSWORD
kernels=
while getopts k: option; do
    case $option in
    k) kernels=$OPTARG ;;
    *) echo "usage: probe-program.sh [-k 'KERNEL...'] PROGRAM..." >&2; exit 3 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || { echo "probe-program.sh: no program given" >&2; exit 3; }

section() { printf '=== %s\n' "$1"; }
fact() { printf '| %s: %s\n' "$1" "$2"; }
absent() { printf '!%s %s%s\n' "$2" "$1" "${3:+: $3}"; } # NAME CODE [VALUES]: a code of probe_text.py
have() { command -v "$1" >/dev/null 2>&1; }
holds() { grep -q "$1" "$2" 2>/dev/null; }

# A package may list a file without the /usr of its path.
packages() { # FILES...: prints "FILE: PACKAGE VERSION" for each file of a package
    section packages
    if have dpkg-query; then
        for file; do
            printf '%s\n' "$file"
            case $file in /usr/*) printf '%s\n' "${file#/usr}" ;; esac
        done | tr '\n' '\0' | xargs -0 dpkg-query -S 2>/dev/null | grep -v '^diversion' |
            while IFS= read -r line; do
                name=${line%%: *}
                fact "${line#*: }" "${name%%,*} $(dpkg-query -W -f '${Version}' "${name%%,*}" 2>/dev/null)"
            done
    elif have rpm; then
        for file; do
            name=$(rpm -qf --qf '%{NAME} %{VERSION}-%{RELEASE}\n' "$file" 2>/dev/null) &&
                fact "$file" "$(printf '%s\n' "$name" | head -n 1)"
        done
    else
        absent packages no-tools 'dpkg-query, rpm'
    fi
}

hashes() { # FILES...
    section hashes
    if have sha256sum; then sha256sum "$@" 2>/dev/null | sed 's/^\([0-9a-f]*\)  */| \1 /'
    elif have openssl; then
        for file; do printf '| %s %s\n' "$(openssl dgst -sha256 -r "$file" | cut -c1-64)" "$file"; done
    else absent hashes no-tools 'sha256sum, openssl'; fi
}

# Loads the library into a program that does nothing, so that OpenBLAS prints its kernel.
core() { # LIBRARY
    # Blanks separate the files of LD_PRELOAD, so that a path with a blank is not possible in it.
    (cd "${1%/*}" && OPENBLAS_VERBOSE=2 OPENBLAS_NUM_THREADS=1 LD_PRELOAD=./${1##*/} "$idle" 2>&1 </dev/null) |
        sed -n 's/^Core: *//p' | tail -n 1
}

openblas() { # LIBRARY
    fact library "$1"
    version=$(printf '%s\n' "${1##*/}" | sed -n 's/.*-r\([0-9][0-9.]*[0-9]\).*/\1/p')
    [ -n "$version" ] ||
        version=$(grep -a -o 'OpenBLAS [0-9][0-9]*\.[0-9][0-9.]*[0-9]' "$1" | sed -n '1s/OpenBLAS //p')
    if [ -n "$version" ]; then fact version "$version"; else absent blas.version no-version; fi
    [ -z "${OPENBLAS_CORETYPE:-}" ] || fact forced "$OPENBLAS_CORETYPE"
    chosen=$(core "$1")
    if [ -z "$chosen" ]; then
        absent blas.chosen kernel-silent
        return
    fi
    fact chosen "$chosen"
    for kernel in $kernels; do
        fact "tried $kernel" "$(OPENBLAS_CORETYPE=$kernel && export OPENBLAS_CORETYPE && core "$1")"
    done
}

blas() { # PROGRAM LIBRARIES...: a library of an implementation replaces the interface, libblas
    section blas
    program=$1
    shift
    family=
    for library; do
        case ${library##*/} in
        libopenblas*) new=openblas ;;
        libmkl_*) new=mkl ;;
        libblis*) new=blis ;;
        libflexiblas*) new=flexiblas ;;
        libsci_*) new=libsci ;;
        libarmpl*) new=armpl ;;
        libnvpl_blas*) new=nvpl ;;
        libessl*) new=essl ;;
        libatlas* | libsatlas* | libtatlas* | libf77blas*) new=atlas ;;
        libblas.so* | libblas-*)
            if holds OPENBLAS_CORETYPE "$library"; then new=openblas
            elif holds BLIS_ARCH_TYPE "$library"; then new=blis
            else new=reference; fi ;;
        *) continue ;;
        esac
        [ -n "$family" ] && [ "$family" != reference ] && continue
        family=$new
        path=$library
    done
    if [ -n "$family" ]; then
        fact family "$family"
        if [ "$family" = openblas ]; then openblas "$path"; return; fi
        fact library "$path"
        case $family in
        blis) absent blas.chosen kernel-blis ;;
        mkl) absent blas.chosen kernel-mkl ;;
        reference) absent blas.chosen kernel-reference ;;
        *) absent blas.chosen kernel-unprinted "$family" ;;
        esac
        return
    fi
    for marker in openblas:OPENBLAS_CORETYPE blis:BLIS_ARCH_TYPE mkl:MKL_ENABLE_INSTRUCTIONS; do
        if holds "${marker#*:}" "$program"; then
            fact family "${marker%%:*}"
            fact library static
            absent blas.chosen kernel-static
            return
        fi
    done
    absent blas no-blas
}

# MPI-IO: the drivers of files are in the library, or in plug-ins of Open MPI beside it.
files_io() { # LIBRARY
    if [ "$1" != "${io_of:-}" ]; then
        io_of=$1
        io=$({
            printf '%s\n' "$1"
            ! holds 'Open MPI' "$1" ||
                find "${1%/*}"/openmpi* \( -name 'mca_io_*.so' -o -name 'mca_fs_*.so' \) 2>/dev/null
        } | tr '\n' '\0' | xargs -0 grep -a -o -h \
            'ADIOI\{0,1\}_[A-Z0-9]*_\|mca_fs_[a-z0-9]*_component\|mca_io_[a-z0-9]*_component' \
            2>/dev/null | sort -u | tr '\n' ' ')
    fi
    if [ -n "$io" ]; then fact io "${io% }"; else absent mpi.io no-drivers; fi
}

mpi() { # LIBRARIES...
    section mpi
    for library; do
        case ${library##*/} in libmpi.so* | libmpich.so* | libmpi_*.so*) ;; *) continue ;; esac
        case ${library##*/} in libmpi_cxx* | libmpi_usempi* | libmpi_mpifh* | libmpifort*) continue ;; esac
        fact library "$library"
        # Libraries derived from MPICH also contain its name, so that they are tested first.
        if holds 'Intel(R) MPI Library' "$library"; then fact family intel
        elif holds MVAPICH "$library"; then fact family mvapich
        elif holds 'Open MPI' "$library"; then fact family openmpi
        elif holds MPICH "$library"; then fact family mpich
        else absent mpi.family no-family; fi
        files_io "$library"
        prefix=${library%/*}
        while [ -n "$prefix" ]; do
            prefix=${prefix%/*}
            [ -x "$prefix/bin/mpirun" ] || continue
            fact mpirun "$prefix/bin/mpirun"
            # Intel's mpirun searches its parts in PATH.
            PATH=$prefix/bin:$PATH "$prefix/bin/mpirun" --version 2>&1 </dev/null |
                sed -n 's/^\(.*[0-9]\.[0-9].*\)/| says: \1/p'
            return
        done
        absent mpi.mpirun no-mpirun
        return
    done
    absent mpi no-mpi
}

probe() { # NAME
    printf 'proofmark-probe 1 program\n'
    section program
    fact name "${1##*/}"
    path=$(command -v -- "$1") && path=$(readlink -f -- "$path")
    if [ -z "$path" ] || [ ! -f "$path" ] || [ ! -x "$path" ]; then
        absent program no-program "$1"
        return
    fi
    fact path "$path"
    section libraries
    set --
    listed=$(ldd "$path" 2>&1)
    case $listed in
    *'not a dynamic'* | *'statically linked'*) absent libraries no-libraries ;;
    *'not found'*'ldd'* | *'ldd: not found'*) absent libraries no-tools ldd ;;
    *)
        while read -r line; do # SONAME => FILE (ADDRESS), or FILE (ADDRESS); a FILE may contain blanks
            soname=${line%% => *}
            file=${line#* => }
            file=${file% (0x*}
            case $line in
            /*) soname=${file##*/} ;;
            *' => not found'*) absent "libraries.$soname" not-found; continue ;;
            *' => '*) ;;
            *) continue ;;
            esac
            file=$(readlink -f -- "$file")
            fact "$soname" "$file"
            set -- "$@" "$file"
        done <<END
$listed
END
        ;;
    esac
    hashes "$path" "$@"
    packages "$path" "$@"
    blas "$path" "$@"
    mpi "$@"
}

idle=/bin/true
[ -x "$idle" ] || idle=/usr/bin/true
for name; do
    probe "$name"
    printf '=== end\n'
done
