"""NPB with BT-IO.

The builtin recipe is not enough for a parallel I/O acceptance:

- it has no way to build the I/O variants of BT (``full``, ``simple``, ``fortran``, ``epio``);
- the 3.3 series compiles one program per process count, and BT takes square counts only, but the
  builtin list is the powers of two up to 128. The paper ran up to 1,024.
"""

import os

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
        description="Parallel I/O variants of BT that are built beside the plain one",
    )
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

    def edit(self, spec, prefix):
        super().edit(spec, prefix)
        if spec.satisfies("implementation=mpi"):
            suite = os.path.join(self.build_directory, "config", "suite.def")
            with open(suite, "w") as stream:
                stream.write("".join(line + "\n" for line in self.suite_lines(spec)))

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
                for subtype in ["", *(subtypes if name == "bt" else [])]:
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
