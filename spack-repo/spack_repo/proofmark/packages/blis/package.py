"""BLIS with the kernels of the Xeon Phi.

The builtin recipe takes the newest of the configurations that it knows, and for a ``mic_knl``
target that is ``haswell``: it runs, with half the vector width and none of the chip's own kernels.
"""

from spack_repo.builtin.packages.blis.package import Blis as BuiltinBlis

from spack.package import *


class Blis(BuiltinBlis):
    """BLIS, with its ``knl`` configuration where the target is a Knights Landing."""

    maintainers("proofmark")

    conflicts("%c=gcc@15:", when="target=mic_knl", msg="gcc 15 removed the Xeon Phi")

    def edit(self, spec, prefix):
        if spec.satisfies("target=mic_knl"):
            configure(f"--prefix={prefix}", *self.configure_args(), "knl")
        else:
            super().edit(spec, prefix)
