"""The scratch directory of a partition and measured rates, from a survey. Pure."""

from __future__ import annotations

from proofmark.common.text import one_line
from proofmark.site.machines import CORE_FLOPS
from proofmark.site.node.facts import NodeFacts
from proofmark.site.node.parts import MountedFileSystem
from proofmark.site.survey.entries import Assumed, Fact, Found, Question
from proofmark.site.survey.node_answers import NodeReport, Survey
from proofmark.site.survey.node_tools import RATES, rates

PARALLEL = (
    *("lustre", "gpfs", "beegfs", "wekafs", "panfs", "ceph", "pvfs2"),
    *("fuse.daos", "fuse.juicefs", "fuse.glusterfs"),
    *("nfs4", "nfs"),
)
"""Types of parallel file systems in ``/proc/mounts``, the usual ones first."""
SHARED = ("nfs4", "nfs")
MANY_SERVERS = "remoteports="
"""The option of NFS with several servers: VAST NFS, "Mount parameters". Without it, NFS is not
parallel."""
FOLDER = "proofmark"
"""The folder of the benchmarks on a scratch file system."""
LOCAL_SCRATCH = "/var/tmp/proofmark-{uid}"


def scratch_found(survey: Survey, facts: NodeFacts | None, report: NodeReport | None) -> Found:
    """Return the scratch directory of a partition: on a parallel file system, if one is mounted.

    Args:
        survey: what was found of the site.
        report: what one of the nodes reported; None if none was read.
    """
    if facts is None or report is None:
        return {"scratch.path": Question("Which directory do the benchmarks write to?")}
    if parallel := _parallel(facts):
        chosen, *others = parallel
        source = f"/proc/mounts of {report.node}"
        found: Found = {
            "scratch.path": Fact(f"{chosen.target.rstrip('/')}/{FOLDER}", source),
            "scratch.type": Fact(chosen.kind, source),
            "scratch.source": Fact(chosen.source, source),
            "scratch.off_root": Fact(True, "a file system of its own"),
        }
        if others:
            found["scratch.others"] = Question(
                f"scratch: is {_mount(chosen)} the one to accept? Mounted too: "
                f"{', '.join(map(_mount, others))}."
            )
        return found
    if survey.local:
        reason = f"no parallel file system is mounted on {report.node}"
        return {"scratch.path": Assumed(LOCAL_SCRATCH, reason)}
    shared = ", ".join(_mount(each) for each in facts.mounts if each.kind in SHARED) or "none"
    return {
        "scratch.path": Question(
            "Which directory, that all nodes share, do the benchmarks write to? No parallel file "
            f"system is mounted on {report.node}. NFS there: {shared}."
        )
    }


def rates_found(report: NodeReport | None, facts: NodeFacts | None) -> Found:
    """Return the rates that the node measured, by which plans estimate times."""
    if report is None or facts is None:
        return {}
    found: Found = {}
    measured = rates(report.tools.get(RATES, ()))
    if flops := measured.get("flops"):
        source = f"multiply-add on all processors of {report.node}, measured by init"
        found[f"facts.{CORE_FLOPS}"] = Fact(int(float(f"{flops / facts.cores:.3g}")), source)
    if write := measured.get("write"):
        source = f"256 MiB written into {scratch_folder(facts)} of {report.node} by init"
        found["scratch.client_bytes_per_s"] = Fact(int(float(f"{write:.3g}")), source)
    return found


def scratch_folder(facts: NodeFacts | None) -> str:
    """Return the mount point of the scratch file system, or a folder of the node."""
    mounts = _parallel(facts) if facts else []
    return mounts[0].target if mounts else "/var/tmp"


def _parallel(facts: NodeFacts) -> list[MountedFileSystem]:
    """Return the parallel file systems of a node, the one for scratch first."""
    mounts = (each for each in facts.mounts if each.target.startswith("/"))
    return sorted(filter(_is_parallel, mounts), key=_preference)


def _is_parallel(mount: MountedFileSystem) -> bool:
    if mount.kind in SHARED:
        return any(each.startswith(MANY_SERVERS) for each in mount.options.split(","))
    return mount.kind in PARALLEL


def _preference(mount: MountedFileSystem) -> tuple[bool, bool, int, str]:
    """Sort scratch file systems first, and the homes of users last."""
    words = mount.target.lower()
    scratch = any(word in words for word in ("scratch", "work", "tmp"))
    home = any(word in words for word in ("home", "apps", "opt", "sw"))
    return not scratch, home, PARALLEL.index(mount.kind), mount.target


def _mount(mount: MountedFileSystem) -> str:
    return one_line(f"{mount.target} ({mount.kind}, {mount.source})")
