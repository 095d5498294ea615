"""No damage of sealed evidence, of a cache or of a product crashes, delays or deceives a command.

Each example damages the archive of a run that was judged and signed, and writes the list of digests
anew, as a person can who owns the run.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.fixtures.fleet import write_inventory
from tests.fixtures.kit import make_kit
from tests.unit.cli.test_acceptance_runs import Site
from tests.unit.cli.test_any_damage import TEXTS, WORDS, called, damaged
from tests.unit.judge.test_contract_items import written_contract

from proofmark.cli.main import main
from proofmark.cli.sign import OTHER_PRODUCTS
from proofmark.common.input_limits import MAX_ARCHIVES, MAX_EVIDENCE_BYTES

BAD_INPUT = 3


@dataclass(frozen=True)
class Signed:
    """A site with two runs that were sealed, judged and signed; `kept` has the first one whole."""

    site: Site
    folder: Path
    other: Path
    kept: Path
    signers: Path

    @property
    def archive(self) -> bytes:
        """The archive of the first run, whole."""
        return (self.kept / "evidence/0001.tar").read_bytes()

    def readers(self) -> dict[str, list[str]]:
        """Return the commands that read the evidence of a run."""
        here, run = ["-i", f"{self.site.inventory}"], f"{self.folder}"
        signers = ["--signers", f"{self.signers}"]
        new = f"{self.kept.parent / 'new'}"
        return {
            "report": ["report", run],
            "verdict": ["verdict", run, "--json"],
            "collect": ["stage", "collect", run],
            "export": ["export", run, "--format", "csv", "-o", new],
            "trend": ["trend", run, f"{self.other}"],
            "accept": ["baseline", "accept", run, *here, "-l", "local", *signers, "--reason", "n"],
            "judge": ["acceptance", "judge", *here, "--run", run, "-o", new],
            "sign": ["sign", run, "--key", f"{self.signers.with_name('key')}"],
            "verify": ["verify", run, *signers],
            "status": ["status", run],
        }

    def restore(self) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(self.kept, self.folder)

    def write(self, content: bytes, signed: bool = True) -> None:
        """Write another archive, with the digests that it needs."""
        self.restore()
        digest = sha256(content).hexdigest()
        for folder in (self.folder, *(self.folder.glob("signed/*/") if signed else ())):
            path = folder / "evidence/0001.tar"
            path.unlink()
            path.write_bytes(content)
            (path.parent / "SHA256SUMS").write_text(f"{digest}  0001.tar\n")


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Signed]:
    folder = tmp_path_factory.mktemp("evidence")
    site = Site(make_kit(folder))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROOFMARK_KIT", f"{folder}")
        patch.setenv("PROOFMARK_STATE", f"{folder / 'state'}")
        write_inventory(site.inventory, ["n1"])
        path = site.inventory / "group_vars/local/partition.yml"
        partition = yaml.safe_load(path.read_text(encoding="utf-8"))["partition"]
        partition["preinstalled"] = {"fake": {"prefix": f"{folder / 'programs'}", "version": "1"}}
        path.write_text(yaml.safe_dump({"partition": partition}), encoding="utf-8")
        (folder / "galaxy.yml").touch()
        written_contract(site.inventory, {"value": 90, "where": {"size": 1}})
        key = folder / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{key}"], check=True)
        (folder / "signers").write_text(f"a@b {Path(f'{key}.pub').read_text()}")
        runs = [site.measured(name).folder for name in ("first", "second")]
        for run in runs:
            for words in (["stage", "collect"], ["report"], ["sign", "--key", f"{key}"]):
                assert main([*words, f"{run}"]) in (0, 1), words
        kept = folder / "kept"
        shutil.copytree(runs[0], kept)
        yield Signed(site, runs[0], runs[1], kept, folder / "signers")


def test_control_whole_evidence_is_read(signed: Signed) -> None:
    signed.restore()
    codes = {name: called(words) for name, words in signed.readers().items()}
    assert not {name: each for name, each in codes.items() if each[0] not in (0, 1, 2, 4)}


def _header(content: bytearray, at: int) -> bytes:
    content[at + 148 : at + 156] = b" " * 8
    return b"%06o\0 " % sum(content[at : at + 512])


def of_headers(begin: int, value: bytes, first: int = 3) -> Callable[[bytes], bytes]:
    """Return what changes a field of a header, with a right checksum."""

    def change(whole: bytes) -> bytes:
        content = bytearray(whole)
        at = [found.start() - 257 for found in re.finditer(rb"ustar\x0000", whole)][first]
        content[at + begin : at + begin + len(value)] = value
        content[at + 148 : at + 156] = _header(content, at)
        return bytes(content)

    return change


def of_facts(key: str, value: Any) -> Callable[[bytes], bytes]:
    """Return a function that changes a value of the facts, the last member of an archive."""

    def change(whole: bytes) -> bytes:
        at = [found.start() - 257 for found in re.finditer(rb"ustar\x0000", whole)][-1]
        length = int(whole[at + 124 : at + 135], 8)
        stated = json.loads(whole[at + 512 : at + 512 + length])
        text = json.dumps({**stated, key: value}).encode()
        header = bytearray(whole[at : at + 512])
        header[124:135] = b"%011o" % len(text)
        header[148:156] = _header(header, 0)
        return whole[:at] + bytes(header) + text + bytes(-len(text) % 512 + 1024)

    return change


LENGTHS = [
    *(
        b"-0000000001",
        b"-7777777777",
        b"77777777777",
        b"00000000000",
        b"           ",
        b"0x000000001",
    ),
    *(b"\x80" + b"\xff" * 11, b"\xff" * 12, b"\x80" + bytes(10) + b"\1", bytes(12)),
]
KEYS = ["format", "number", "unread", "removed", "kept", "run", "sealed", "kit"]
SOUND: list[tuple[str, Any]] = [
    *(("unread", {}), ("unread", {"x": {}}), ("removed", []), ("kept", {})),
    *(("run", word) for word in ("x", "0001-01-01", "yesterday", "1e999")),
]
"""Values that an archive can have."""
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda whole: b"",
    "a block of zeros": lambda whole: bytes(10240),
    "its end is missing": lambda whole: whole[:-1024],
    "a half": lambda whole: whole[: len(whole) // 2],
    "a half of a header": lambda whole: whole[:300],
    "twice": lambda whole: whole + whole,
    "no tar": lambda whole: b"\x1f\x8b" + whole,
    **{f"length {each!r}": of_headers(124, each) for each in LENGTHS},
    **{f"length of the facts {each!r}": of_headers(124, each, -1) for each in LENGTHS},
    **{f"time {each!r}": of_headers(136, each) for each in LENGTHS[:8]},
    **{f"first time {each!r}": of_headers(136, each, 0) for each in LENGTHS[:8]},
    **{f"kind {each}": of_headers(156, bytes([each])) for each in b"\0001234567LKSgxXVMND"},
    "a name of others": of_headers(0, b"/etc/passwd\0"),
    "the folder above": of_headers(0, b"../../x\0"),
    "no name": of_headers(0, b"\0"),
    **{
        f"{key} is {value!r:.30}": of_facts(key, value)
        for number, value in enumerate(WORDS)
        for key in (KEYS[number % 8], KEYS[number // 8 + number % 5])
        if (key, value) not in SOUND
    },
    "deep facts": lambda whole: whole.replace(b'"kit": {', b'"kit": ' + b"[" * 8, 1),
}


OFTEN = 4
"""`make test` has one of so many damages: each is read by two commands, which cost the same."""
NUMBERS = [
    pytest.param(number, id=name, marks=[pytest.mark.rest("another damage")] * (number % OFTEN > 0))
    for number, name in enumerate(DAMAGES)
]


@pytest.mark.fault("archive-damaged")
@pytest.mark.parametrize("number", NUMBERS)
def test_a_damaged_archive_is_bad_input(signed: Signed, number: int) -> None:
    """The control is `test_control_whole_evidence_is_read`. Each damage is read by two commands."""
    signed.write([*DAMAGES.values()][number](signed.archive))
    names = ["report", "verdict", "collect", "export", "trend", "accept", "judge", "sign", "verify"]
    for name in (names[number % 9], names[(number // 9 + number + 1) % 9], "status"):
        code, printed = called(signed.readers()[name])
        allowed = {"verify": (1, BAD_INPUT), "accept": (1, BAD_INPUT), "status": (0, BAD_INPUT)}
        assert code in allowed.get(name, (BAD_INPUT,)), (name, printed)
        if code == BAD_INPUT and name not in ("verify", "accept"):
            assert "0001.tar" in printed or "SHA256SUMS" in printed
            assert "accepted" in printed


@pytest.mark.fault("archive-damaged")
@given(st.randoms(use_true_random=False))
def test_no_change_of_an_archive_crashes_a_command(signed: Signed, dice: Random) -> None:
    signed.write(damaged(dice, signed.archive))
    name = dice.choice(["report", "verdict", "collect", "sign", "verify", "judge"])
    code, printed = called(signed.readers()[name])
    assert code in (0, 1, 2, BAD_INPUT, 4), printed


def codes_of(reader: str) -> set[int]:
    """Return the exit codes that a command may have if a cache or a product is damaged."""
    return {0, 1, 2, BAD_INPUT, 4} | ({OTHER_PRODUCTS} if reader == "verify" else set())


def _large(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(MAX_EVIDENCE_BYTES + (1 << 40))


LISTS = {
    "one too many": b"%s  0001.tar\n" % (b"0" * 64) * (MAX_ARCHIVES + 1),
    "another number": b"%s  0002.tar\n" % (b"0" * 64),
    "a folder": b"%s  ../0001.tar\n" % (b"0" * 64),
    **{f"{text!r:.20}": text for text in TEXTS if text},
}


@pytest.mark.fault("archive-damaged")
@pytest.mark.parametrize("text", LISTS.values(), ids=LISTS)
def test_a_damaged_list_of_archives_is_bad_input(signed: Signed, text: bytes) -> None:
    signed.restore()
    sums = signed.folder / "evidence/SHA256SUMS"
    sums.write_bytes(text)
    for name in ("verdict", "collect"):
        code, printed = called(signed.readers()[name])
        assert code == BAD_INPUT
        assert re.search(rf"{re.escape(f'{sums}')}(:1)?: found ", printed)
        if text == LISTS["one too many"]:
            found = f"found {MAX_ARCHIVES + 1} archives; accepted: at most {MAX_ARCHIVES}"
            assert f"{sums}: {found}" in printed


FILES = [
    *("evidence/0001.tar", "evidence/SHA256SUMS", "evidence/readings.zip", "evidence/checked"),
    *("records.parquet", "verdict.json", "report.json", "report.html"),
]


@pytest.mark.fault("archive-damaged")
@pytest.mark.parametrize("name", FILES)
def test_a_file_of_terabytes_is_refused_by_its_length(signed: Signed, name: str) -> None:
    """Its bytes are holes, which take no space and an hour to read."""
    signed.restore()
    whole = called(signed.readers()["verdict"])
    path = signed.folder / name
    path.chmod(0o644)
    _large(path)
    evidence = name in FILES[:2]
    for reader in ("status", "trend", "sign", "verify", "verdict", "judge", "report"):
        code, printed = called(signed.readers()[reader])
        assert code in codes_of(reader), printed
        if reader == "verdict":
            assert code == (BAD_INPUT if evidence else whole[0])
            assert evidence or printed.endswith(whole[1])


@pytest.mark.fault("archive-damaged")
@given(st.randoms(use_true_random=False))
def test_a_damaged_cache_or_product_changes_no_verdict(signed: Signed, dice: Random) -> None:
    signed.restore()
    (whole,) = (signed.folder / "verdict.json",)
    before = whole.read_bytes()
    path = signed.folder / dice.choice(FILES[2:])
    path.chmod(0o644)
    path.write_bytes(damaged(dice, path.read_bytes()))
    for name in dice.sample(["trend", "sign", "verify", "status", "export", "judge"], 2):
        code, printed = called(signed.readers()[name])
        assert code in codes_of(name), printed
    assert called(signed.readers()["report"])[0] == 0
    assert whole.read_bytes() == before
