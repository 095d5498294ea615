"""Checks that a step wrote its files in the intended folder, file system and size.

``scratch.json`` has what the script of the step saw in the scratch folder before it removed it. A
program that writes a relative name, or a scratch that is not mounted, measures another disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from proofmark.common.json_text import parse_json
from proofmark.common.message import NOTHING, Message
from proofmark.common.text import one_line, size
from proofmark.plan.step import Step, WrittenFiles
from proofmark.runs.binding_file import UNREADABLE, damage
from proofmark.runs.run_files import StepFiles
from proofmark.site.mount_source import may_be_same, same_type
from proofmark.site.node.parts import MountedFileSystem, mount_text
from proofmark.site.partition import Partition
from proofmark.site.storage import FileSystem


@dataclass(frozen=True)
class ScratchFiles:
    """The files of an execution in its scratch folder.

    Attributes:
        folder: the scratch folder, as the script names it.
        real: the folder of the largest file, without symbolic links; that of the scratch folder if
            there is no file.
        mount: the mount of `real` while the program ran; its texts are empty if no mount contains
            it, as in a chroot whose ``/`` is no mount point.
        bytes: the sizes of the files together, in bytes.
        files: their number.
        most: the number of files at which the script stopped to count.
    """

    folder: str
    real: str
    mount: MountedFileSystem
    bytes: int
    files: int
    most: int


def read_scratch_files(content: bytes) -> ScratchFiles:
    """Return what ``scratch.json`` states.

    Raises:
        `UNREADABLE`: `content` is damaged.
    """
    entry = parse_json(content)
    # The script writes each byte of an unusual text as one character.
    words = {
        key: str(entry[key]).encode("latin-1").decode("utf-8", "replace")
        for key in ("scratch", "real", "kind", "source", "target")
    }
    mount = MountedFileSystem(
        source=words["source"], target=words["target"], kind=words["kind"], options=""
    )
    numbers = int(entry["bytes"]), int(entry["files"]), int(entry["most"])
    return ScratchFiles(words["scratch"], words["real"], mount, *numbers)


def scratch_error(
    step: Step, content: bytes, partition: Partition, recorded: Sequence[MountedFileSystem]
) -> Message:
    """Return why the files of an execution are not those that `step` must write, or `NOTHING`.

    Args:
        step: the step.
        content: ``scratch.json`` of the execution.
        partition: the partition; it names the intended file system.
        recorded: the mounts that the node reported before the job; empty if it did not.
    """
    if step.writes is None:
        return NOTHING
    if not content:
        return Message("scratch-unknown", file=StepFiles.scratch_files.path)
    try:
        seen = read_scratch_files(content)
    except UNREADABLE as error:
        return damage(StepFiles.scratch_files.path, error)
    planned = _planned(step, partition)
    if not PurePosixPath(seen.folder).is_relative_to(planned.path):
        return Message("scratch-elsewhere", found=one_line(seen.folder), planned=planned.path)
    if not seen.files:
        return Message("scratch-empty", folder=seen.folder)
    return _other_mount(planned, seen, partition, recorded) or _too_small(step.writes, seen)


def _planned(step: Step, partition: Partition) -> FileSystem:
    scratch = partition.scratch
    default = FileSystem(
        name="scratch", path=scratch.path, type=scratch.type, source=scratch.source
    )
    further = {each.name: each for each in partition.file_systems}
    return further.get(step.file_system, default)


def _other_mount(
    planned: FileSystem,
    seen: ScratchFiles,
    partition: Partition,
    recorded: Iterable[MountedFileSystem],
) -> Message:
    found = mount_text(seen.mount.kind, seen.mount.source)
    wrote = {"path": planned.path, "found": found}
    named = planned.source in (None, seen.mount.source)
    if (planned.type and not same_type(seen.mount.kind, planned.type)) or not (
        named or may_be_same(seen.mount.source, planned.source or "")
    ):
        expected = " ".join(filter(None, (planned.type, planned.source)))
        return Message("scratch-mount", planned=expected, **wrote)
    if partition.scratch.off_root and planned.name == "scratch" and seen.mount.target in ("", "/"):
        return Message("scratch-mount-root", **wrote)
    before = mount_of(planned.path, recorded)
    # An emulated node reports the mounts of the node that it emulates.
    if (planned.source and named) or partition.origin != "measured" or before is None:
        return NOTHING
    if (before.kind, before.source) != (seen.mount.kind, seen.mount.source):
        reported = {"before": f"{before.kind} ({before.source})", **wrote}
        if PurePosixPath(planned.path) in PurePosixPath(seen.real).parents:
            return Message("scratch-mount-changed", **reported)
        return Message("scratch-link-changed", real=seen.real, **reported)
    for other in partition.file_systems:
        if other.name != planned.name and mount_of(other.path, recorded) == before:
            return Message("scratch-same", name=planned.name, other=other.name, found=found)
    return NOTHING


def _too_small(least: WrittenFiles, seen: ScratchFiles) -> Message:
    if seen.files >= seen.most:  # the script counted no further
        return NOTHING
    where = seen.folder
    if seen.files < least.files:
        return Message("scratch-files", found=seen.files, least=least.files, folder=where)
    if seen.bytes < least.bytes:
        found = f"{size(seen.bytes)} ({seen.bytes} bytes)"
        return Message("scratch-bytes", folder=where, found=found, least=least.bytes)
    return NOTHING


def mount_of(path: str, mounts: Iterable[MountedFileSystem]) -> MountedFileSystem | None:
    """Return the mount of `path`: the deepest one, and the last of several at the same place."""
    above = [each for each in mounts if f"{path}/".startswith(f"{each.target.rstrip('/')}/")]
    return max(reversed(above), key=lambda each: len(each.target.rstrip("/")), default=None)
