"""The evidence of a run: sealed archives, from which everything after the run is made.

A run belongs to the user who judges it. Its work folder, in which jobs run, may belong to another
user, who can write every file of it. `seal` reads each file once, copies what it read, and writes
the copy into ``evidence/<n>.tar`` of the run. Nothing that judges, shows or signs reads the files
after that. An archive is never changed: what is new since the archives before is the next one,
which has the digest of the one before it. A sealed measurement that was changed later keeps its
sealed content, and the change is a finding (`Change`).

A script in the work folder must be the one that the run has. The archives have it once, and a
script that differs is a finding, too.
``sha256sum --check SHA256SUMS`` in ``evidence/`` checks the archives without the kit.
"""

from __future__ import annotations

import errno
import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import file_digest, sha256
from pathlib import Path
from typing import BinaryIO

from pydantic import AwareDatetime, Field, ValidationError

from proofmark.common.archive import (
    FACTS,
    Archive,
    ArchiveWriter,
    Chain,
    Change,
    Facts,
    Parts,
    mount,
    mounted,
    read_archive,
)
from proofmark.common.errors import BadInput, bad_input
from proofmark.common.files import (
    make_folder,
    open_regular,
    read_bytes,
    read_regular,
    write_atomic,
)
from proofmark.common.grouping import batched
from proofmark.common.input_limits import (
    MAX_ARCHIVES,
    MAX_DEPTH,
    MAX_EVIDENCE_BYTES,
    MAX_EVIDENCE_FILES,
    MAX_OUTPUT_BYTES,
    MAX_SMALL_BYTES,
)
from proofmark.common.processes import parallel_map
from proofmark.common.rights import rights_at, this_user
from proofmark.common.shared_models import first_mistake
from proofmark.common.text import size
from proofmark.common.trust import refuse_untrusted, weak_part
from proofmark.runs.identity import Kit, this_kit
from proofmark.runs.nodes import node_files
from proofmark.runs.run import OWN_RUN, Run, Seal, extends, open_run, sealed_run
from proofmark.runs.run_files import (
    TOP_RULES,
    JobFiles,
    RunFiles,
    SealRule,
    StepFiles,
    use_work_folder,
)
from proofmark.runs.state import journals_of, state_lock

SUMS = "SHA256SUMS"
CHECKED = "checked"
"""Another form of it gets another name."""
_ARCHIVE = re.compile(r"([0-9a-f]{64})  (\d{4})\.tar", re.ASCII)


class ArchiveHead(Facts, extra="forbid"):
    """What the last member of an archive states.

    Attributes:
        number: of the archive in its chain; the first one has 1.
        before: the SHA-256 of the archive before it; empty for the first one.
        run_by: the user who started the programs.
    """

    run: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$")
    number: int
    before: str = Field(pattern="^([0-9a-f]{64})?$")
    sealed: AwareDatetime = Field(
        ge=datetime(1970, 1, 1, tzinfo=UTC), lt=datetime(9999, 1, 1, tzinfo=UTC)
    )
    sealed_by: str
    run_by: str
    kit: Kit


