"""The role provision against a real dpkg, a real pip and real programs."""

from __future__ import annotations

import base64
import hashlib
import os
import pwd
import shutil
import zipfile
from pathlib import Path

import pytest
from tests.roles.kit import SYSTEM, Kit, Played

pytestmark = pytest.mark.slow

ABSENT = "proofmark-no-such-package"
PYTHON_SYSTEM = """
packages:
  shell:
    apt: [dash]
    pip: {lock: tiny.txt, distribution: tiny}
    programs: {sh: "{prefix}/bin/tiny"}
"""


def build(kit: Kit, *arguments: str, command: tuple[str, ...] = ()) -> Played:
    return kit.play("playbooks/plan.yml", "playbooks/build.yml", *arguments, command=command)


def environment(kit: Kit, text: str) -> None:
    (kit.folder / "environments/local/system.yml").write_text(text)


def wheel(kit: Kit, version: str) -> None:
    """Write a wheel with the program `tiny`, and a lock with its hash."""
    info = f"tiny-{version}.dist-info"
    files = {
        f"tiny-{version}.data/scripts/tiny": Path("/bin/sh").read_bytes(),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: tiny\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    digests = {
        name: base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        for name, content in files.items()
    }
    record = [f"{name},sha256={digests[name]},{len(files[name])}\n" for name in files]
    files[f"{info}/RECORD"] = "".join([*record, f"{info}/RECORD,,\n"]).encode()
    path = kit.folder / f"tiny-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
            archive.writestr(entry, content)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    (kit.folder / "tiny.txt").write_text(
        f'--no-index\n--find-links "{kit.folder}"\ntiny=={version} --hash=sha256:{digest}\n'
    )


@pytest.mark.fault("check-mode")
def test_second_time_changes_nothing_and_another_lock_replaces_the_first(kit: Kit) -> None:
    wheel(kit, "1.0")
    lacking = os.geteuid() == 0
    environment(kit, PYTHON_SYSTEM.replace("[dash]", f"[dash, {ABSENT}]" if lacking else "[dash]"))
    checked = build(kit, "--check")
    assert (checked.code, checked.recap["changed"]) == (0, 1 + lacking), checked.output
    assert checked.printed(f"Debian packages: {ABSENT}") == lacking
    assert not (kit.folder / ".provision").exists()

    environment(kit, PYTHON_SYSTEM)
    prefix = kit.folder / ".provision/tiny"
    prefix.mkdir(parents=True)
    (prefix / "lock.txt").write_text("tiny==0.9\n")
    (prefix / "left over").touch()
    built = build(kit)
    assert built.code == 0, built.output
    assert not (prefix / "left over").exists()
    assert (prefix / "lock.txt").read_text() == (kit.folder / "tiny.txt").read_text()
    assert (prefix / "bin/tiny").read_bytes() == Path("/bin/sh").read_bytes()
    again = kit.play("playbooks/build.yml")
    assert (again.code, again.recap["changed"]) == (0, 0), again.output
    checked = kit.play("playbooks/build.yml", "--check")
    assert (checked.code, checked.recap["changed"]) == (0, 0), checked.output


def ordinary_user(kit: Kit) -> tuple[str, ...]:
    if os.geteuid() != 0:
        return ()
    nobody = pwd.getpwnam("nobody")
    for path in [kit.folder.parent, *kit.folder.parent.rglob("*")]:
        os.chown(path, nobody.pw_uid, nobody.pw_gid, follow_symlinks=False)
    top = kit.folder.parent
    identity = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
    return (*identity, "env", f"HOME={top}", f"ANSIBLE_REMOTE_TMP={top}/tmp")


@pytest.mark.fault("not-root")
def test_a_user_gets_the_missing_packages_and_the_command_that_installs_them(kit: Kit) -> None:
    """The control is last: no package is missing."""
    environment(kit, SYSTEM.replace("apt: [dash]", f"apt: [dash, {ABSENT}]"))
    command = ordinary_user(kit)
    played = build(kit, command=command)
    assert played.code == 2
    assert played.printed(f"only root can install them: {ABSENT} Nothing was changed.")
    assert played.printed(
        "apt-get update && apt-get install --no-install-recommends --yes " + ABSENT
    )
    assert played.recap["changed"] == 1, "the run was created"
    assert not (kit.run() / "software.json").exists()
    environment(kit, SYSTEM)
    played = kit.play("playbooks/build.yml", command=command)
    assert played.code == 0, played.output
    assert (kit.run() / "software.json").exists()


@pytest.mark.core("the play that installs programs")
@pytest.mark.fault("program-missing")
def test_missing_program_is_named_and_a_run_keeps_its_programs(kit: Kit) -> None:
    """The control of the fault: with the program the same command continues."""
    program = kit.folder / "sh"
    environment(kit, SYSTEM.replace("/bin/sh", str(program)))
    played = kit.play("acceptance.yml")
    assert played.code == 2
    assert played.printed(f"no such program: {program}")
    faults = [(each["nodes"], each["code"]) for each in kit.verdict()["stage_faults"]]
    assert faults == [("localhost", "REFUSED")]
    assert kit.verdict()["coverage"]["measured"] == 0
    shutil.copy("/bin/sh", program)
    assert build(kit).code == 0
    software = (kit.run() / "software.json").read_bytes()
    with program.open("ab") as file:
        file.write(b"another build")
    played = kit.play("playbooks/build.yml")
    assert played.code == 2
    assert played.printed("programs or libraries of shell that changed")
    assert (kit.run() / "software.json").read_bytes() == software


def test_unknown_origin_is_refused(kit: Kit) -> None:
    played = build(kit, "-e", "provision_from=apt")
    assert played.code == 2
    assert played.printed("provision_from")
    assert played.printed("preinstalled")
