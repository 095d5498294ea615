"""Intel MPI Benchmarks 3.2, the version of the paper on collectives.

The builtin recipe begins with 2019: 3.2 was an archive behind a licence page. Its file is put into
a mirror by hand. No checksum of it was published, so Spack refuses it until the site states that of
its copy: ``imb-era sha256=…``.
"""

import os

from spack_repo.builtin.build_systems.makefile import MakefilePackage
from spack_repo.proofmark.site_copy import SiteCopy

from spack.package import *


class ImbEra(SiteCopy, MakefilePackage):
    """IMB 3.2: MPI1, EXT and IO."""

    homepage = "https://github.com/intel/mpi-benchmarks"
    manual_download = True

    version("3.2", url="file://./IMB_3.2.tgz")

    depends_on("c", type="build")
    depends_on("mpi")

    build_directory = "src"
    programs = ("IMB-MPI1", "IMB-EXT", "IMB-IO")

    def build(self, spec, prefix):
        with working_dir(self.build_directory):
            for program in self.programs:
                make("-f", "Makefile.base", program[4:], f"CC={spec['mpi'].mpicc}", "OPTFLAGS=-O3")

    def install(self, spec, prefix):
        mkdirp(prefix.bin)
        for program in self.programs:
            install(os.path.join(self.build_directory, program), prefix.bin)