@dataclass(frozen=True)
class SealedEvidence:
    """The sealed archives of a run.

    Attributes:
        folder: of the run, or a copy of it.
        digests: the SHA-256 of each archive.
    """

    folder: Path
    heads: Sequence[ArchiveHead] = ()
    digests: Sequence[str] = ()
    chain: Chain = field(default_factory=lambda: Chain(()))

    @property
    def newest(self) -> ArchiveHead:
        """What the newest archive states."""
        return self.heads[-1]

    @property
    def digest(self) -> str:
        """The SHA-256 of the newest archive, which has those of all others in it; or empty."""
        return self.digests[-1] if self.digests else ""

    @property
    def changes(self) -> dict[str, Change]:
        """The sealed files of the run that were changed later, with the kind of the change."""
        found: dict[str, Change] = {}
        for archive in self.chain.archives:
            found |= archive.facts.kept
        return found

    @property
    def next_archive(self) -> Path:
        """The path of the archive that would follow."""
        return _path(self.folder, len(self.heads) + 1)

    def followed_by(self, archive: Archive, head: ArchiveHead, digest: str) -> SealedEvidence:
        """Return this evidence with one more archive, which is read, or was written now.

        Raises:
            BadInput: it is not the next one of this run.
        """
        path, number = self.next_archive, len(self.heads) + 1
        if (head.number, head.before) != (number, self.digest):
            found = f"number {head.number} after {head.before or 'nothing'}"
            accepted = f"number {number} after {self.digest or 'nothing'}"
            raise bad_input(path, "before", found, accepted)
        if self.heads and head.run != self.newest.run:
            accepted = f"{self.newest.run}, as the archives before it: the name of the folder"
            raise bad_input(path, "run", head.run, accepted)
        chain, digests = Chain([*self.chain.archives, archive]), [*self.digests, digest]
        return SealedEvidence(self.folder, [*self.heads, head], digests, chain)

    def refuse_too_large(self, file: BinaryIO) -> None:
        """Refuse the archive in an open file if all are too large or too many with it."""
        numbers = [*(each.file.number for each in self.chain.archives), file.fileno()]
        length = sum(os.fstat(each).st_size for each in numbers)
        if len(numbers) > MAX_ARCHIVES or length > MAX_EVIDENCE_BYTES:
            found = f"{size(length)} in {len(numbers)} archives"
            accepted = f"at most {size(MAX_EVIDENCE_BYTES)} in {MAX_ARCHIVES} archives; a new run"
            raise bad_input(self.next_archive, "", found, accepted)

    @property
    def _place(self) -> Path:
        return RunFiles(self.folder).evidence / self.newest.run

    @contextmanager
    def mounted(self) -> Iterator[Path]:
        """Yield the folder as which the files of the run are read in the block."""
        with mounted(self._place, self.chain):
            yield self._place

    def run(self) -> Run:
        """Return the run as it was sealed. Its files are read from the archives.

        Raises:
            BadInput: its plan is damaged.
        """
        place = self._place
        mount(place, self.chain)
        head = self.newest
        seal = Seal(
            folder=self.folder,
            number=head.number,
            digest=self.digest,
            earlier=self.digests[:-1],
            time=head.sealed,
            by=head.sealed_by,
            run_by=head.run_by,
            changes=self.changes,
        )
        return sealed_run(place, seal)


def _identity(digest: str, file: int) -> tuple[str | int, ...]:
    """Return the digest of an open file, and what differs if it is another one, or was written.

    Only root can set the time of an inode.
    """
    about = os.fstat(file)
    return digest, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


def _checked(folder: Path) -> dict[tuple[str | int, ...], Parts]:
    """Return the parts of the archives that `seal` checked as a whole, by the `_identity` of each.

    They are none if the list cannot be used.
    """
    path = RunFiles(folder).evidence / CHECKED
    try:
        digest, _, content = read_regular(path).partition(b"\n")
    except (BadInput, FileNotFoundError):
        return {}
    if weak_part(path) or digest != sha256(content).hexdigest().encode():
        return {}
    with suppress(TypeError, ValueError):  # another version of the kit has another form
        return {tuple(identity): parts for identity, parts in json.loads(content)}
    return {}


def _note_checked(evidence: SealedEvidence) -> None:
    """Write what `_checked` reads, with its digest before it. It is a cache."""
    archives = zip(evidence.digests, evidence.chain.archives, strict=True)
    content = json.dumps(
        [(_identity(digest, each.file.number), dict(each.parts)) for digest, each in archives]
    )
    path = RunFiles(evidence.folder).evidence / CHECKED
    write_atomic(path, f"{sha256(content.encode()).hexdigest()}\n{content}")


def evidence_files(folder: Path) -> list[Path]:
    """Return the archives of the run in `folder`, the oldest first, and their list."""
    archives = [_path(folder, number) for number in range(1, len(sealed_digests(folder)) + 1)]
    return [*archives, RunFiles(folder).evidence / SUMS]


def read_evidence(folder: Path, *, again: bool = True) -> SealedEvidence | None:
    """Return the evidence of the run in `folder`, or a copy; None if nothing was sealed.

    Args:
        again: whether each archive is checked as a whole although `seal` did so, and its file is
            the same since.

    Raises:
        BadInput: an archive is missing or damaged, or is not the one that was sealed; or another
            user can change one.
    """
    known, digests = SealedEvidence(folder), sealed_digests(folder)  # it refuses before any read
    checked = {} if again else _checked(folder)
    for digest in digests:
        known = _with_next(known, digest, checked)
    return known if known.heads else None


