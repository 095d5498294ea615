"""Sites: the choice of inventory, hosts and partition, and the checks of the facts."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from tests.fixtures.kit import write_contract
from tests.folders import ROOT

from proofmark.common.errors import BadInput
from proofmark.site.choice import LINK, choose_site, chosen_site, refuse_sources
from proofmark.site.inventory import Site, choose_inventory, load_site, load_sites

PARTITION: dict[str, Any] = {
    "environment": "local",
    "provision_from": "system",
    "scheduler": "none",
    "scratch": {"path": "/scratch"},
}


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    """Return an inventory with the partitions a (two hosts) and b (one host)."""
    hosts = {"n1": {"ansible_connection": "local"}, "n2": {}}
    groups = {"a": {"hosts": hosts}, "b": {"hosts": {"m1": {}}}}
    write(tmp_path / "site" / "hosts.yml", {"all": {"children": {"compute": {"children": groups}}}})
    for name in groups:
        facts(tmp_path / "site", name, PARTITION)
    return tmp_path / "site"


def write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def facts(inventory: Path, name: str, partition: object) -> None:
    write(inventory / "group_vars" / name / "partition.yml", {"partition": partition})


def refusal(inventory: Path, limit: str = "a") -> str:
    with pytest.raises(BadInput) as error:
        load_site(inventory, limit)
    return str(error.value)


class TestChoice:
    @pytest.fixture
    def kit(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Return a checkout with two sites; it is the current folder."""
        for name in ("knl", "skl"):
            write(tmp_path / "inventory" / name / "hosts.yml", {"all": {}})
        (tmp_path / "ansible.cfg").touch()
        monkeypatch.chdir(tmp_path)
        return tmp_path

    def test_the_inventory_is_given_or_chosen(self, kit: Path) -> None:
        given = choose_inventory(["inventory/skl/"], lambda: kit)
        assert (given.folder, given.source) == (Path("inventory/skl"), Path("inventory/skl"))
        choose_site(kit, kit / "inventory/knl")
        assert choose_inventory([], lambda: kit).folder == kit / "inventory/knl"
        assert choose_inventory(["inventory/skl"], lambda: kit).folder == Path("inventory/skl")
        choose_site(kit, Path("inventory/skl"))
        assert (kit / LINK).readlink() == Path("inventory/skl")
        assert chosen_site(kit) == kit / "inventory/skl"

    def test_the_link_stands_for_its_site(self, kit: Path, tmp_path: Path) -> None:
        """A play names the link; the name of the site is that of the folder."""
        choose_site(kit, kit / "inventory/knl")
        assert choose_inventory([f"{kit / LINK}"], lambda: kit).folder.name == "knl"
        other = tmp_path.with_name(f"{tmp_path.name}-elsewhere") / "mine"
        write(other / "hosts.yml", {"all": {}})
        choose_site(kit, other)
        assert choose_inventory(["site"], lambda: kit).folder == other

    @pytest.mark.parametrize("name", ["hosts.yml", "./hosts.yml"])
    def test_a_file_of_a_site_stands_for_the_site(self, kit: Path, name: str) -> None:
        made = choose_inventory([f"inventory/knl/{name}"], lambda: kit)
        assert made.folder == kit / "inventory/knl"
        assert made.source == Path("inventory/knl/hosts.yml")

    @pytest.mark.parametrize(
        ("place", "given"),
        [
            ("elsewhere/deep", "../../kit/inventory/knl"),
            ("elsewhere/deep", "../../kit/inventory/knl/hosts.yml"),
            ("elsewhere/deep", "../../kit/./inventory/skl/../knl/"),
            ("kit/inventory/knl", "."),
            ("kit/inventory/knl/group_vars", ".."),
            ("kit/inventory/skl", "../knl"),
        ],
    )
    def test_a_relative_path_stands_for_the_site(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, given: str
    ) -> None:
        """Ansible names its files without `..`; the site has the name of its folder."""
        knl = tmp_path / "kit/inventory/knl"
        for folder in ("elsewhere/deep", "kit/inventory/skl", "kit/inventory/knl/group_vars"):
            (tmp_path / folder).mkdir(parents=True)
        hosts: dict[str, Any] = {"compute": {"children": {"a": {"hosts": {"n1": {}}}}}}
        write(knl / "hosts.yml", {"all": {"children": hosts}})
        facts(knl, "a", PARTITION)
        monkeypatch.chdir(tmp_path / place)
        site = load_site(choose_inventory([given], lambda: tmp_path), "a")
        assert (site.name, site.hosts) == ("knl", ("n1",))
        assert load_site(Path(given), "a").name == "knl"

    @pytest.mark.fault("two-sites")
    @pytest.mark.parametrize("given", [["inventory/a", "inventory/b"], ["inventory/a,inventory/b"]])
    def test_two_sites_are_refused(self, kit: Path, given: list[str]) -> None:
        message = r"-i: found 2 sites \(inventory/a, inventory/b\); accepted: exactly one site"
        with pytest.raises(BadInput, match=message):
            choose_inventory(given, lambda: kit)

    def test_no_site_is_refused_with_the_command_that_chooses_one(self, kit: Path) -> None:
        with pytest.raises(BadInput) as refused:
            choose_inventory([], lambda: kit)
        assert str(refused.value) == (
            "-i: found no site, and none is chosen; accepted: exactly one site: "
            f"-i inventory/<site>, or `make site SITE=<site>` in {kit}, which chooses one of "
            "knl, skl"
        )

    @pytest.mark.parametrize(
        ("name", "found"),
        [
            ("sk", "no folder {kit}/inventory/sk, did you mean 'skl'?; accepted: one of knl, skl"),
            ("", "accepted: one of knl, skl"),
        ],
    )
    def test_a_site_that_does_not_exist_is_not_chosen(
        self, kit: Path, name: str, found: str
    ) -> None:
        with pytest.raises(BadInput) as refused:
            choose_site(kit, kit / "inventory" / (name or "none"))
        assert found.format(kit=kit) in str(refused.value)
        assert not (kit / LINK).is_symlink()

    def test_a_chosen_site_that_was_removed_is_refused(self, kit: Path) -> None:
        choose_site(kit, kit / "inventory/knl")
        shutil.rmtree(kit / "inventory/knl")
        with pytest.raises(BadInput, match=r"a link to .*/inventory/knl, which is no folder"):
            choose_inventory([], lambda: kit)

    def test_a_file_with_the_name_of_the_link_is_kept(self, kit: Path) -> None:
        (kit / LINK).write_text("mine")
        with pytest.raises(BadInput, match="a file or folder"):
            choose_site(kit, kit / "inventory/knl")
        assert (kit / LINK).read_text() == "mine"

    def test_a_missing_site_is_refused_with_the_nearest(self, inventory: Path) -> None:
        with pytest.raises(BadInput, match=r"sit, did you mean 'site'\?; accepted: site"):
            choose_inventory([str(inventory.with_name("sit"))], Path.cwd)

    @pytest.mark.parametrize(
        ("sources", "config", "found"),
        [
            (["a", "b"], "", "-i: found 2 sites (a, b); accepted: exactly one site"),
            (["n1,"], "", "-i: found 'n1,', a list of hosts; accepted: exactly one site"),
            (["{kit}/site"], "{kit}/ansible.cfg", "-i: found no site, and none is chosen"),
            (["/etc/ansible/hosts"], "", "-i: found no site, and none is chosen"),
            (["{kit}/inventory/kn"], "", "-i: found no inventory {kit}/inventory/kn, did you mean"),
        ],
    )
    def test_other_inventories_of_a_play_are_refused(
        self, kit: Path, sources: list[str], config: str, found: str
    ) -> None:
        given = [source.format(kit=kit) for source in sources]
        with pytest.raises(BadInput) as refused:
            refuse_sources(given, kit, config.format(kit=kit))
        assert str(refused.value).startswith(found.format(kit=kit))

    def test_a_chosen_site_that_ansible_does_not_read_is_named(self, kit: Path) -> None:
        choose_site(kit, kit / "inventory/knl")
        refuse_sources([f"{kit}/site"], kit, f"{kit}/ansible.cfg")
        with pytest.raises(BadInput) as refused:
            refuse_sources(["/etc/ansible/hosts"], kit, "/etc/ansible/ansible.cfg")
        assert str(refused.value) == (
            "-i: found no site: Ansible reads /etc/ansible/ansible.cfg, and not the file of the "
            f"checkout; accepted: -i {kit}/inventory/knl, or ANSIBLE_CONFIG={kit}/ansible.cfg for "
            "the chosen site"
        )


