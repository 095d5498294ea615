"""NPB with BT-IO.

The builtin recipe is not enough for a parallel I/O acceptance:

- it has no way to build the I/O variants of BT (``full``, ``simple``, ``fortran``, ``epio``);
- it compiles the programs one after the other, because all of them share the same object files.
  Here each program has its own copy of the source, so that they are compiled at the same time;
- it searches libraries and headers of the MPI below its prefix. The MPI of a distribution has them
  elsewhere. Here only the wrappers of the MPI name them.
"""

import os
import shutil

from spack_repo.builtin.packages.npb.package import Npb as BuiltinNpb

from spack.package import *

PROGRAMS = {  # I/O variant: how the name of its program ends
    "full": "mpi_io_full",
    "simple": "mpi_io_simple",
    "fortran": "fortran_io",
    "epio": "ep_io",
}


class Npb(BuiltinNpb):
    """The NAS Parallel Benchmarks with the parallel I/O variants of BT."""

    maintainers("proofmark")
    # Terms of its own, at the head of each source file.
    license("LicenseRef-NPB")

    variant(
        "btio",
        values=any_combination_of(*PROGRAMS),
        description="Parallel I/O variants of BT",
    )
    variant("plain", default=True, description="BT without I/O")
    # It replaces the list of the builtin recipe, which only the 3.3 series reads.
    variant("nprocs", default="any", values=("any",), description="Process counts")
    for subtype in PROGRAMS:
        for implementation in ("serial", "openmp"):
            conflicts(f"btio={subtype}", when=f"implementation={implementation}")

    conflicts("~plain", when="btio=none", msg="no variant of BT is left")
    conflicts("@:3.3", when="implementation=mpi", msg="3.3 has a program for each process count")

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
        """One line a program: name, class and I/O variant."""
        subtypes = [v for v in spec.variants["btio"].value if v != "none"]
        lines = []
        for name in spec.variants["names"].value:
            for size in spec.variants["classes"].value:
                if name == "is" and size == "F":
                    continue
                kinds = [""]
                if name == "bt":
                    kinds = [*(kinds if spec.satisfies("+plain") else []), *subtypes]
                lines += [" ".join(filter(None, (name, size, subtype))) for subtype in kinds]
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
        name, size, *subtypes = line.split()
        return ".".join([name, size, "x", *(PROGRAMS[subtype] for subtype in subtypes)])