def _with_next(
    known: SealedEvidence, digest: str, checked: Mapping[tuple[str | int, ...], Parts]
) -> SealedEvidence:
    """Return `known` with the next archive.

    Args:
        digest: the SHA-256 that it must have; empty: not known.
        checked: what `_checked` returns.
    """
    path = known.next_archive
    try:
        with open_regular(path) as file:
            known.refuse_too_large(file)
            if parts := checked.get(_identity(digest, file.fileno())):
                archive, computed = read_archive(file, f"{path}", parts), digest
            else:
                with ThreadPoolExecutor(1) as other:  # the digest needs no lock of Python
                    digesting = other.submit(file_digest, file, "sha256")
                    archive = read_archive(file, f"{path}")
                computed = digesting.result().hexdigest()
    except OSError as error:
        raise bad_input(path, "", f"{error.strerror}", "the archive that was sealed") from None
    if computed != (digest or computed):
        raise bad_input(path, "", f"SHA-256 {computed}", f"{digest}, as {SUMS} has it")
    try:
        head = ArchiveHead.model_validate_json(archive.stated)
    except ValidationError as error:
        raise bad_input(path, *first_mistake(error), "a tar that proofmark sealed") from None
    return known.followed_by(archive, head, computed)


def sealed_digests(folder: Path) -> list[str]:
    """Return the digests of the archives in ``evidence/SHA256SUMS``, by their number.

    The newest archive has no line after a kill. `seal` lists it. No archive is older than the list.

    Raises:
        BadInput: the list is damaged or missing, or another user can change it.
    """
    evidence = RunFiles(folder).evidence
    refuse_untrusted(evidence, OWN_RUN)
    path = evidence / SUMS
    newest = max(evidence.glob("[0-9][0-9][0-9][0-9].tar"), default=_path(folder, 0))
    try:  # after the archives: another process may seal one now
        lines = read_regular(path, MAX_SMALL_BYTES).decode("ascii", "replace").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        lines = []
    if newest > _path(folder, len(lines) + path.is_file()):
        found = f"{len(lines)} lines, and {newest.name}"
        raise bad_input(path, "", found, "the lines that `sha256sum *.tar` prints in its folder")
    if len(lines) > MAX_ARCHIVES:
        raise bad_input(path, "", f"{len(lines)} archives", f"at most {MAX_ARCHIVES}")
    digests = []
    for number, line in enumerate(lines, 1):
        match = _ARCHIVE.fullmatch(line)
        if match is None or int(match[2]) != number:
            accepted = f"the line of sha256sum of {number:04d}.tar"
            raise bad_input(f"{path}:{number}", "", repr(line[:80]), accepted)
        digests.append(match[1])
    return digests


def _path(folder: Path, number: int) -> Path:
    return RunFiles(folder).evidence / f"{number:04d}.tar"


def open_evidence(folder: Path, *, again: bool = True) -> Run | None:
    """Return the sealed run of `folder`; None if nothing was sealed.

    Args:
        again: as in `read_evidence`.

    Raises:
        BadInput: the evidence is damaged, or another user can change it.
    """
    evidence = read_evidence(folder.resolve(), again=again)
    return evidence.run() if evidence else None


def open_newest(folder: Path) -> Run:
    """Return the sealed run of `folder`; before anything is sealed, the run in its folder.

    Raises:
        BadInput: as `open_evidence` and `open_run`.
    """
    return open_evidence(folder) or open_run(folder)