class TestLimit:
    def test_a_partition_gives_its_hosts_and_facts(self, inventory: Path) -> None:
        site = load_site(inventory, "a")
        assert (site.name, site.partition_name, site.hosts) == ("site", "a", ("n1", "n2"))
        assert (site.connection, load_site(inventory, "n1").connection) == ("ssh", "local")
        assert site.partition.scratch.path == "/scratch"

    @pytest.mark.parametrize(
        ("limit", "hosts"),
        [("n2", ("n2",)), ("a:!n1", ("n2",)), ("n*", ("n1", "n2")), ("b", ("m1",))],
    )
    def test_a_pattern_of_ansible_gives_its_hosts(
        self, inventory: Path, limit: str, hosts: tuple[str, ...]
    ) -> None:
        assert load_site(inventory, limit).hosts == hosts

    @pytest.mark.parametrize("limit", ["c", "localhost", "a:&b"])
    def test_no_host_is_refused(self, inventory: Path, limit: str) -> None:
        assert refusal(inventory, limit).startswith(f"-l: found {limit!r}: no host; accepted: ")

    def test_hosts_of_two_partitions_are_refused(self, inventory: Path) -> None:
        message = (
            "-l: found 'a:b': hosts of a, b; accepted: hosts of exactly one partition, as -l a"
        )
        assert refusal(inventory, "a:b") == message

    def test_an_invalid_inventory_is_refused(self, tmp_path: Path) -> None:
        write(tmp_path / "site" / "hosts.yml", ["no", "inventory"])
        with pytest.raises(BadInput):
            load_site(tmp_path / "site", "a")


