"""A playbook works with any way to name its site, with any ansible.cfg and from any folder.

Or it ends with one sentence that names the reason and the command.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.roles.alone import started
from tests.roles.kit import DECLARED, Kit

from proofmark.runs.run import open_run, site_of
from proofmark.site.choice import choose_site

pytestmark = pytest.mark.slow

HOSTS: dict[str, object] = {f"n{number:02}": {} for number in range(1, 17)}
NODES: dict[str, object] = {"n": {"hosts": HOSTS}, "other": {"hosts": {"login": {}}}}


@pytest.fixture
def site(kit: Kit) -> Path:
    """Write a site whose topology is a file beside its facts; return its folder."""
    folder = kit.folder / "inventory/mysite"
    facts = folder / "group_vars/n"
    facts.mkdir(parents=True)
    (folder / "hosts.yml").write_text(
        yaml.safe_dump({"all": {"children": {"compute": {"children": NODES}}}})
    )
    source = Path(__file__).parents[1] / "data/hwloc/skl.xml"
    (facts / "node.xml").write_bytes(source.read_bytes())
    node = {**DECLARED["node"], "topology": "node.xml"}
    partition = {**DECLARED, "node": node, "origin": "emulated"}
    (facts / "partition.yml").write_text(yaml.safe_dump({"partition": partition}))
    return folder


WAYS = {
    "a folder": ("n[01-04]", "-i", "inventory/mysite"),
    "an absolute path": ("n[01-04]", "-i", "{kit}/inventory/mysite"),
    "an absolute file": ("n[01-04]", "-i", "{kit}/inventory/mysite/hosts.yml"),
    "a slash": ("n[01-04]", "-i", "inventory/mysite/"),
    "a file": ("n[01:04]", "-i", "inventory/mysite/hosts.yml"),
    "the long option": ("n01,n[02-04]", "--inventory", "./inventory/../inventory/mysite"),
    "the chosen site": ("n:&n[01-04]",),
}
"""The words that name the site. The first word is the limit: Ansible alone selects n02 to n05."""
COVER = ("a file", "the long option", "the chosen site")
"""Each form of a limit. tests/unit/site/test_site.py has each way to name a site."""


@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=() if way in COVER else pytest.mark.soak) for way in WAYS]
)
def test_a_site_is_named_in_any_way(kit: Kit, site: Path, way: str) -> None:
    choose_site(kit.folder, site)
    limit, *words = (word.format(kit=kit.folder) for word in WAYS[way])
    played = started("playbooks/plan.yml", *words, "-l", limit, folder=kit.folder)
    assert played.code == 0, played.output
    assert ("site: mysite, the chosen one" in played.output) == (way == "the chosen site")
    assert kit.run().name.endswith("-quick")
    assert site_of(open_run(kit.run())).hosts == ("n01", "n02", "n03", "n04")


@pytest.mark.fault("limit-reads-as-positions")
def test_a_limit_of_other_names_is_refused(kit: Kit, site: Path) -> None:
    """Other forms are in tests/unit/site/test_limit_patterns.py."""
    played = started("acceptance.yml", "-i", f"{site}", "-l", "n[1-4]", folder=kit.folder)
    assert played.code == 3, played.output
    found = "-l: found 'n[1-4]': reads as names of hosts, and n[1-4] is not in the inv"
    assert played.printed(found)
    assert "TASK" not in played.output


def test_a_listing_of_a_node_set_is_refused_with_the_names(kit: Kit, site: Path) -> None:
    arguments = ("playbooks/plan.yml", "-i", f"{site}", "--list-hosts", "-l")
    played = started(*arguments, "n[01-02]", folder=kit.folder)
    assert played.code == 3
    assert played.printed("-l: found 'n[01-02]'; accepted by a listing: n01,n02")
    named = started(*arguments, "n01,n02", folder=kit.folder)
    assert named.code == 0
    assert "n02" in named.output and "n03" not in named.output


@pytest.mark.parametrize(
    ("setting", "found"),
    [
        ("vars_plugins_enabled = community.none", "VARIABLE_PLUGINS_ENABLED: found community.none"),
        (
            "precedence = all_inventory",
            "VARIABLE_PRECEDENCE: found all_inventory; accepted: a list",
        ),
    ],
)
def test_a_setting_that_hides_the_facts_is_named(
    kit: Kit, site: Path, tmp_path: Path, setting: str, found: str
) -> None:
    """The facts are there, but Ansible does not read them."""
    (tmp_path / "ansible.cfg").write_text(f"[defaults]\n{setting}\n")
    playbook = f"{kit.folder}/playbooks/validate.yml"
    played = started(playbook, "-i", f"{site}", "-l", "n", folder=tmp_path)
    assert played.code == 2
    assert played.printed(f"{tmp_path}/ansible.cfg: {found}"), played.output


@pytest.mark.parametrize(
    ("start", "playbook"),
    [
        ("another folder", "acceptance.yml"),
        ("a link", "playbooks/plan.yml"),
        ("an empty ansible.cfg", "acceptance.yml"),
    ],
)
def test_it_starts_anywhere(
    kit: Kit, site: Path, tmp_path: Path, start: str, playbook: str
) -> None:
    environment, checkout = {}, kit.folder
    if start == "a link":
        checkout = tmp_path / "linked"
        checkout.symlink_to(kit.folder)
    if start == "an empty ansible.cfg":
        (tmp_path / "ansible.cfg").write_text("[defaults]\n")
        environment["ANSIBLE_CONFIG"] = f"{tmp_path}/ansible.cfg"
    played = started(
        *(f"{checkout / playbook}", "-i", f"{site}", "-l", "n[01-04]", "--tags", "plan"),
        folder=tmp_path,
        environment=environment,
    )
    assert played.code == 0, played.output
    assert kit.run().name.endswith("-quick")


@pytest.mark.fault("files-of-another-user")
def test_a_checkout_that_other_users_can_write_is_refused(kit: Kit, site: Path) -> None:
    kit.folder.chmod(0o777)
    words = (f"{kit.folder}/playbooks/plan.yml", "-i", f"{site}", "-l", "n[01-04]")
    played = started(*words, folder=kit.folder, environment={})
    assert played.code == 3, played.output
    assert "a folder that other users can write (777)" in " ".join(played.output.split())
    assert not (kit.folder / "runs").exists()


@pytest.mark.fault("two-sites")
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ((), "found no site, and none is chosen; accepted: exactly one site: -i inventory"),
        (("-i", "inventory/mysit"), "no inventory {kit}/inventory/mysit, did you mean 'mys"),
    ],
)
def test_no_single_site_is_one_sentence(
    kit: Kit, site: Path, words: tuple[str, ...], found: str
) -> None:
    """Two sites are in test_acceptance.py, a list of hosts is in unit/site/test_site.py."""
    played = started("acceptance.yml", *words, folder=kit.folder)
    assert played.code == 3, played.output
    assert played.printed(found.format(kit=kit.folder))
    assert played.output.count("[ERROR]") == 1
    assert "PLAY" not in played.output


def test_the_chosen_site_needs_the_settings_of_the_checkout(
    kit: Kit, site: Path, tmp_path: Path
) -> None:
    choose_site(kit.folder, site)
    played = started(f"{kit.folder}/acceptance.yml", folder=tmp_path)
    assert played.code == 3
    assert played.printed(
        "Ansible reads no ansible.cfg, and not the file of the checkout; accepted"
    )
    assert played.printed(f"ANSIBLE_CONFIG={kit.folder}/ansible.cfg for the chosen site")


def test_an_inventory_that_ansible_cannot_read_is_refused(
    kit: Kit, site: Path, tmp_path: Path
) -> None:
    """Ansible only warns of it, and hosts are missing."""
    (site / "more.yml").write_text("- n1\n")
    for folder in (kit.folder, tmp_path):
        played = started(f"{kit.folder}/acceptance.yml", "-i", f"{site}", folder=folder)
        assert played.code == 3, played.output
        assert played.printed(f"{site}/more.yml: found a file that Ansible cannot read")
