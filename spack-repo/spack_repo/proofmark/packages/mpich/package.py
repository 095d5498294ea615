"""MPICH whose ROMIO has the drivers for parallel file systems that are asked for.

The builtin recipe gives ``configure`` no ``--with-file-system``: ROMIO then has ``ufs``, ``nfs``
and ``testfs``, and on Lustre and GPFS it writes by ``ufs``, without stripes and tokens. Here a
variant chooses, with the name and the values of that of Open MPI.

``gpfs`` builds without the headers of IBM: a file is on GPFS by the number of its file system.
Where ``gpfs.h`` exists, ``configure`` also takes ``gpfs_fcntl``. ``lustre`` ends without
``linux/lustre/lustre_user.h``, which no Debian package has. It is the interface of the kernel, it
needs no library, and newer clients keep it. So three headers of a release of Lustre are resources,
pinned by checksum. Spack's compiler gets their folder: MPICH passes no ``MPICHLIB_CPPFLAGS`` on to
ROMIO, and puts the flags of ``CFLAGS`` into ``mpicc``.

The statements of the class are written for the builtin recipe: there the argument goes into the
list that ``configure_args`` returns.
"""

from spack_repo.builtin.packages.mpich.package import Mpich as BuiltinMpich

from spack.package import *

LUSTRE = "https://raw.githubusercontent.com/lustre/lustre-release/v2_15_8/lustre/include/uapi"
INCLUDE = "src/mpi/romio/include"
HEADERS = {
    "lustre_fiemap.h": "04deaf489914b5493701b0d2f352c2db888ab2a842764a131368f6cb1af7c432",
    "lustre_user.h": "c80861381b588abb1beb56e814e76577cc313e3a16d0fc66cc4768f01f8da9d3",
    "lustre_ver.h": "829ee00d851c1dbcb8456ea75bf741fdf259315c0c4eb0c23619cd103f2dcf9f",
}


class Mpich(BuiltinMpich):
    """MPICH with a choice of ROMIO's drivers of files."""

    maintainers("proofmark")

    variant(
        "romio-filesystem",
        description="Drivers of files of ROMIO",
        values=any_combination_of(
            "daos", "gpfs", "ime", "lustre", "nfs", "panfs", "pvfs2", "quobytefs", "ufs", "xfs"
        ),
        when="+romio",
    )

    for header, checksum in HEADERS.items():
        resource(
            name=header,
            url=f"{LUSTRE}/linux/lustre/{header}",
            sha256=checksum,
            expand=False,
            destination=f"{INCLUDE}/linux/lustre",
            placement={header: header},
            when="romio-filesystem=lustre",
        )

    def setup_build_environment(self, env):
        super().setup_build_environment(env)
        if self.spec.satisfies("romio-filesystem=lustre"):
            env.append_path("SPACK_INCLUDE_DIRS", join_path(self.stage.source_path, INCLUDE))

    def configure_args(self):
        drivers = self.spec.variants.get("romio-filesystem")
        args = super().configure_args()
        if drivers and "none" not in drivers.value:
            args.append(f"--with-file-system={'+'.join(drivers.value)}")
        return args