class TestFacts:
    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            (
                {"schedular": "x"},
                "partition.schedular: found unknown key, did you mean 'scheduler'",
            ),
            ({"scratch": {"pth": "/x"}}, "partition.scratch.pth: found unknown key, did you mean"),
            ({"scratch": {}}, "partition.scratch.path: found nothing; accepted: "),
            ({"scratch": {"path": "x"}}, "partition.scratch.path: found 'x'"),
            ({"node": "guessed"}, "partition.node"),
            (
                {"node": {"topology": "pu:1"}},
                "partition.node.cpu_model: found nothing; accepted: a name, because topology",
            ),
            (
                {"node": {"memory": {"modules": 8, "module_bytes": 2**33, "bytes": 2**36}}},
                "node.memory.bytes: found 68719476736; accepted: not with module_bytes",
            ),
            (
                {
                    "node": {"rails": {"rate": 1e9}, "sources": {"rails": "x"}},
                    "fabric": {"rate": 2e9},
                },
                "fabric.rate: found 2000000000.0; accepted: the rate of node.rails.rate",
            ),
            ({"origin": "predicted"}, "partition.origin: found 'predicted'"),
            ({"limits": []}, "partition.limits: found unknown key; accepted: one of "),
        ],
    )
    def test_a_mistake_is_named_with_file_and_key(
        self, inventory: Path, changes: dict[str, Any], expected: str
    ) -> None:
        facts(inventory, "a", {**PARTITION, **changes})
        message = refusal(inventory)
        assert expected in message
        assert message.startswith(f"{inventory}/group_vars/a")

    def test_a_partition_without_facts_is_refused(self, inventory: Path) -> None:
        (inventory / "group_vars" / "a" / "partition.yml").unlink()
        assert refusal(inventory).startswith(f"{inventory}/group_vars/a: partition: found nothing")

    def test_facts_may_be_templates_of_other_variables(self, inventory: Path) -> None:
        write(inventory / "group_vars" / "all.yml", {"user": "me"})
        facts(inventory, "a", {**PARTITION, "scratch": {"path": "/scratch/{{ user }}"}})
        path = load_site(inventory, "a").partition.scratch.path
        assert (path, type(path)) == ("/scratch/me", str)

    def test_a_path_has_the_number_of_the_user_who_runs_the_benchmarks(
        self, inventory: Path
    ) -> None:
        shared = {"scratch": {"path": "/tmp/p-{uid}"}}
        further = {"file_systems": [{"name": "fast", "path": "/fast/{uid}"}]}
        for user, number in (
            ({}, os.geteuid()),
            ({"run_user": "nobody"}, pwd.getpwnam("nobody").pw_uid),
            ({"run_user": "no-such-user"}, os.geteuid()),  # `check` refuses it
        ):
            facts(inventory, "a", {**PARTITION, **shared, **further, **user})
            partition = load_site(inventory, "a").partition
            assert partition.scratch.path == f"/tmp/p-{number}"
            assert partition.scratches["fast"].path == f"/fast/{number}"
            given = load_site(inventory, "a", {"scratch_dir": "/x/{uid}"}).partition
            assert given.scratch.path == f"/x/{number}"

    def test_extra_variables_replace_values_of_the_inventory(self, inventory: Path) -> None:
        changed = {"provision_from": "spack", "scratch_dir": "/other"}
        partition = load_site(inventory, "a", changed).partition
        assert (partition.provision_from, partition.scratch.path) == ("spack", "/other")
        found = load_site(inventory, "a", changed).replaced
        assert {name: value for name, (_, value) in found.items()} == changed
        assert all(stated and stated != value for stated, value in found.values())
        known = {name: stated for name, (stated, _) in found.items()}
        assert load_site(inventory, "a", known).replaced == {}
        same = load_site(inventory, "a", {"provision_from": None, "scratch_dir": None})
        assert same.replaced == {}
        assert same == load_site(inventory, "a")

    @pytest.mark.parametrize("given", ["login1", ["login1", "n2-ib.site.org"], "{{ 'login' }}1"])
    def test_a_host_may_declare_names_that_it_reports(self, inventory: Path, given: object) -> None:
        write(inventory / "host_vars" / "n2.yml", {"proofmark_aliases": given})
        aliases = load_site(inventory, "a").aliases
        assert aliases["n1"] == [os.uname().nodename]  # connection local
        assert aliases["n2"] == (given if isinstance(given, list) else ["login1"])

    @pytest.mark.parametrize("given", ["a b", "$(id)", "", "@all", "-x", "(1)"])
    def test_a_wrong_alias_is_refused(self, inventory: Path, given: str) -> None:
        write(inventory / "host_vars" / "n2.yml", {"proofmark_aliases": given})
        assert "n2.proofmark_aliases" in refusal(inventory)

    def test_a_site_is_unchanged_after_json(self, inventory: Path) -> None:
        limit = {"case": "hpl", "metric": "rmax", "source": "s", "value": 1.5, "at_least": 1}
        write_contract(inventory, [limit])
        site = load_site(inventory, "a")
        assert site.items["items.0"].value == 1.5
        assert Site.model_validate_json(site.model_dump_json()) == site