def seal(folder: Path) -> SealedEvidence:
    """Seal what is new in the run in `folder`, and return all of its evidence.

    A second call without a change makes no archive. After a kill, the next call makes the archive.

    Raises:
        BadInput: the folder is no run or cannot be read, its inputs were changed before the first
            seal, it was renamed after that, an archive cannot be written, a limit of size is
            exceeded, or another process seals this run. No archive is made.
    """
    target = folder.resolve()
    run_by = "" if sealed_digests(target) else open_run(folder).run_by
    make_folder(RunFiles(target).evidence)
    with state_lock(RunFiles(target).evidence / "lock", target.name):
        known = read_evidence(target) or SealedEvidence(target)
        if os.path.lexists(known.next_archive):  # a kill came before its line
            known = _with_next(known, "", {})
            _write_list(known)
        run_by = known.newest.run_by if known.heads else run_by
        use_work_folder(target, run_by)
        new = known.next_archive.with_suffix(".new")
        try:
            new.unlink(missing_ok=True)  # left by a kill
            try:
                with new.open("x+b") as file:
                    sealed = _write(file, known, run_by)
                if sealed is known:
                    _note_checked(known)
                    return known
                if not known.heads:
                    _write_list(known)  # so that an archive without any list is no kill
                new.chmod(0o444)
                new.rename(known.next_archive)
            finally:
                new.unlink(missing_ok=True)
        except OSError as error:
            place, found = error.filename or new, f"{error.strerror}"
            raise bad_input(place, "", found, "a place that can be written, with space") from None
        _write_list(sealed)
        _note_checked(sealed)
        return sealed


def _write_list(known: SealedEvidence) -> None:
    lines = (f"{each}  {number:04d}.tar\n" for number, each in enumerate(known.digests, 1))
    write_atomic(RunFiles(known.folder).evidence / SUMS, "".join(lines))


def _write(file: BinaryIO, known: SealedEvidence, run_by: str) -> SealedEvidence:
    """Write the next archive of a run, and return all evidence; `known` if nothing is new."""
    writer, folder = ArchiveWriter(file, int(time.time())), known.folder
    _Sealing(folder, writer, known.chain).all()
    if writer.empty and known.heads:
        return known
    _add_nodes(writer, Chain([*known.chain.archives, writer.archive()]), folder)
    archive = writer.archive()
    head = ArchiveHead(
        **vars(archive.facts),
        run=folder.name,
        number=len(known.digests) + 1,
        before=known.digest,
        sealed=datetime.now(UTC).replace(microsecond=0),
        sealed_by=this_user().name,
        run_by=run_by,
        kit=this_kit(),
    )
    digest = writer.finish(head.model_dump(mode="json"))
    known.refuse_too_large(file)
    return known.followed_by(archive, head, digest)


def _add_nodes(writer: ArchiveWriter, chain: Chain, folder: Path) -> None:
    """Add the state of each node, from the probes that were sealed."""
    place = RunFiles(folder).evidence / folder.name
    with mounted(place, chain):
        run = sealed_run(place)
        nodes = run.files.nodes.name
        for files in node_files(run):
            for name in list(files):
                path, length = f"{nodes}/{name}", len(files[name])
                if chain.is_file(path) and chain.read(path, length + 1, cut=True) == files[name]:
                    del files[name]
            if files:
                writer.add(nodes, files, {})


_JOURNAL, _SCRIPTS, _WORK = (
    each.path for each in (RunFiles.journal, RunFiles.scripts_folder, RunFiles.work_folder)
)
_FOLDERS, _AHEAD = 500, 8 << 20
"""The number of folders, and of the bytes in them, that a process reads at a time."""
_Folder = tuple[str, Mapping[str, str]]
"""A folder, and its entries that are no folders, each with the kind of its problem, or ""."""
_Contents = dict[str, tuple[bytes | None, str]]
"""The contents of files by name, or the kinds of their problems; neither if a file vanished."""


