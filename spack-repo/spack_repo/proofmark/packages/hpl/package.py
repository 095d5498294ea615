"""HPL whose threads and whose BLAS agree, compiled by the wrapper of its MPI.

With the builtin recipe ``hpl +openmp`` takes a BLAS without threads (one busy core a rank, and
nothing says so), and ``hpl ~openmp`` takes a threaded one (ranks x threads on the same cores).
Here one follows the other. The environment of each architecture says which of the two it wants.

The builtin recipe compiles with the plain compiler and the folder ``include`` of the MPI. The MPI
of Debian or RHEL has its headers elsewhere. Its wrapper knows where.

The three statements of the class are written for the builtin recipe: there the two requirements
go beside ``depends_on("blas")``, and ``CC`` into the list that ``configure_args`` returns.
"""

from spack_repo.builtin.packages.hpl.package import Hpl as BuiltinHpl

from spack.package import *


class Hpl(BuiltinHpl):
    """High Performance Linpack over a BLAS of the same threading."""

    maintainers("proofmark")
    license("BSD-4-Clause")

    for library in ("openblas", "blis"):
        depends_on(f"{library} threads=openmp", when=f"+openmp ^[virtuals=blas] {library}")
        depends_on(f"{library} threads=none", when=f"~openmp ^[virtuals=blas] {library}")

    @when("@2.3:")
    def configure_args(self):
        return [*super().configure_args(), f"CC={self.spec['mpi'].mpicc}"]
