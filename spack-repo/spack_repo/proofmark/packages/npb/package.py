"""NPB with BT-IO.

The builtin recipe is not enough for a parallel I/O acceptance:

- it has no way to build the I/O variants of BT (``full``, ``simple``, ``fortran``, ``epio``);
- the 3.3 series compiles one program per process count, and BT takes square counts only, but the
  builtin list is the powers of two up to 128. The paper ran up to 1,024;
- it compiles the programs one after the other, because all of them share the same object files.
  Here each program has its own copy of the source, so that they are compiled at the same time;
- it searches libraries and headers of the MPI below its prefix. The MPI of a distribution has them
  elsewhere. Here only the wrappers of the MPI name them.
"""

import os
import shutil

from spack_repo.builtin.packages.npb.package import Npb as BuiltinNpb

from spack.package import *

SQUARES = tuple(n * n for n in range(1, 33))
POWERS_OF_TWO = tuple(2**n for n in range(11))
COUNTS = tuple(str(n) for n in sorted({*SQUARES, *POWERS_OF_TWO}))
SQUARE_ONLY = ("bt", "sp")
PROGRAMS = {  # I/O variant: how the name of its program ends
    "full": "mpi_io_full",
    "simple": "mpi_io_simple",
    "fortran": "fortran_io",
    "epio": "ep_io",
}


class Npb(BuiltinNpb):
    """The NAS Parallel Benchmarks with the parallel I/O variants of BT."""

    variant(
        "btio",
        values=any_combination_of(*PROGRAMS),
        description="Parallel I/O variants of BT",
    )
    variant("plain", default=True, description="BT without I/O")
    variant(
        "nprocs",
        default=",".join(COUNTS),
        # Spelt out: Spack does not split a default where the values are a predicate.
        values=COUNTS,
        multi=True,
        description="Process counts (3.3 series: one program each; 3.4 takes them at run time)",
    )
    for subtype in PROGRAMS:
        for implementation in ("serial", "openmp"):
            conflicts(f"btio={subtype}", when=f"implementation={implementation}")

    conflicts("~plain", when="btio=none", msg="no variant of BT is left")

    parallel = True

    def edit(self, spec, prefix):
        if not spec.satisfies("implementation=mpi"):
            super().edit(spec, prefix)
            return
        fortran_flags = "-O3"
        if spec.satisfies("%gcc@10:"):
            fortran_flags += " -fallow-argument-mismatch"
        mpi = spec["mpi"]
        definitions = {
            "MPIFC": mpi.mpifc,
            "MPIF77": mpi.mpif77,
            "FLINK": mpi.mpif77,
            "FFLAGS": fortran_flags,
            "FLINKFLAGS": "-O3",
            "MPICC": mpi.mpicc,
            "CLINK": mpi.mpicc,
            "CFLAGS": "-O3",
            "CLINKFLAGS": "-O3",
            "CC": f"{spack_cc} -g",
            "BINDIR": prefix.bin,
            "RAND": "randi8",
        }
        with open(os.path.join(self.build_directory, "config", "make.def"), "w") as stream:
            stream.writelines(f"{name} = {value}\n" for name, value in definitions.items())

    def install(self, spec, prefix):
        if not spec.satisfies("implementation=mpi"):
            super().install(spec, prefix)
            return
        mkdirp(prefix.bin)
        copies = []
        for number, line in enumerate(self.suite_lines(spec)):
            copy = f"program-{number}"
            copies.append(copy)
            shutil.copytree(self.build_directory, copy)
            with open(os.path.join(copy, "config", "suite.def"), "w") as stream:
                stream.write(line + "\n")
        with open("programs.mk", "w") as stream:
            # Within one copy the order of the commands counts: no job server for it.
            names = " ".join(copies)
            stream.write(f".PHONY: all {names}\nall: {names}\n")
            stream.write(f"{names}:\n\tMAKEFLAGS= $(MAKE) -C $@ suite\n")
        make("-f", "programs.mk", "all")

    def suite_lines(self, spec):
        """One line a program: name, class, process count (3.3 only) and I/O variant."""
        per_count = spec.satisfies("@:3.3")
        subtypes = [v for v in spec.variants["btio"].value if v != "none"]
        lines = []
        for name in spec.variants["names"].value:
            counts = SQUARES if name in SQUARE_ONLY else POWERS_OF_TWO
            wanted = [int(n) for n in spec.variants["nprocs"].value]
            columns = [str(n) for n in sorted(wanted) if n in counts] if per_count else [""]
            for size in spec.variants["classes"].value:
                if name == "is" and (size == "F" or (size == "E" and per_count)):
                    continue
                kinds = [""]
                if name == "bt":
                    kinds = [*(kinds if spec.satisfies("+plain") else []), *subtypes]
                for subtype in kinds:
                    lines += [
                        " ".join(filter(None, (name, size, count, subtype))) for count in columns
                    ]
        return lines

    @run_after("install")
    def check_programs(self):
        """`make suite` goes on after a failed program and succeeds all the same: count them."""
        if not self.spec.satisfies("implementation=mpi"):
            return
        wanted = {self.program_name(line) for line in self.suite_lines(self.spec)}
        missing = sorted(wanted - set(os.listdir(self.prefix.bin)))
        if missing:
            raise InstallError(f"{len(missing)} programs were not built: {', '.join(missing)}")

    def program_name(self, line):
        """Name of the program that a line of suite.def asks for: bt.A.x.mpi_io_full."""
        name, size, *rest = line.split()
        count = rest.pop(0) if rest and rest[0].isdigit() else "x"
        return ".".join([name, size, count, *(PROGRAMS[subtype] for subtype in rest)])