class _Sealing:
    """Adds what is new in the folder of a run to an archive.

    One process per processor reads the files of a large run; this one compares and writes them.
    """

    def __init__(self, folder: Path, writer: ArchiveWriter, known: Chain) -> None:
        self._root, self._writer, self._known = folder, writer, known
        self._journals = journals_of(folder)
        self._files = self._bytes = 0
        self._scripts: dict[str, bytes] = {}
        self._others: dict[str, bytes] = {}
        # A change is stated once, by the first archive after it.
        self._stated = set[str]().union(*(each.facts.kept for each in known.archives))

    def all(self) -> None:
        """Add the new files of all folders, and find those that were removed.

        Raises:
            BadInput: the run exceeds a limit of size, or a folder cannot be listed.
        """
        seen = {RunFiles.nodes.path}
        left_out = {name for name, rule in TOP_RULES.items() if rule is SealRule.UNSEALED}
        left_out |= {FACTS, _WORK} | ({_JOURNAL} if self._journals else set())
        self._add(self._folders("", seen, left_out))
        # Nothing but this reads the work folder in a block: rights change for the whole process.
        with rights_at(RunFiles(self._root).work_folder):
            self._add(self._folders(_WORK, seen, set()))
        self._keep_other_scripts()
        if self._journals:
            seen.add(_JOURNAL)
            self._compare(_JOURNAL, _listing(self._journals), {})
        for folder in sorted(self._known.folders.keys() - seen):
            self._compare(folder, {}, {})

    def _folders(self, top: str, seen: set[str], left_out: Set[str]) -> Iterator[_Folder]:
        """Yield the folder `top` and all below it; add their paths to `seen`.

        The entries `left_out` of `top` are not there.
        """
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            seen.add(folder)
            names = _listing(self._place(folder))
            if folder == top:
                names = {name: kind for name, kind in names.items() if name not in left_out}
            for name in sorted(names, reverse=True):
                if names[name] == _INNER:
                    inner = f"{folder}/{name}" if folder else name
                    if inner.count("/") >= MAX_DEPTH:
                        names[name] = "deep"
                    elif os.access(self._place(inner), os.R_OK | os.X_OK, effective_ids=True):
                        waiting.append(inner)
                        del names[name]
                    else:  # a program may have left a folder that nobody can enter
                        names[name] = "unreadable"
            yield folder, names

    def _add(self, folders: Iterable[_Folder]) -> None:
        """Add what is new in `folders`."""
        for read in parallel_map(self._read, batched(folders, _FOLDERS)):
            for folder, names, contents in read:
                self._compare(folder, names, contents)

    def _read(self, folders: Sequence[_Folder]) -> list[tuple[str, Mapping[str, str], _Contents]]:
        """Return the folders with the contents of their first files, of about `_AHEAD` bytes."""
        read: list[tuple[str, Mapping[str, str], _Contents]] = []
        held = 0
        for folder, names in folders:
            contents: _Contents = {}
            for name in names:
                if not names[name] and held < _AHEAD:
                    contents[name] = _content(f"{self._place(folder)}/{name}")
                    held += len(contents[name][0] or b"")
            read.append((folder, names, contents))
        return read

    def _place(self, folder: str) -> str:
        """Return the place of a folder of the run. Journals are those of the state."""
        if self._journals and folder == _JOURNAL:
            return f"{self._journals}"
        return f"{self._root}/{folder}"  # a Path would take 5 µs for each of 200,000 folders

    def _compare(self, folder: str, names: Mapping[str, str], read: _Contents) -> None:
        """Add what is new in a folder; keep the sealed content of what must not change.

        Args:
            names: the entries that are no folders, each with the kind of its problem, or "".
            read: files that were read already. Others are read here.
        """
        before, prefix = self._known.files(folder), f"{folder}/" if folder else ""
        place = self._place(folder)
        known = self._known.is_folder(folder)
        unread: dict[str, str] = {}
        gone: list[str] = []
        kept: dict[str, Change] = {}
        for name in sorted({*before, *names}):
            path = prefix + name
            content, problem = None, names.get(name, "")
            if name in names and not problem:
                content, problem = read.get(name) or _content(f"{place}/{name}")
            self._count(content)
            if self._is_script(path, content):
                continue
            if name not in before:
                allowed = not (before and _EXECUTION.search(folder))
                change = None if allowed else Change.ADDED
            elif content is None and not problem:
                change = None if rule_of(path) is SealRule.REPLACED else Change.REMOVED
            else:
                old = None if before[name] else self._known.read(path, MAX_OUTPUT_BYTES)
                if (old, before[name]) == (content, problem):
                    continue
                change = None if _may_follow(path, old, content) else Change.CHANGED
            if change:
                if path not in self._stated and name != StepFiles.disturbed.path:
                    kept[path] = change
            elif problem:
                unread[name] = problem
            elif content is not None:
                self._writer.add(folder, {name: content}, {})
                known = True
            elif name in before:
                gone.append(path)
        if unread or not known:
            self._writer.add(folder, {}, unread)
        self._writer.remove(gone)
        self._writer.keep(kept)

    def _is_script(self, path: str, content: bytes | None) -> bool:
        """Return whether a file of the work folder is a script as the run has it.

        The scripts of the run are read before the work folder.
        """
        place, _, name = path.partition("/")
        if place == _SCRIPTS:
            self._scripts[name] = sha256(content or b"").digest()
        if place != _WORK or name not in self._scripts:
            return False
        digest = sha256(content or b"").digest()
        if self._scripts[name] != digest and path not in self._stated:
            self._others[name] = digest
        return self._scripts[name] == digest

    def _keep_other_scripts(self) -> None:
        """State the scripts of the work folder that differ, unless the run has new ones by now."""
        for name, digest in self._others.items():
            now, _ = _content(f"{RunFiles(self._root).scripts_folder / name}")
            if sha256(now or b"").digest() != digest:
                self._writer.keep({f"{_WORK}/{name}": Change.SCRIPT})

    def _count(self, content: bytes | None) -> None:
        self._files += 1
        self._bytes += len(content or b"")
        if self._files > MAX_EVIDENCE_FILES or self._bytes > MAX_EVIDENCE_BYTES:
            found = f"more than {size(self._bytes)} in {self._files} files"
            accepted = f"at most {size(MAX_EVIDENCE_BYTES)} in {MAX_EVIDENCE_FILES} files"
            raise bad_input(self._root, "", found, accepted)


