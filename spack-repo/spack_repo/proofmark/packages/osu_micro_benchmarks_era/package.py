"""OSU micro-benchmarks 3.x, the series of the paper on the Tachyon networks.

The builtin recipe begins with 5.3. The paper used a modified version that was never published. No
checksum of 3.9 is known, so Spack refuses it until the site states that of its copy:
``osu-micro-benchmarks-era sha256=…``.
"""

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage
from spack_repo.proofmark.site_copy import SiteCopy

from spack.package import *


class OsuMicroBenchmarksEra(SiteCopy, AutotoolsPackage):
    """OMB 3.9: point-to-point, multi-pair and collective tests."""

    homepage = "https://mvapich.cse.ohio-state.edu/benchmarks/"

    version(
        "3.9",
        url="https://mvapich.cse.ohio-state.edu/download/mvapich/osu-micro-benchmarks-3.9.tar.gz",
    )

    depends_on("c", type="build")
    depends_on("mpi")

    def configure_args(self):
        return [f"CC={self.spec['mpi'].mpicc}"]
