"""Sites: the choice of inventory, hosts and partition, and the checks of the facts."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.folders import ROOT

from proofmark.common.errors import BadInput
from proofmark.site.inventory import Site, choose_inventory, load_site

PARTITION: dict[str, Any] = {
    "hardware": "discovered",
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
    def test_the_inventory_is_given_or_in_the_environment(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "inventory" / "knl").mkdir(parents=True)
        path = Path("inventory/knl")
        assert choose_inventory(["inventory/knl"], {}) == path
        assert choose_inventory([], {"PROOFMARK_SITE": "knl"}) == path
        assert choose_inventory(["inventory/knl/"], {"PROOFMARK_SITE": "knl"}) == path

    @pytest.mark.fault("two-sites")
    @pytest.mark.parametrize(
        ("given", "environment"),
        [
            (["inventory/a", "inventory/b"], {}),
            (["inventory/a,inventory/b"], {}),
            (["inventory/a"], {"PROOFMARK_SITE": "b"}),
        ],
    )
    def test_two_sites_are_refused(self, given: list[str], environment: dict[str, str]) -> None:
        message = r"-i: found 2 sites \(inventory/a, inventory/b\); accepted: exactly one site"
        with pytest.raises(BadInput, match=message):
            choose_inventory(given, environment)

    def test_no_site_is_refused(self) -> None:
        with pytest.raises(BadInput, match="-i: found no site; accepted: exactly one site"):
            choose_inventory([], {})

    def test_a_missing_site_is_refused_with_the_nearest(self, inventory: Path) -> None:
        with pytest.raises(BadInput, match=r"sit, did you mean 'site'\?; accepted: site"):
            choose_inventory([str(inventory.with_name("sit"))], {})


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
        message = "-l: found 'a:b': hosts of a, b; accepted: hosts of exactly one partition"
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
            ({"hardware": "guessed"}, "partition.hardware"),
            ({"origin": "predicted"}, "partition.origin: found 'predicted'"),
            ({"limits": [{"case": "hpl"}]}, "partition.limits.0.metric: found nothing"),
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
            ({"run_user": "no-such-user"}, os.geteuid()),  # `validate` refuses it
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
        same = load_site(inventory, "a", {"provision_from": None, "scratch_dir": None})
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
        limits = [{"case": "hpl", "metric": "rmax", "source": "s", "value": 1.5, "at_least": 1}]
        facts(inventory, "a", {**PARTITION, "limits": limits})
        site = load_site(inventory, "a")
        assert Site.model_validate_json(site.model_dump_json()) == site


def test_the_local_machine_is_a_site() -> None:
    site = load_site(ROOT / "inventory" / "local", "local")
    assert (site.hosts, site.connection) == (("localhost",), "local")
    assert site.partition.hardware == "discovered"