_INNER = "folder"
"""What `_listing` has for a folder."""


def _listing(folder: Path | str) -> dict[str, str]:
    """Return the entries of a folder, each with `_INNER` or the kind of its problem, or "".

    A name that is not UTF-8 is escaped, and its entry is not read.

    Raises:
        BadInput: the folder cannot be listed.
    """
    found = {}
    try:
        with os.scandir(folder) as entries:
            for each in entries:
                name = each.name
                if not name.isascii():
                    name = os.fsencode(name).decode("utf-8", "backslashreplace")
                if name != each.name:
                    kind = "name"
                elif each.is_file(follow_symlinks=False):
                    kind = ""
                elif each.is_dir(follow_symlinks=False):
                    kind = _INNER
                else:
                    kind = "link" if each.is_symlink() else "special"
                found[name] = kind
    except FileNotFoundError:
        return {}  # it was renamed: a step ended just now
    except OSError as error:
        raise bad_input(folder, "", f"{error.strerror}", "a folder that can be listed") from None
    return found


def _content(path: str) -> tuple[bytes | None, str]:
    """Return the content of a regular file, or the kind of its problem; nothing if it vanished."""
    try:
        return read_bytes(path), ""
    except FileNotFoundError:
        return None, ""
    except OSError as error:
        kinds = {errno.EFBIG: "large", errno.EINVAL: "special", errno.ELOOP: "link"}
        return None, kinds.get(error.errno or 0, "unreadable")


def rule_of(path: str) -> SealRule:
    """Return how the sealed file of a run with this path in its folder may change."""
    first, *rest = Path(path).parts
    rule = TOP_RULES.get(first)
    if rule is not None and rule is not SealRule.UNSEALED:
        return rule
    fixed = _ATTEMPT.search(path) and rest[-1] not in JobFiles.REWRITTEN
    if fixed or _EXECUTION.search(path):
        return SealRule.FIXED
    return SealRule.GROWS if path.endswith(".jsonl") else SealRule.REPLACED


_EXECUTION = re.compile(r"^workdir/steps/.*?/?execution-\d+(/|$)", re.ASCII)
_ATTEMPT = re.compile(r"^workdir/jobs/[^/]+/attempt-\d+/", re.ASCII)


def _may_follow(path: str, old: bytes | None, new: bytes | None) -> bool:
    """Return whether the content `new` of a file may follow the sealed one; None is unread."""
    rule = rule_of(path)
    if rule is SealRule.REPLACED or old is None:
        return rule is not SealRule.FIXED
    if new is None or rule is SealRule.FIXED:
        return False
    return new.startswith(old) if rule is SealRule.GROWS else extends(old, new)
