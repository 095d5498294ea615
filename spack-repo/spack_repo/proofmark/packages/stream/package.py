"""STREAM 5.10, built to measure the memory and not the compiler's defaults.

The builtin recipe follows the head of a git copy, without a commit, and compiles at ``-O2``. Here:

- the source is the author's own file, pinned by checksum (a git commit would pin a copy of it);
- ``-O3`` and the target's full vector width; ``-mcmodel=medium``, without which arrays above 2 GiB
  do not link;
- streaming stores. Without them Scale, Add and Triad read every line that they are about to
  overwrite, a third to a quarter of the traffic, which STREAM does not count. gcc has no flag for
  them, but its prefetch pass turns a store into a streaming one where nothing of it will be used
  again from cache and the vectoriser aligned it. Both are said by parameters; the source stays as
  it is. gcc 12 then does so for Scale and Triad, and glibc's memcpy for Copy; Add keeps ordinary
  stores;
- what came out is read back from the program by ``objdump``; a build without them fails.
"""

import os
import re

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *

OPENMP = {
    "gcc": "-fopenmp",
    "llvm": "-fopenmp",
    "intel-oneapi-compilers": "-qopenmp",
    "aocc": "-fopenmp",
}

# -mtune=intel is a tuning that makes gcc's vectoriser align its stores, on every x86 target. A
# cache of size 0 is the statement "nothing that is written here will be read again from cache".
STREAMING = {
    "gcc": (
        "-fprefetch-loop-arrays",
        "--param=l2-cache-size=0",
        "--param=simultaneous-prefetches=64",
        "--param=min-insn-to-prefetch-ratio=0",
        "--param=prefetch-min-insn-to-mem-ratio=0",
        "-mtune=intel",
    ),
    "intel-oneapi-compilers": ("-qopt-streaming-stores=always",),
    "aocc": ("-fnt-store",),
}
FULL_WIDTH = {
    "gcc": "-mprefer-vector-width=512",
    "llvm": "-mprefer-vector-width=512",
    "intel-oneapi-compilers": "-qopt-zmm-usage=high",
    "aocc": "-mprefer-vector-width=512",
}


def is_count(text):
    """Whether `text` is a positive whole number."""
    return text.isdigit() and int(text) > 0


class Stream(Package):
    """Sustainable memory bandwidth: Copy, Scale, Add and Triad."""

    homepage = "https://www.cs.virginia.edu/stream/"
    url = "https://www.cs.virginia.edu/stream/FTP/Code/stream.c"

    maintainers("proofmark")
    # Terms of its own, at the head of the source file.
    license("LicenseRef-STREAM")

    version(
        "5.10",
        sha256="a52bae5e175bea3f7832112af9c085adab47117f7d2ce219165379849231692b",
        expand=False,
    )

    variant("openmp", default=True, description="Threads")
    variant("stream_array_size", default="64000000", values=is_count, description="Elements")
    variant("ntimes", default="10", values=is_count, description="Repeats; the best is reported")
    variant("nontemporal", default=True, description="Streaming stores by the compiler, checked")

    depends_on("c", type="build")

    for family in ("ppc64le:", "ppc64:", "aarch64:"):
        conflicts("+nontemporal", when=f"target={family}", msg="no flag gives them here")
    conflicts("+nontemporal", when="%c=llvm", msg="clang has no flag for streaming stores")

    def flags(self):
        """Compiler flags, complete: what is not here comes from the target alone."""
        spec, compiler = self.spec, self.spec["c"].name
        flags = ["-O3"]
        if spec.satisfies("+openmp"):
            flags.append(OPENMP[compiler])
        if spec.target.family.name in ("x86_64", "ppc64le"):
            flags.append("-mcmodel=medium")
        if "avx512f" in spec.target:
            flags.append(FULL_WIDTH[compiler])
        if spec.satisfies("+nontemporal"):
            flags += STREAMING[compiler]
        for macro in ("stream_array_size", "ntimes"):
            flags.append(f"-D{macro.upper()}={spec.variants[macro].value}")
        return flags

    def install(self, spec, prefix):
        mkdirp(prefix.bin)
        Executable(spack_cc)(*self.flags(), "stream.c", "-o", os.path.join(prefix.bin, "stream"))

    @run_after("install")
    def check_instructions(self):
        """Read the instructions back: vector width, streaming stores, nothing the target lacks."""
        if self.spec.target.family.name != "x86_64":
            return
        program = os.path.join(self.prefix.bin, "stream")
        listing = which("objdump", required=True)("-d", "--no-show-raw-insn", program, output=str)
        widths = {"avx512f": "zmm", "avx": "ymm"}
        width = next((widths[has] for has in widths if has in self.spec.target), "xmm")
        if f"%{width}" not in listing:
            raise InstallError(f"no %{width} register in stream: not the full vector width")
        streaming = len(re.findall(rf"\bv?movntp[ds]\s+%{width}", listing))
        if self.spec.satisfies("+nontemporal") and not streaming:
            raise InstallError(f"no streaming store of %{width} in stream")
        tty.info(f"stream: %{width}, {streaming} streaming stores")