class TestContract:
    LIMIT: ClassVar[dict[str, Any]] = {
        **{"case": "hpl", "metric": "rmax", "source": "annex 2", "value": 1.5, "at_least": 1}
    }

    @pytest.mark.fault("limit-selects-nothing")
    @pytest.mark.parametrize("limit", ["a", "b", "compute"])
    def test_an_item_of_no_partition_is_refused(self, inventory: Path, limit: str) -> None:
        """Under each limit: nothing would ever judge it."""
        path = write_contract(inventory, [{**self.LIMIT, "system": "aa"}])
        with pytest.raises(BadInput) as error:
            load_sites(inventory, limit)
        (mistake,) = error.value.mistakes
        assert mistake.file.startswith(f"{path}:") and mistake.key == "items.0.system"
        assert mistake.found == "'aa', did you mean 'a'?"
        assert mistake.accepted == "a partition: a, b"

    def test_an_item_is_for_its_partition_or_for_all(self, inventory: Path) -> None:
        """The control."""
        write_contract(inventory, [self.LIMIT, {**self.LIMIT, "system": "b"}])
        assert [*load_site(inventory, "a").items] == ["items.0"]
        assert [*load_site(inventory, "b").items] == ["items.0", "items.1"]


def test_the_local_machine_is_a_site() -> None:
    site = load_site(ROOT / "inventory" / "local", "local")
    assert (site.hosts, site.connection) == (("localhost",), "local")
    assert not site.partition.node.topology


def test_ansible_reads_no_file_of_the_kit_beside_the_hosts(tmp_path: Path) -> None:
    """Whatever ansible.cfg is in use. A warning about bytes that are no text ends Ansible."""
    site = tmp_path / "here"
    for folder in ("baselines", "locks"):
        (site / folder).mkdir(parents=True)
        (site / folder / "figures").write_bytes(b"[compute]\nn1 \"\xb5 'x\n")
    (site / "hosts").write_text("[compute:children]\nfat\n[fat]\nn1\n")
    (site / "waivers.json").write_text('{"waivers": []}\n')
    (tmp_path / "ansible.cfg").write_text("[defaults]\n")
    code = (
        "import sys; from pathlib import Path; from proofmark.site.groups import read_groups\n"
        "print(*read_groups(Path(sys.argv[1]), 'all'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(site)],
        cwd=tmp_path,
        env={**os.environ, "ANSIBLE_CONFIG": f"{tmp_path}/ansible.cfg"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("fat\n", "")


@pytest.mark.parametrize("second", ["a/more.yml", "a.yaml", "all.yml", "compute/more.yml"])
def test_facts_in_two_files_are_refused(inventory: Path, second: str) -> None:
    """Ansible drops the dictionary of one file without a word."""
    write(inventory / "group_vars" / second, {"partition": {"family_level": 0.01}})
    with pytest.raises(BadInput, match=r"partition: found defined in 2 files") as caught:
        load_site(inventory, "a")
    assert second in str(caught.value) and "a/partition.yml" in str(caught.value)
    write(inventory / "group_vars" / second, {"other": 1})
    assert load_site(inventory, "a").partition_name == "a"


@pytest.mark.parametrize("level", [0, 1e-300, 0.9])
def test_a_level_that_judges_nothing_is_refused(inventory: Path, level: float) -> None:
    facts(inventory, "a", {**PARTITION, "family_level": level})
    with pytest.raises(BadInput, match="family_level"):
        load_site(inventory, "a")
