"""Signed folders: evidence and all that is made from it, one statement of them, and signatures.

``signed/<n>/`` of a run, or of the acceptance of a site, is written once. ``statement.json`` is an
in-toto Statement: it lists each file of the folder with SHA-256 and length, and says what was
accepted. Each party signs exactly its bytes, by ssh-keygen(1); one key is one signer. What the
statement does not list is refused, and no file decides what is checked. docs/design/evidence.md has
the commands that check it without the kit.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from proofmark.common.errors import BadInput, bad_input
from proofmark.common.files import names_in, read_regular, sha256_of, write_atomic_bytes
from proofmark.common.input_limits import (
    MAX_EVIDENCE_BYTES,
    MAX_SIGNATURES,
    MAX_SIGNED_FILES,
    MAX_SMALL_BYTES,
    MAX_VERDICT_BYTES,
)
from proofmark.common.message import Message
from proofmark.common.processes import environment_of, run_command
from proofmark.common.shared_models import StrictModel
from proofmark.common.text import one_line
from proofmark.common.trust import refuse_untrusted
from proofmark.runs.run_files import RunFiles
from proofmark.runs.state import state_lock

_GOOD = re.compile(r'Good "[a-z-]+" signature with (\S+) key (SHA256:\S+)\s*')
_PATTERN = frozenset("*?!")
"""The characters of patterns in ALLOWED SIGNERS (ssh-keygen(1))."""


@dataclass(frozen=True)
class Signer:
    """Who signed.

    Attributes:
        name: the principal of the key (ssh-keygen(1), ALLOWED SIGNERS).
        key: the fingerprint of the key, ``SHA256:`` and 43 characters.
    """

    name: str
    key: str


def keygen(verb: str, *words: str, place: str, content: bytes = b"") -> str:
    """Return the output of ``ssh-keygen -Y``; `place` is what a refusal is about.

    Raises:
        BadInput: ssh-keygen refuses, or is not there.
    """
    done = run_keygen(verb, *words, content=content)
    if done.returncode:
        problem = "unknown signer" if verb == "find-principals" else "refused by ssh-keygen"
        found = f"{problem}: {one_line(done.stderr)}"
        raise bad_input(place, "", found, "the key of a signer, at a time when it is valid")
    return done.stdout


def run_keygen(verb: str, *words: str, content: bytes = b"") -> subprocess.CompletedProcess[str]:
    """Run ``ssh-keygen -Y`` with `content` on its standard input.

    Raises:
        BadInput: there is no ssh-keygen.
    """
    program = shutil.which("ssh-keygen")
    if program is None:
        raise bad_input("ssh-keygen", "", "not found", "OpenSSH 8.2 or later")
    command = [program, "-Y", verb, *words]
    return run_command(command, text=os.fsdecode(content), environment=environment_of("ssh"))


def key_of(signature: bytes, content: bytes, namespace: str, place: str) -> str:
    """Return the fingerprint of the key that signed `content`; whose key it is stays open.

    A key with a certificate is refused: anybody with the key of the authority can make another one.

    Raises:
        BadInput: `signature` is none of `content`, or by a certificate; `place` is its file.
    """
    with _file(signature) as path:
        words = ("-n", namespace, "-s", path)
        done = run_keygen("check-novalidate", *words, content=content)
    match = _GOOD.fullmatch(done.stdout)
    if done.returncode or match is None:
        found = f"no signature of what is there now: {one_line(done.stderr or done.stdout)}"
        raise bad_input(place, "", found, f"a signature of the unchanged file for {namespace}")
    if match[1].endswith("-CERT"):
        raise bad_input(place, "", "the key of a certificate", "a key without certificate")
    return match[2]


def signer_of(
    signature: bytes,
    content: bytes,
    namespace: str,
    signers: Path,
    *,
    revoked: Path | None,
    place: str,
) -> Signer:
    """Return who signed `content`.

    Args:
        signers: the accepted keys with their times of validity (ssh-keygen(1), ALLOWED SIGNERS).
        revoked: the keys that are no longer accepted: a list of public keys, or a KRL.

    Raises:
        BadInput: the signature is not one of `content`, or the signer is not accepted: unknown,
            a pattern, revoked, or outside of the times of validity.
    """
    key = key_of(signature, content, namespace, place)
    with _file(signature) as path:
        names = ("-f", str(signers), "-s", path)
        principals = keygen("find-principals", *names, place=place).splitlines()
        if any(_PATTERN & set(each) for each in principals):
            found = f"a pattern names a signer: {', '.join(principals)}"
            raise bad_input(signers, "", found, "the name of one person for each key")
        signer = Signer(principals[0].strip(), key)
        words = ("-I", signer.name, *names, "-n", namespace)
        revocations = ("-r", str(revoked)) if revoked else ()
        good = run_keygen("verify", *words, *revocations, content=content)
        in_time = good.returncode and not run_keygen("verify", *words, content=content).returncode
        if revoked and in_time:
            found = f"{revoked}: {one_line(good.stderr) or f'the key of {signer.name} is revoked'}"
            raise bad_input("--revoked", "", found, "a signature by a key that is not revoked")
    if good.returncode:
        problem = one_line(good.stderr) or "a signature that is not accepted"
        raise bad_input(signers, "", problem, f"a signer of {namespace}")
    return signer


@contextmanager
def _file(signature: bytes) -> Iterator[str]:
    """Yield the path of a file with a signature; ssh-keygen reads it from no pipe."""
    with tempfile.NamedTemporaryFile(prefix="proofmark-") as file:
        file.write(signature)
        file.flush()
        yield file.name


STATEMENT = "statement.json"
NAMESPACE = "proofmark-run"
"""Namespace of the signature: a signature for another purpose does not verify (ssh-keygen, -n)."""
RUNS = "runs"
"""The folder of the runs of a signed acceptance."""
OWN = "a folder that only this user can change: cp -r makes such a copy"
_NAME = re.compile(r"(?:[A-Za-z0-9_][\w.-]{0,254}/){0,3}[A-Za-z0-9_][\w.-]{0,254}", re.ASCII)
_SIGNATURE = re.compile(r"statement\.json(?:\.([2-9]|[1-9]\d{1,3}))?\.sig", re.ASCII)

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Digest(StrictModel):
    """The digest of a file."""

    sha256: Sha256


class Annotations(StrictModel):
    """What else is known of a file: its length in bytes."""

    length: int = Field(ge=0, le=MAX_EVIDENCE_BYTES)


class Subject(StrictModel):
    """A file of a signed folder, as in-toto describes a resource."""

    name: str
    digest: Digest
    annotations: Annotations


class Statement(StrictModel):
    """``statement.json``: an in-toto Statement, https://in-toto.io/Statement/v1.

    Attributes:
        subject: each file of the folder but the statement and its signatures.
        predicate: what was accepted (`proofmark.report.statement.Predicate`).
    """

    form: Literal["https://in-toto.io/Statement/v1"] = Field(
        default="https://in-toto.io/Statement/v1", alias="_type"
    )
    subject: list[Subject] = Field(min_length=1, max_length=MAX_SIGNED_FILES)
    predicate_type: Literal["urn:proofmark:acceptance:1"] = Field(
        default="urn:proofmark:acceptance:1", alias="predicateType"
    )
    predicate: dict[str, Any]

    @property
    def content(self) -> bytes:
        """The bytes of ``statement.json``."""
        return f"{self.model_dump_json(by_alias=True, indent=1)}\n".encode()

    @property
    def files(self) -> dict[str, Subject]:
        """The files by their names."""
        return {each.name: each for each in self.subject}


@dataclass(frozen=True)
class CheckedStatement:
    """A signed folder whose signatures and files were checked.

    Attributes:
        sha256: of the bytes of the statement, in hexadecimal digits.
        signers: who signed, in the order of the signatures; each key once.
        others: the signatures that do not count, each with the reason.
    """

    folder: Path
    statement: Statement
    sha256: str
    signers: tuple[Signer, ...]
    others: tuple[str, ...]
    wrong: tuple[Message, ...]

    @property
    def names(self) -> str:
        """The names of the signers."""
        return ", ".join(each.name for each in self.signers)


def signed_folders(folder: Path) -> list[Path]:
    """Return the signed folders of a run or an acceptance, the newest first."""
    place = folder / RunFiles.signed.path
    names = [name for name in names_in(place) if name.isdecimal()]
    return [place / name for name in sorted(names, key=int, reverse=True)]


def resting_on(run: Path) -> list[Path]:
    """Return what was signed with evidence of the run in a folder: of it, and acceptances."""
    beside = run.parent.glob(f"acceptance-*/{RunFiles.signed.path}/*/{RUNS}/{run.name}")
    return [*signed_folders(run), *sorted(beside)]


@contextmanager
def new_signed(folder: Path) -> Iterator[Path]:
    """Yield a new folder in ``signed/`` of `folder`, which `accept` keeps.

    What an earlier process left after a kill is removed.

    Raises:
        BadInput: it cannot be written, or another process signs.
    """
    place = folder / RunFiles.signed.path
    try:
        place.mkdir(exist_ok=True)
        with state_lock(place / "lock", folder.name):
            for left in place.glob(".new-*"):
                shutil.rmtree(left)
            new = Path(tempfile.mkdtemp(prefix=".new-", dir=place))
            try:
                yield new
            finally:
                shutil.rmtree(new, ignore_errors=True)
    except OSError as error:
        found = f"cannot be written: {error.strerror}"
        raise bad_input(error.filename or place, "", found, "a folder with free space") from None


def take(source: Path, target: Path) -> None:
    """Let `target` have the content of `source`, which nothing changes; a copy costs more space.

    Raises:
        BadInput: another user can change `source`.
    """
    refuse_untrusted(source, OWN)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, target)


def accept(new: Path, predicate: Mapping[str, Any], key: Path) -> Path:
    """Sign the folder of `new_signed`, which becomes the next one; return the signature.

    If the newest one has the same statement, that one gets the signature.

    Raises:
        BadInput: as `sign` and `files_of`.
    """
    new.chmod(0o755)
    for path in new.rglob("*"):  # a umask can let others write
        path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~0o022)
    subject = [
        Subject(
            name=name,
            digest=Digest(sha256=_digest(new / name)),
            annotations=Annotations(length=length),
        )
        for name, length in sorted(files_of(new).items())
    ]
    statement = Statement(subject=subject, predicate=dict(predicate))
    content = statement.content
    known = signed_folders(new.parent.parent)
    if known and _read(known[0]) == content and not differences(known[0], statement):
        return sign(known[0], key)
    write_atomic_bytes(new / STATEMENT, content, 0o644)
    signature = sign(new, key)
    target = new.parent / f"{int(known[0].name) + 1 if known else 1:04d}"
    return new.rename(target) / signature.name


def sign(folder: Path, key: Path) -> Path:
    """Add a signature of the statement of a signed folder; return its path.

    A second signature by one key is not added: the path is that of the first.

    Raises:
        BadInput: the key is missing, ssh-keygen refuses, or the folder cannot be written.
    """
    if not key.is_file():
        accepted = "a private ssh key, or an agent's .pub"
        raise bad_input("--key", "", f"{key}: no such file", accepted)
    content = _read(folder)
    words = ("-f", str(key), "-n", NAMESPACE)
    signature = keygen("sign", *words, place="--key", content=content).encode()
    signer = key_of(signature, content, NAMESPACE, "--key")
    known = _signatures(folder)
    for path in known:
        try:
            if key_of(read_regular(path, MAX_SMALL_BYTES), content, NAMESPACE, str(path)) == signer:
                return path
        except BadInput:  # `verify` names it
            continue
    number = max(known.values(), default=0) + 1
    path = folder / (f"{STATEMENT}.{number}.sig" if number > 1 else f"{STATEMENT}.sig")
    write_atomic_bytes(path, signature, 0o644)
    return path


def check(folder: Path, signers: Path, revoked: Path | None = None) -> CheckedStatement:
    """Check the signatures of a signed folder, then each of its files.

    Raises:
        BadInput: no signature is accepted, the statement is none of this form, or the folder has
            what no signed folder has: see `files_of`.
    """
    content = _read(folder)
    about = (content, NAMESPACE, signers)
    accepted, refused = dict[str, Signer](), list[BadInput]()
    for path in _signatures(folder):
        try:
            signed = read_regular(path, MAX_SMALL_BYTES)
            signer = signer_of(signed, *about, revoked=revoked, place=str(path))
            if first := accepted.get(signer.key):
                found = f"a second signature by the key of {first.name}, {signer.key}"
                raise bad_input(path, "", found, "one signature for each key")
            accepted[signer.key] = signer
        except BadInput as error:
            refused.append(error)
    if not accepted:
        raise refused[0] if refused else bad_input(folder, "", "no signature", "proofmark sign RUN")
    statement = read_statement(folder)
    return CheckedStatement(
        folder,
        statement,
        sha256(content).hexdigest(),
        tuple(accepted.values()),
        tuple(one_line(str(error)) for error in refused),
        tuple(differences(folder, statement)),
    )


def read_statement(folder: Path) -> Statement:
    """Return the statement of a signed folder.

    Raises:
        BadInput: it is none of this form, lists a file twice, or is written in another way: a key
            that is there twice has two readings.
    """
    path, content = folder / STATEMENT, _read(folder)
    try:
        statement = Statement.model_validate_json(content)
    except ValidationError as error:
        raise bad_input(path, "", f"unreadable: {error}", "a statement of this kit") from None
    if len(statement.files) < len(statement.subject):
        raise bad_input(path, "subject", "a name twice", "each file once")
    if statement.content != content:
        raise bad_input(path, "", "the same values in another form", "as proofmark writes it")
    return statement


def differences(folder: Path, statement: Statement) -> Sequence[Message]:
    """Return each file of a signed folder that is not as the statement lists it.

    Names and lengths are compared before a file is read.

    Raises:
        BadInput: see `files_of`.
    """
    listed, present = statement.files, files_of(folder)
    wrong = [Message("signed-unlisted", name=name) for name in present if name not in listed]
    for name, each in listed.items():
        length = each.annotations.length
        if name not in present:
            wrong.append(Message("signed-missing", name=name))
        elif present[name] != length:
            wrong.append(Message("signed-length", name=name, found=present[name], listed=length))
    if not wrong:
        wrong += [
            Message("signed-changed", name=name)
            for name, each in listed.items()
            if _digest(folder / name) != each.digest.sha256
        ]
    return wrong


def files_of(folder: Path) -> dict[str, int]:
    """Return the length of each file of a signed folder but its statement and the signatures.

    Raises:
        BadInput: it has a link, a special file, an unusual name or a too large file; or another
            user can change a part of it.
    """
    found, waiting = dict[str, int](), [folder]
    while waiting:
        place = waiting.pop()
        refuse_untrusted(place, OWN)
        for path in sorted(place / name for name in names_in(place)):
            name, status = path.relative_to(folder).as_posix(), path.lstat()
            most = MAX_EVIDENCE_BYTES if name.endswith(".tar") else MAX_VERDICT_BYTES
            if not _NAME.fullmatch(name):
                raise bad_input(folder, "", repr(name), "files that proofmark wrote")
            if stat.S_ISDIR(status.st_mode):
                waiting.append(path)
                continue
            if not stat.S_ISREG(status.st_mode):
                raise bad_input(path, "", "a link, or not a regular file", "a regular file")
            refuse_untrusted(path, OWN)
            if status.st_size > most:
                raise bad_input(path, "", f"{status.st_size} bytes", f"at most {most} bytes")
            if name != STATEMENT and not _SIGNATURE.fullmatch(name.removesuffix(".new")):
                found[name] = status.st_size
        if len(found) + len(waiting) > MAX_SIGNED_FILES:
            raise bad_input(folder, "", "more files", f"at most {MAX_SIGNED_FILES} files")
    return found


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    try:
        return sha256_of(path)
    except OSError as error:
        raise bad_input(path, "", f"{error.strerror}", "a regular file") from None


def _read(folder: Path) -> bytes:
    """Return the bytes of the statement in a folder."""
    return read_regular(folder / STATEMENT, needed="a folder that proofmark signed")


def _signatures(folder: Path) -> dict[Path, int]:
    """Return the numbers of the signatures in a folder, in their order.

    Raises:
        BadInput: there are too many.
    """
    matches = filter(None, map(_SIGNATURE.fullmatch, names_in(folder)))
    numbers = {folder / match[0]: int(match[1] or 1) for match in matches}
    if len(numbers) > MAX_SIGNATURES:
        raise bad_input(folder, "", f"{len(numbers)} signatures", f"at most {MAX_SIGNATURES}")
    return dict(sorted(numbers.items(), key=lambda each: each[1]))
