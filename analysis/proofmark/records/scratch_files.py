"""Checks that a step wrote its files in the intended folder, file system and size.

``scratch.json`` has what the script of the step saw in the scratch folder before it removed it. A
program that writes a relative name, or a scratch that is not mounted, measures another disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from proofmark.common.files import read_bytes
from proofmark.common.json_text import parse_json
from proofmark.common.limits import MAX_SMALL_BYTES
from proofmark.common.text import one_line, size
from proofmark.plan.step import Step, WrittenFiles
from proofmark.runs.binding_file import UNREADABLE, damage
from proofmark.site.node.parts import Mount, mount_text
from proofmark.site.partition import Partition
from proofmark.site.storage import FileSystem

FILE = "scratch.json"


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
    mount: Mount
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
    mount = Mount(source=words["source"], target=words["target"], kind=words["kind"], options="")
    numbers = int(entry["bytes"]), int(entry["files"]), int(entry["most"])
    return ScratchFiles(words["scratch"], words["real"], mount, *numbers)


def scratch_content(folder: str) -> bytes:
    """Return ``scratch.json`` of the execution in `folder`; empty if it is missing or no file."""
    try:
        return read_bytes(f"{folder}/{FILE}", MAX_SMALL_BYTES)
    except OSError:
        return b""


def scratch_error(
    step: Step, content: bytes, partition: Partition, recorded: Sequence[Mount]
) -> str:
    """Return why the files of an execution are not those that `step` must write, or "".

    Args:
        step: the step.
        content: ``scratch.json`` of the execution.
        partition: the partition; it names the intended file system.
        recorded: the mounts that the node reported before the job; empty if it did not.
    """
    if step.writes is None:
        return ""
    if not content:
        return f"{FILE} is missing: it is not known where the program wrote"
    try:
        seen = read_scratch_files(content)
    except UNREADABLE as error:
        return damage(FILE, error)
    planned = _planned(step, partition)
    if not PurePosixPath(seen.folder).is_relative_to(planned.path):
        return f"the scratch folder was {one_line(seen.folder)}, planned in {planned.path}"
    if not seen.files:
        return f"no file appeared in the scratch folder {seen.folder}: the program wrote elsewhere"
    return _other_mount(planned, seen, partition, recorded) or _too_small(step.writes, seen) or ""


def _planned(step: Step, partition: Partition) -> FileSystem:
    scratch = partition.scratch
    default = FileSystem(
        name="scratch", path=scratch.path, type=scratch.type, source=scratch.source
    )
    further = {each.name: each for each in partition.file_systems}
    return further.get(step.file_system, default)


def _other_mount(
    planned: FileSystem, seen: ScratchFiles, partition: Partition, recorded: Iterable[Mount]
) -> str | None:
    found = mount_text(seen.mount.kind, seen.mount.source)
    wrote = f"the files of {planned.path} were on {found}"
    if planned.type not in (None, seen.mount.kind) or planned.source not in (
        None,
        seen.mount.source,
    ):
        expected = " ".join(filter(None, (planned.type, planned.source)))
        return f"{wrote}, planned on {expected}"
    if partition.scratch.off_root and planned.name == "scratch" and seen.mount.target in ("", "/"):
        return f"{wrote}, planned on another than /"
    before = mount_of(planned.path, recorded)
    # An emulated node reports the mounts of the node that it emulates.
    if planned.source is not None or partition.origin != "measured" or before is None:
        return None
    if (before.kind, before.source) != (seen.mount.kind, seen.mount.source):
        link = "" if seen.real.startswith(f"{planned.path}/") else f", below {seen.real}"
        return (
            f"{wrote}{link}, but the node reported {before.kind} ({before.source}) there before "
            "the job; type and source of the file system in the inventory state the intended one"
        )
    for other in partition.file_systems:
        if other.name != planned.name and mount_of(other.path, recorded) == before:
            return (
                f"the file systems {planned.name} and {other.name} are the same {found}; "
                "source in the inventory allows this"
            )
    return None


def _too_small(least: WrittenFiles, seen: ScratchFiles) -> str | None:
    if seen.files >= seen.most:  # the script counted no further
        return None
    if seen.files < least.files:
        return f"{seen.files} of at least {least.files} files appeared in {seen.folder}"
    if seen.bytes < least.bytes:
        found = f"{size(seen.bytes)} ({seen.bytes} bytes)"
        return f"the files in {seen.folder} reached {found} of at least {least.bytes} bytes"
    return None


def mount_of(path: str, mounts: Iterable[Mount]) -> Mount | None:
    """Return the mount of `path`: the deepest one, and the last of several at the same place."""
    above = [each for each in mounts if f"{path}/".startswith(f"{each.target.rstrip('/')}/")]
    return max(reversed(above), key=lambda each: len(each.target.rstrip("/")), default=None)
