"""The checks of the scratch directory on real file systems, before any benchmark."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.roles.alone import planned, play_alone
from tests.roles.kit import DECLARED, Kit, Played
from tests.roles.test_provision import ordinary_user

pytestmark = [pytest.mark.slow, pytest.mark.root]


@pytest.fixture
def tmpfs(kit: Kit) -> Iterator[Kit]:
    """Yield a kit with its scratch on a tmpfs of 32 MiB; the cases need 64 MiB and 5 %."""
    kit.scratch.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "none", kit.scratch], check=True)
    yield kit
    subprocess.run(["umount", "--lazy", kit.scratch], check=True)


def grow(kit: Kit) -> None:
    subprocess.run(["mount", "-o", "remount,size=128m", kit.scratch], check=True)


def check(kit: Kit, *arguments: str) -> Played:
    return kit.play("playbooks/plan.yml", "playbooks/scratch.yml", *arguments)


def set_run_user(kit: Kit) -> None:
    """Set the user of the role scratch. The other roles use the user of the play."""
    variables = kit.folder / "inventory/local/group_vars/local/scratch.yml"
    variables.write_text("scratch_user: nobody\n")


@pytest.mark.fault("fault-before-the-jobs")
def test_scratch_without_room_is_refused_before_any_benchmark(tmpfs: Kit) -> None:
    """The verdict names the node. With room, the same stage accepts and leaves it empty."""
    tmpfs.partition(scratch={"path": str(tmpfs.scratch), "type": "tmpfs", "off_root": True})
    played = tmpfs.play("acceptance.yml")
    assert played.code == 2
    found = "32.0 MiB available; accepted: 67.2 MiB, for the 64.0 MiB"
    assert played.printed(found)
    assert not played.printed("token")
    assert not played.printed("Error while evaluating")
    assert not (tmpfs.run() / "workdir/steps").exists()
    assert list(tmpfs.scratch.iterdir()) == []
    verdict = tmpfs.verdict()
    (fault,) = verdict["stage_faults"]
    assert (fault["stage"], fault["nodes"]) == ("scratch", "localhost")
    assert fault["code"] and found in fault["text"]
    assert verdict["coverage"]["measured"] == 0 < verdict["coverage"]["expected"]
    assert played.printed(f"worst: localhost: scratch: {fault['code']}: ")
    assert played.printed("next: ansible-playbook acceptance.yml -i inventory/local -l local ")
    assert (tmpfs.run() / "report.html").exists()

    grow(tmpfs)
    accepted = tmpfs.play("playbooks/scratch.yml")
    assert accepted.code == 0, accepted.output
    assert list(tmpfs.scratch.iterdir()) == []
    assert "tmpfs" in (tmpfs.run() / "scratch.probe").read_text()


def test_wrong_type_on_the_root_device_is_refused_and_not_created(kit: Kit) -> None:
    kit.partition(scratch={"path": str(kit.scratch), "type": "lustre", "off_root": True})
    played = check(kit)
    assert played.code == 2
    assert played.printed("accepted: type lustre")
    on_root = Path("/").stat().st_dev == kit.folder.stat().st_dev
    assert played.printed("the device of /") == on_root
    assert not kit.scratch.exists()


@pytest.mark.core("the play of the scratch directory")
def test_scratch_is_created_for_the_run_user(kit: Kit) -> None:
    """A second call changes nothing, and another directory than planned is refused."""
    set_run_user(kit)
    played = check(kit)
    assert played.code == 0, played.output
    assert kit.scratch.owner() == "nobody"
    again = kit.play("playbooks/scratch.yml")
    assert (again.code, again.recap["changed"]) == (0, 0), again.output
    played = kit.play("playbooks/scratch.yml", "-e", f"scratch_dir={kit.scratch}-2")
    assert played.code == 2
    assert played.printed("with which the run was planned")
    assert not Path(f"{kit.scratch}-2").exists()


class TestAlone:
    """The role in a play of another project: two hosts, another folder, another ansible.cfg."""

    @pytest.fixture
    def run(self, kit: Kit) -> Path:
        hosts = {"one": {"ansible_connection": "local"}, "two": {"ansible_connection": "local"}}
        children = {"compute": {"children": {"local": {"hosts": hosts}}}}
        (kit.folder / "inventory/local/hosts.yml").write_text(
            yaml.safe_dump({"all": {"children": children}})
        )
        scratch = {"scratch": {"path": f"{kit.scratch}"}}
        kit.partition(**DECLARED | scratch, origin="emulated")
        return planned(kit)

    def test_it_verifies_the_directory_once_for_all_hosts(self, kit: Kit, run: Path) -> None:
        """Check mode needs no run, and creates nothing."""
        checked = play_alone(kit, "scratch", {"scratch_run": ""}, "--check", "-l", "local")
        assert checked.code == 0, checked.output
        assert checked.printed("writing was not tried")
        assert not kit.scratch.exists()
        played = play_alone(kit, "scratch", {"scratch_run": f"{run}"})
        assert played.code == 0, played.output
        assert kit.scratch.is_dir() and list(kit.scratch.iterdir()) == []
        last = played.output.partition("Mount and verify it on every node] ")[2]
        task, _, recap = last.partition("PLAY RECAP")
        assert "[one]" in task and "two" in recap, "control: both are hosts of the play"
        assert "[two]" not in task
        again = play_alone(kit, "scratch", {"scratch_run": f"{run}"})
        assert (again.code, again.output.count("changed=0")) == (0, 2), again.output

    def test_it_can_be_used_by_another_user_than_root(self, kit: Kit) -> None:
        command = (*ordinary_user(kit), f"XDG_STATE_HOME={kit.folder.parent}/own")
        run = planned(kit, command=command)
        played = play_alone(kit, "scratch", {"scratch_run": f"{run}"}, command=command)
        assert played.code == 0, played.output
        assert kit.scratch.owner() == "nobody"

    @pytest.mark.parametrize(
        ("variables", "settings", "found"),
        [
            ({}, "", "scratch_run: found nothing; accepted: the folder of a run"),
            (
                {"scratch_run": "RUN"},
                "strategy = free\n",
                "strategy: found free (DEFAULT_STRATEGY of ansible.cfg, or of the play); accepted",
            ),
        ],
    )
    def test_a_wrong_use_is_refused_by_its_name(
        self, kit: Kit, run: Path, variables: dict[str, str], settings: str, found: str
    ) -> None:
        given = {name: value.replace("RUN", f"{run}") for name, value in variables.items()}
        played = play_alone(kit, "scratch", given, settings=settings)
        assert played.code == 2
        assert played.printed(found), played.output
        assert not kit.scratch.exists()
