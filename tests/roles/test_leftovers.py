"""What a run of each play leaves outside of its folders: nothing."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.fixtures.place import open_kit
from tests.folders import ROOT
from tests.roles.kit import Kit

from proofmark.packages.survey.inventory_files import LOCAL_TMP

PRIVATE = Path(__file__).with_name("private.sh")
HOME = pwd.getpwuid(os.geteuid()).pw_dir
WATCHED = ("/tmp", "/var/tmp", "/dev/shm", HOME)
OF_PROGRAMS = {f"{HOME}/{name}" for name in (".ansible", ".cache", ".config")}
"""The home of Ansible, which is empty, and the folders of `FONTS`."""
FONTS = tuple(f"{HOME}/{name}/matplotlib" for name in (".cache", ".config"))
"""The fonts that matplotlib found."""
WORDS = {
    "acceptance.yml": [],
    "gate.yml": ["-e", "accept_unjudged=true"],
    "gate_timer.yml": ["--check"],  # it would install units of this machine
    "mode.yml": ["-e", "mode=quad"],
    "preflight.yml": [],
    "restore.yml": [],
    "validate.yml": [],
}
"""The playbooks that no other playbook imports, with their words."""


def playbooks() -> Iterator[str]:
    """Yield the names of the playbooks that no other playbook imports."""
    imported = set()
    paths = sorted((ROOT / "playbooks").glob("*.yml"))
    for path in paths:
        for play in yaml.safe_load(path.read_text()):
            imported.add(play.get("ansible.builtin.import_playbook"))
    yield from (path.name for path in paths if path.name not in imported)


def in_private(kit: Kit, listing: Path) -> tuple[str, ...]:
    """Return the words before a command whose leftovers are written to `listing`."""
    programs = (open_kit()[0], Path(sys.prefix), Path(sys.base_prefix))
    kept = dict.fromkeys((kit.folder.parent, ROOT, *programs))
    lists = ("\n".join(map(str, paths)) for paths in (kept, WATCHED))
    return ("unshare", "--mount", "sh", f"{PRIVATE}", f"{listing}", *lists)


def left(listing: Path) -> set[str]:
    """Return the paths in `listing` that do not belong to a program of the user."""
    paths = {*listing.read_text().splitlines()} - OF_PROGRAMS
    return {path for path in paths if not path.startswith(FONTS)}


def test_each_playbook_is_run() -> None:
    assert [*WORDS] == [*playbooks()]


@pytest.mark.root
def test_no_play_leaves_a_file_outside_of_its_folders(kit: Kit) -> None:
    listing = kit.folder.parent / "left"
    for playbook, words in WORDS.items():
        played = kit.play(f"playbooks/{playbook}", *words, command=in_private(kit, listing))
        assert "PLAY RECAP" in played.output, played.output
        assert left(listing) == set(), playbook
    assert kit.verdict()["counts"]["PASS"] == 2


@pytest.mark.root
@pytest.mark.fault("left-outside")
def test_what_a_play_leaves_is_listed(kit: Kit) -> None:
    hosts = kit.folder / "inventory/local/hosts.yml"
    former = "{{ lookup('ansible.builtin.config', 'DEFAULT_LOCAL_TMP') }}"
    hosts.write_text(hosts.read_text().replace(LOCAL_TMP, former))
    listing = kit.folder.parent / "left"
    kit.play("playbooks/validate.yml", command=in_private(kit, listing))
    assert any(path.startswith("/var/tmp/ansible-local-") for path in left(listing))
