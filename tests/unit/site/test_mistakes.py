"""`proofmark check` finds every mistake of a site, and prints all of them at once."""

from __future__ import annotations

import re
import shutil
from configparser import ConfigParser
from pathlib import Path
from unittest.mock import patch

import pytest
from tests.emulators.bmc.server import Emulator
from tests.folders import ROOT

from proofmark.cli.main import main
from proofmark.machine import preflight
from proofmark.site.groups import NO_HOSTS
from proofmark.software.providers.easybuild import EasyBuild

FACTS = Path("group_vars/cluster/partition.yml")
Edits = dict[str, str]
"""Replacements in the file of the facts, by regular expression."""


@pytest.fixture
def inventory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the template."""
    monkeypatch.chdir(ROOT)
    shutil.copytree(ROOT / "inventory" / "template", tmp_path / "mysite")
    return tmp_path / "mysite"


def edit(inventory: Path, edits: Edits, facts: Path = FACTS) -> None:
    path = inventory / facts
    text = path.read_text(encoding="utf-8")
    for pattern, replacement in edits.items():
        text, times = re.subn(pattern, replacement, text, count=1, flags=re.MULTILINE)
        assert times == 1, pattern
    path.write_text(text, encoding="utf-8")


def add(lines: str) -> Edits:
    """Return a function that adds `lines` to the facts of a partition."""
    return {r"\Z": lines}


def mistakes(capsys: pytest.CaptureFixture[str], inventory: Path, *words: str) -> list[str]:
    """Return the mistakes that `check` prints, of the suite quick unless `words` name one."""
    suite = [] if "--suite" in words else ["--suite", "quick"]
    code = main(["check", "-i", str(inventory), *suite, *words])
    printed, said = capsys.readouterr()
    assert (code, printed == "") == ((3, True) if said else (0, False))
    return [line.removeprefix("proofmark: ") for line in said.splitlines()]


SPACK = "provision_from: spack"
REDFISH = "  firmware: {back_end: redfish, "
WRONG: dict[str, tuple[Edits, str, str]] = {
    "launcher": (
        add("  launch: {launcher: srum}\n"),
        "partition.launch.launcher: found 'srum', did you mean 'srun'?; accepted: ",
        "openmpi",
    ),
    "archspec-name": (
        {"architecture: .*": "architecture: skylake_avx521"},
        "partition.node.architecture: found 'skylake_avx521', did you mean 'skylake_avx512'?",
        "neoverse_v2",
    ),
    "environment": (
        {"environment: .*": "environment: lokal"},
        "partition.environment: found 'lokal', did you mean 'local'?; accepted: a64fx",
        "tachyon2",
    ),
    "one-system-of-two-nodes": (
        add(f"{REDFISH}bmc: blade}}\n"),
        "partition.firmware.bmc: found the BMC blade for ",
        "a system for each node",
    ),
    "folder-of-no-environment": (
        {"environment: .*": "environment: common"},
        "partition.environment: found 'common'; accepted: a64fx",
        "tachyon2",
    ),
    "scheduler": (
        {"scheduler: .*": "scheduler: slrum"},
        "partition.scheduler: found 'slrum', did you mean 'slurm'?; accepted: ",
        "pbs",
    ),
    "back-end": (
        add("  firmware: {back_end: redfsh}\n"),
        "partition.firmware.back_end: found 'redfsh', did you mean 'redfish'?; accepted: ",
        "manual",
    ),
    "address-of-a-bmc": (
        add(f"{REDFISH}bmc: '{{nod}}-bmc'}}\n"),
        "partition.firmware.bmc: found 'nod', which is not defined, did you mean 'node'?",
        "accepted: node, number, KiB",
    ),
    "open-brace-of-a-bmc": (
        add(f"{REDFISH}bmc: '{{node-idrac'}}\n"),
        "partition.firmware.bmc: found '{node-idrac'; accepted: a closing brace for each op",
        "",
    ),
    "source-of-nothing": (
        {"topology: the offer": "topologi: the offer"},
        "partition.node.sources.topologi: found a fact that nothing has, did you mean 'topology'?",
        "accepted: a key of partition.node, of partition or of partition.facts",
    ),
    "assumption-about-nothing": (
        {"cpu_model: an example": "cpu_modl: an example"},
        "partition.node.assumed.cpu_modl: found a fact that nothing has, did you mean 'cpu_model'?",
        "accepted: a key of partition.node, of partition or of partition.facts",
    ),
    "address-of-no-function": (
        add(f"{REDFISH}bmc: '{{host}}-bmc'}}\n"),
        "partition.firmware.bmc: found 'host', which is not defined; accepted: node, number, KiB",
        "GiB",
    ),
    "lookup-that-fails": (
        {"environment: .*": """environment: "{{ lookup('file', '/no/such') }}\""""},
        """partition.environment: found "{{ lookup('file', '/no/such') }}": The lookup""",
        "accepted: ",
    ),
    "ca-file": (
        add(f"{REDFISH}ca: /no/such/ca.pem}}\n"),
        "partition.firmware.ca: found '/no/such/ca.pem', unreadable: ",
        "accepted: a file of PEM certificates",
    ),
    "run-user": (
        add("  run_user: no-such-user\n"),
        "partition.run_user: found 'no-such-user', no user of this machine",
        "accepted: a user of this machine and of all nodes",
    ),
    "preinstalled-without-programs": (
        {"provision_from: .*": "provision_from: preinstalled"},
        "partition.provision_from: SUITE_LACKS_PROGRAMS: found 'preinstalled', which has os-noise: "
        "quick lacks hpl, intel-mpi-benchmarks, ior, npb, osu-micro-benchmarks, stream; accepted: ",
        "the packages of the suite (`proofmark check` lists the suites that work)",
    ),
    "preinstalled-package": (
        add("  preinstalled: {straem: {prefix: /apps, version: '5'}}\n"),
        "partition.preinstalled.straem: found a package that no case uses, did you mean 'stream'?",
        "osu-micro-benchmarks",
    ),
    "preinstalled-program": (
        add("  preinstalled: {hpl: {prefix: /apps, version: '2', programs: {hpl: bin/x}}}\n"),
        "partition.preinstalled.hpl.programs.hpl: found a program that no case uses, did you mean",
        "accepted: xhpl",
    ),
    "small-array": (
        {"stream_array_size: .*": "stream_array_size: 33554431"},
        "partition.facts.stream_array_size: found 33554431; accepted: at least 33554432: an array",
        "67108864 bytes of all caches of the last level",
    ),
    "type-of-scratch": (
        {"# type: lustre": "type: lustr\n    mount: {point: /scratch, source: x}"},
        "partition.scratch.type: found 'lustr'; accepted: a type as in /proc/mounts",
        "did you mean 'lustre'?",
    ),
}


@pytest.mark.fault("mistake-in-a-site")
@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_has_its_file_and_line(
    inventory: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    edits, start, end = WRONG[name]
    edit(inventory, edits)
    (line,) = mistakes(capsys, inventory)
    place, _, rest = line.partition(": ")
    assert rest.startswith(start)
    assert end in rest
    file, _, number = place.rpartition(":")
    assert Path(file) == inventory / FACTS
    key = rest.partition(":")[0].split(".")[-1]
    assert key in (inventory / FACTS).read_text(encoding="utf-8").splitlines()[int(number) - 1]


def test_right_facts_are_no_mistakes(
    inventory: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The control: the same facts, without the mistakes."""
    assert mistakes(capsys, inventory) == []
    preinstalled = "{stream: {prefix: /apps, version: '5'}, hpl: {prefix: /apps, version: '2'}}"
    edit(inventory, {"stream_array_size: .*": "stream_array_size: 33554432"})
    edit(inventory, add("  launch: {launcher: srun}\n  run_user: nobody\n"))
    with Emulator(["n1"], tmp_path / "bmc") as emulator:
        authorities = emulator.ca
    edit(inventory, add(f"{REDFISH}bmc: '{{node}}-bmc', ca: '{authorities}'}}\n"))
    edit(inventory, add(f"  preinstalled: {preinstalled}\n"))
    edit(inventory, {"provision_from: .*": "provision_from: preinstalled"})
    assert mistakes(capsys, inventory, "--suite", "tune") == []


@pytest.mark.fault("mistake-in-a-site")
def test_all_mistakes_are_printed_at_once(
    inventory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unknown key does not hide mistakes that need other keys."""
    names = ("launcher", "archspec-name", "environment", "back-end", "run-user", "small-array")
    edit(inventory, add("  limitz: []\n"))
    for name in names:
        edit(inventory, WRONG[name][0])
    lines = mistakes(capsys, inventory)
    assert len(lines) == len(names) + 1
    for start in ("partition.limitz: found unknown key", *(WRONG[name][1] for name in names)):
        assert any(line.partition(": ")[2].startswith(start) for line in lines), start


def test_a_missing_fact_makes_no_other_mistake(
    inventory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its placeholder is not checked: the environment skl has no file of the provider system."""
    edit(inventory, {"environment: .*": "environment: skl", "  provision_from: .*\n": ""})
    (line,) = mistakes(capsys, inventory)
    assert "partition.provision_from: found nothing; accepted: a value: a name" in line


@pytest.mark.fault("packages-of-a-suite-missing")
def test_a_suite_whose_packages_the_provider_lacks(
    inventory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = mistakes(capsys, inventory, "--suite", "node")
    assert "SUITE_LACKS_PROGRAMS: found 'system', which has fio, hpcc, intel-mpi-benchmarks" in line
    assert "node lacks hpl, ior, osu-micro-benchmarks, stream; accepted: the packages of th" in line
    assert "did you mean" not in line
    edit(inventory, {"environment: .*": "environment: skl", "provision_from: .*": SPACK})
    assert mistakes(capsys, inventory, "--suite", "node") == []  # the control
    (line,) = mistakes(capsys, inventory, "--suite", "nod")
    assert "did you mean 'node'?" in line


def test_the_list_of_suites_shows_what_each_one_lacks(
    inventory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def lacks() -> dict[str, str]:
        assert main(["check", "-i", str(inventory)]) == 0
        rows = [re.split("  +", line) for line in capsys.readouterr().out.splitlines()]
        assert rows[0][-1] == "lacks"
        return {row[1]: row[-1] for row in rows if row[0] == "cluster"}

    system = lacks()
    assert (system["quick"], system["io"]) == ("–", "ior")
    edit(inventory, {"environment: .*": "environment: skl", "provision_from: .*": SPACK})
    spack = lacks()
    assert (spack["quick"], spack["io"]) == ("–", "–")
    edit(inventory, {SPACK: "provision_from: easybuild"})
    with patch.object(EasyBuild, "refuse_controller"):
        assert lacks() == spack


WITNESSED = """
title: Acceptance
parties: {buyer: the buyer, supplier: the supplier}
items:
  - {number: "1", text: The racks have labels, witnessed: the label of each rack}
"""
TOPOLOGY = r"topology: >-\n.*"
SMALL = "topology: 'pack:1 [numa(memory=8GiB)] l3:1(size=8MiB) core:{cores} pu:1'"


def listed(capsys: pytest.CaptureFixture[str], inventory: Path) -> tuple[set[str], str]:
    """Return the suites in the table of `check`, and all that it printed."""
    assert main(["check", "-i", str(inventory)]) == 0
    printed = capsys.readouterr().out
    rows = [line.split() for line in printed.splitlines()]
    return {row[1] for row in rows if row[:1] == ["cluster"]}, printed


@pytest.mark.fault("suite-does-not-fit")
@pytest.mark.parametrize("cores", [1, 2, 3])
def test_a_suite_that_does_not_fit_the_nodes_does_not_end_the_list(
    inventory: Path, capsys: pytest.CaptureFixture[str], cores: int
) -> None:
    """P3 needs two cores of one socket; each suite of an acceptance runs on any node."""
    every, _ = listed(capsys, inventory)
    edit(inventory, {TOPOLOGY: SMALL.format(cores=cores)})
    suites, printed = listed(capsys, inventory)
    assert suites == every >= {"quick", "full", "io"}
    assert "p3" not in printed, "without a contract, only what is listed is planned"
    (inventory / "contract.yml").write_text(WITNESSED)
    suites, printed = listed(capsys, inventory)
    assert suites == every
    assert ("not here: cluster: p3: " in printed) == (cores == 1)
    alone = mistakes(capsys, inventory, "--suite", "p3")
    assert any("two cores of one socket" in line for line in alone) == (cores == 1)


@pytest.mark.fault("packages-of-a-suite-missing")
def test_a_provider_without_the_packages_of_any_suite(
    inventory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(inventory, {"provision_from: .*": "provision_from: preinstalled"})
    assert main(["check", "-i", str(inventory)]) == 3
    said = capsys.readouterr().err
    assert "found 'preinstalled', which has os-noise: quick lacks hpl, intel-mpi" in said
    assert "accepted: the packages of the suite (`proofmark check` lists the suites" in said


@pytest.mark.fault("limit-with-a-typo")
@pytest.mark.parametrize(
    ("limit", "found"),
    [
        ("clustr", "'clustr': no host, did you mean 'cluster'?"),
        ("cluster:!nod1", "'nod1': no host, did you mean 'node"),
        ("cluster,lcuster", "'lcuster': no host, did you mean 'cluster'?"),
    ],
)
def test_a_wrong_limit_gets_a_suggestion(
    inventory: Path, capsys: pytest.CaptureFixture[str], limit: str, found: str
) -> None:
    (line,) = mistakes(capsys, inventory, "-l", limit)
    assert line.startswith(f"-l: found {found}")
    assert "accepted: hosts or groups of the inventory: all, cluster, compute" in line
    assert main(["plan", "-i", str(inventory), "-l", limit, "--suite", "quick"]) == 3


def test_a_wrong_regular_expression_is_refused(
    inventory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = mistakes(capsys, inventory, "-l", "~node[")
    assert line.startswith("-l: found '~node[': unterminated character set at position 4; accepted")


@pytest.mark.parametrize("limit", ["cluster", "clus*", "node*[0:1]", "cluster:!node*[2]", "~nod.*"])
def test_a_pattern_of_ansible_is_no_wrong_limit(
    inventory: Path, capsys: pytest.CaptureFixture[str], limit: str
) -> None:
    """The control."""
    assert mistakes(capsys, inventory, "-l", limit) == []


def test_swapped_letters_are_preferred(capsys: pytest.CaptureFixture[str]) -> None:
    nurion = str(ROOT / "inventory" / "nurion")
    assert main(["plan", "-i", nurion, "-l", "kln", "--suite", "p2"]) == 3
    assert "'kln': no host, did you mean 'knl'?" in capsys.readouterr().err


@pytest.mark.fault("checkout-on-one-machine")
@pytest.mark.parametrize(
    ("mounts", "folders", "reason"),
    [
        ("none / tmpfs rw 0 0", (), "on a file system in memory (tmpfs)"),
        ("/dev/sda / ext4 rw 0 0", ("/",), "below /"),
    ],
)
def test_a_checkout_that_only_this_machine_sees(
    inventory: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    mounts: str,
    folders: tuple[str, ...],
    reason: str,
) -> None:
    (tmp_path / "mounts").write_text(f"{mounts}\n", encoding="utf-8")
    monkeypatch.setattr(preflight, "MOUNTS", tmp_path / "mounts")
    monkeypatch.setattr(preflight, "IN_MEMORY", frozenset({"tmpfs"}))
    monkeypatch.setattr(preflight, "OF_ONE_MACHINE", folders)
    site = ["-i", str(inventory), "-l", "cluster"]
    for command in (["plan", *site], ["check", *site]):
        assert main(command) == 0
    *table, line = capsys.readouterr().out.splitlines()
    assert any(row.split()[:2] == ["cluster", "quick"] for row in table)
    assert line.startswith(f"no run from here: {ROOT}/runs: found a folder {reason}, which ")
    create = ["plan", *site, "--create", "--runs", str(tmp_path / "runs")]
    assert main(create) == 3
    assert f": found a folder {reason}, which node" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
    hosts = inventory / "hosts.yml"
    text = hosts.read_text(encoding="utf-8")
    hosts.write_text(text + "  vars: {ansible_connection: local}\n", encoding="utf-8")
    assert main(["check", *site]) == 0  # the control: no other machine
    assert "no run from here" not in capsys.readouterr().out


@pytest.mark.parametrize(("site", "limit"), [("SMALL", "cluster"), ("example-epyc", "epyc")])
def test_a_stability_run_of_short_jobs_gets_a_note(
    inventory: Path, capsys: pytest.CaptureFixture[str], site: str, limit: str
) -> None:
    """On small nodes its jobs take seconds, and two weeks have hundreds of thousands of them."""
    edit(inventory, {TOPOLOGY: SMALL.format(cores=2)})
    place = inventory if site == "SMALL" else ROOT / "inventory" / site
    words = ["plan", "-i", f"{place}", "-l", limit, "--suite", "stability"]
    assert main([*words, "--stability-days", "14"]) == 0
    printed = capsys.readouterr().out
    noted = re.search(r"note: stability: each of its [\d,]+ jobs takes \d+ s at most: ", printed)
    assert bool(noted) == (site == "SMALL")


HOSTS = "all:\n  children:\n    compute:\n      children:\n        cluster:\n          hosts:\n"
MISNAMED = {
    "contract.yaml": ("title: x\n", ": found a file that nothing reads; accepted: contract.yml"),
    "contracts.yml": ("title: x\n", ": found a file that nothing reads; accepted: contract.yml"),
    "Locks.yml": ("", ": found a file that nothing reads; accepted: locks"),
    "allowed_signers.txt": ("", ": found a file that nothing reads; accepted: allowed_signers"),
    "hosts.yml": (
        f"{HOSTS}            n[001-064]:\n",
        ":7: hosts: found n[001-064]; accepted: a range with a colon: n[001:064]",
    ),
}


@pytest.mark.parametrize("file", MISNAMED)
def test_a_name_that_ansible_passes_over_is_refused(
    inventory: Path, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text, expected = MISNAMED[file]
    (inventory / file).write_text(text)
    assert mistakes(capsys, inventory) == [f"{inventory}/{file}{expected}"]


MISSPELLED = {
    "reversed": ("hosts.yml", HOSTS + "            n[064:001]:\n", ":7: hosts: found n[064:001]; "),
    "open": ("hosts.yml", HOSTS + "            n[001:064:\n", ":7: hosts: found n[001:064:; "),
    "group": (
        "hosts.yml",
        HOSTS.replace("compute", "compte") + "            n1:\n",
        ": all.children.compute: found no such group, did you mean 'compte'?",
    ),
    "key": (
        "hosts.yml",
        HOSTS.replace("hosts:", "host:") + "            n1:\n",
        ":6: cluster.host: found unknown key, did you mean 'hosts'?",
    ),
    "list": (
        "hosts.yml",
        HOSTS + "            - n1\n",
        ":6: cluster.hosts: found a list; accepted: a mapping",
    ),
    "type": (
        "group_vars/all.yml",
        "gate_node_hours: many\n",
        ":1: gate_node_hours: found 'many'; accepted: a number",
    ),
    "truth": (
        "group_vars/all.yml",
        "our_own: 1\nansible_become: maybe\n",
        ":2: ansible_become: found 'maybe'; accepted: true, false, yes, no, on, off, 1 or 0",
    ),
    "file-of-no-group": (
        "group_vars/clutser.yml",
        "our_own: 1\n",
        ": found variables of no group; accepted: cluster",
    ),
    "folder": ("groupvars", "", ": found a file that nothing reads; accepted: group_vars"),
    "twice": (
        "host_vars/node001.yml",
        "our_own: 1\nour_own: 2\n",
        ":2: our_own: found the key a second time; accepted: each key once",
    ),
    "host-of-two-partitions": (
        "hosts.yml",
        HOSTS + "            n1:\n        other: {hosts: {n1: }}\n",
        ":3: all.children.compute: found n1 in cluster and other; accepted: each host in one group",
    ),
    "host-of-no-partition": (
        "hosts.yml",
        "all: {children: {compute: {hosts: {n1: }}}}\n",
        ":1: all.children.compute: found n1 in no partition; accepted: each host in one group",
    ),
    "two-hosts-on-a-line": (
        "hosts.yml",
        HOSTS + "            n1,n2:\n",
        ":7: cluster.hosts: found 'n1,n2'; accepted: one host on a line, or a range",
    ),
    "list-in-place-of-a-text": (
        "group_vars/all.yml",
        "our_own: 1\nansible_user: [me]\n",
        ":2: ansible_user: found a list; accepted: a text",
    ),
    "list-in-place-of-a-number": (
        "group_vars/all.yml",
        "gate_node_hours: [1]\n",
        ":1: gate_node_hours: found a list; accepted: a number",
    ),
    "variables-in-a-list": (
        "group_vars/all.yml",
        "- our_own: 1\n",
        ":1: found a list; accepted: a mapping: NAME: VALUE",
    ),
    "connection": (
        "group_vars/all.yml",
        "ansible_connection: lokal\n",
        ":1: host node001: ansible_connection: found 'lokal', did you mean 'local'?; accepted: ssh",
    ),
    "vault-without-a-password": (
        "group_vars/all.yml",
        "$ANSIBLE_VAULT;1.1;AES256\n6231\n",
        ": found an encrypted file, and no password for it; accepted: the password of ansible-va",
    ),
    "value-of-a-vault": (
        "group_vars/all.yml",
        "ansible_user: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  6231\n",
        ":1: ansible_user: found ",
    ),
    "section": (
        "hosts",
        "[cluster]\nn1\n[compute:childern]\ncluster\n",
        ":3: compute: found [compute:childern], did you mean 'children'?; accepted: [GROUP], [GR",
    ),
    "child": (
        "hosts",
        "[cluster]\nn1\n[compute:children]\nclutser\n",
        ":4: compute.children: found 'clutser', a group without a section, did you mean 'cluster'?",
    ),
    "variables-of-a-section": (
        "hosts",
        "[cluster]\nn1 ansible_port=ssh\n[compute:children]\ncluster\n",
        ":2: ansible_port: found 'ssh'; accepted: a whole number",
    ),
    "truth-of-a-section": (
        "hosts",
        "[cluster]\nn1\n[compute:children]\ncluster\n[all:vars]\nansible_become=maybe\n",
        ":6: ansible_become: found 'maybe'; accepted: true, false, yes, no, on, off, 1 or 0",
    ),
    "hosts-of-a-section": (
        "hosts",
        "[cluster]\nn1,n2\n[compute:children]\ncluster\n",
        ":2: cluster.hosts: found 'n1,n2'; accepted: one host on a line, or a range",
    ),
    "colon-after-a-host": (
        "hosts",
        "[cluster]\nn1:\n[compute:children]\ncluster\n",
        ":2: cluster.hosts: found 'n1:'; accepted: one host on a line, or a range",
    ),
    "empty-file": (
        "hosts",
        "\n",
        ": all.children.compute: found no such group; accepted: host",
    ),
    "template": (
        "group_vars/all.yml",
        "our_own: {{ other }}\n",
        ":1: found not YAML: a mapping as a key; accepted: quotes around a template",
    ),
}


@pytest.mark.parametrize("name", MISSPELLED)
def test_check_and_plan_name_a_slip_in_the_files_of_ansible(
    inventory: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file, text, expected = MISSPELLED[name]
    (inventory / file).parent.mkdir(exist_ok=True)
    if file == "hosts":
        (inventory / "hosts.yml").unlink()
    (inventory / file).write_text(text, encoding="utf-8")
    (said,) = [each for each in mistakes(capsys, inventory) if each.startswith(f"{inventory}")]
    assert said.startswith(f"{inventory / file}{expected}")
    assert main(["plan", "-i", f"{inventory}", "-l", "cluster"]) == 3
    assert said in capsys.readouterr().err


def test_hosts_in_the_form_of_ini_are_read(
    inventory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Control: a right file of hosts in the form of INI is accepted."""
    (inventory / "hosts.yml").unlink()
    text = "# all\n[cluster]\nnode[001:004] ansible_port=22\n[compute:children]\ncluster\n"
    (inventory / "hosts").write_text(f"{text}[all:vars]\nansible_user = 'me'\n")
    assert mistakes(capsys, inventory) == []


def test_the_check_of_a_contract_names_the_file_with_nearly_its_name(
    inventory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = inventory / "contract.yml"
    words = ["acceptance", "check", "-i", f"{inventory}"]
    assert main(words) == 3
    assert f"{file}: found no such file; accepted: the contract of" in capsys.readouterr().err
    file.with_suffix(".yaml").write_text("title: x\n")
    assert main(words) == 3
    expected = "contract.yaml: found a file that nothing reads; accepted: contract.yml"
    assert expected in capsys.readouterr().err


DEAL = "title: t\nparties: {buyer: A}\nitems:\n  - {number: '1', text: a, {}}\n"
SLIPS_OF_A_CONTRACT = {
    "witness: a power cut": "items.0.witness: found unknown key, did you mean 'witnessed'?",
    "chek: memory, equal: true": "items.0.chek: found unknown key, did you mean 'check'?",
    "check: memry, equal: true": "items.0.check: found 'memry', did you mean 'memory'?",
    "derive: sum, items: ['1'], value: 1, unit: s, at_least: 1": (
        "items.0.derive: found unknown key, did you mean 'derived'?"
    ),
    "case: stream, metrics: triad, value: 1, unit: GB/s, at_least: 1": (
        "items.0.metrics: found unknown key, did you mean 'metric'?"
    ),
    "case: stream, metric: triad, value: 1, unit: GB/s, at_least: 1, of: worse": (
        "items.0.of: found 'worse', did you mean 'worst'?; accepted: median, best, worst"
    ),
    "case: hpl, metric: rmax, rule: rpeak_nominel, at_least: 0.7": (
        "items.0.rule: found 'rpeak_nominel', did you mean 'rpeak_nominal'?"
    ),
}


@pytest.mark.parametrize("item", SLIPS_OF_A_CONTRACT)
def test_a_slip_in_an_item_is_one_line_with_the_nearest_word(
    inventory: Path, item: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A key that is nearly a required one does not also make that one missing."""
    file = inventory / "contract.yml"
    file.write_text(DEAL.replace("{}", item))
    (said,) = mistakes(capsys, inventory)
    assert said.startswith(f"{file}:4: {SLIPS_OF_A_CONTRACT[item]}")


def test_the_role_of_a_signer_has_a_nearest_word(
    inventory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = inventory / "contract.yml"
    deal = DEAL.replace("{}", "witnessed: a power cut")
    file.write_text(f"{deal}signers: {{byer: []}}\n")
    (said,) = mistakes(capsys, inventory)
    accepted = "buyer, supplier, witness, party"
    expected = f"signers.byer: found 'byer', did you mean 'buyer'?; accepted: {accepted}"
    assert said == f"{file}:5: {expected}"


@pytest.mark.parametrize("key", ["hpl_nb: auto", "hpl_nb: 384.5", "hpl_nb: -1"])
def test_a_wrong_fact_is_named_where_it_stands(
    inventory: Path, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The cases compute with it: they were named."""
    edit(inventory, {"hpl_nb: .*": key, "stream_array_size: .*": "stream_array_size: 64M"})
    said = mistakes(capsys, inventory)
    assert len(said) == 2
    (nb,) = (each for each in said if "hpl_nb" in each)
    assert re.match(rf"{inventory / FACTS}:\d+: partition.facts.hpl_nb: found ", nb)
    assert nb.endswith("; accepted: a whole number from 1")
    edit(inventory, {"stream_array_size: .*": "stream_array_size: 64000000"})
    assert main(["plan", "-i", f"{inventory}", "-l", "cluster", "--suite", "quick"]) == 3
    assert nb in capsys.readouterr().err


def test_a_wrong_fact_does_not_hide_what_a_contract_cannot_judge(
    inventory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`plan` names both, as `check` does."""
    edit(inventory, WRONG["small-array"][0])
    words = ["plan", "-i", f"{inventory}", "-l", "cluster", "--suite", "full"]
    item = "{number: A, text: t, case: stream, metric: triad, where: {threads: 99999}"
    deal = (
        f"title: t\nparties: {{buyer: b}}\nitems:\n- {item}, value: 1, unit: MB/s, at_least: 1}}\n"
    )
    (inventory / "contract.yml").write_text(deal)
    assert main(words) == 3
    said = capsys.readouterr().err
    assert "contract.yml:" in said and "99999" in said, said
    assert "partition.facts.stream_array_size: found 33554431" in said, said


def test_a_wrong_back_end_does_not_blame_the_vendor(
    inventory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(inventory, add("  firmware: {back_end: redfsh, vendor: ilo, bmc: '{node}-bmc'}\n"))
    (said,) = mistakes(capsys, inventory)
    assert "partition.firmware.back_end: found 'redfsh', did you mean 'redfish'?" in said


@pytest.mark.parametrize("words", [["cases", "--check", "stream.yml"], ["check", "--siute", "q"]])
def test_an_unknown_argument_is_named_with_the_known_ones(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 3
    (said,) = (each for each in capsys.readouterr().err.splitlines() if "found" in each)
    near = ", did you mean '--suite'?" * (words[0] == "check")
    assert f"proofmark {words[0]}: found {words[-2 if near else -1]!r}{near}; accepted: " in said
    assert "--suite" in said.partition("accepted")[2]
    assert "groups-fd" not in said


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("report_signing_kye: /k", "report_signing_key"),
        ("ansible_usr: me", "ansible_user"),
        ("gate_days: many", "gate_wait_s"),
        ("module_path: /opt\nour_root: /x\nbmc_pass_file: y", ""),
    ],
)
def test_a_variable_that_is_nearly_a_known_one_is_named(
    inventory: Path, text: str, near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The control has variables of the site, of which none is nearly one of the kit."""
    file = inventory / "group_vars/all.yml"
    file.write_text(f"{text}\n", encoding="utf-8")
    assert main(["check", "-i", f"{inventory}", "--suite", "quick"]) == 0
    lines = [each for each in capsys.readouterr().out.splitlines() if f"{file}" in each]
    name, _, _ = text.partition(":")
    start = f"not known: {file}:1: {name}: found no variable that is read, did you mean {near!r}?"
    assert [each.startswith(start) for each in lines] == [True] * bool(near)


@pytest.mark.parametrize("name", ["launcher", "environment", "back-end", "address-of-a-bmc"])
def test_plan_refuses_the_facts_that_check_refuses(
    inventory: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(inventory, WRONG[name][0])
    said = mistakes(capsys, inventory)
    assert main(["plan", "-i", f"{inventory}", "-l", "cluster"]) == 3
    assert [f"proofmark: {each}" for each in said] == capsys.readouterr().err.splitlines()


def test_a_fact_that_no_case_reads_names_the_nearest_one(
    inventory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(inventory, {"stream_array_size: ": "stream_aray_size: "})
    said = mistakes(capsys, inventory)
    expected = "partition.facts.stream_aray_size: found a fact that no case reads, did you mean "
    assert any(f"{expected}'stream_array_size'?" in each for each in said), said


def test_an_undefined_variable_names_the_file_and_the_key(
    inventory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(inventory, {"scheduler: .*": "scheduler: '{{ quue }}'"})
    (said,) = mistakes(capsys, inventory)
    assert re.match(
        rf"{inventory / FACTS}:\d+: partition.scheduler: found '{{{{ quue }}}}': ", said
    )


def test_a_wrong_rate_of_the_node_is_one_line(
    inventory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(inventory, {r"^  node:.*\n": "  node:\n    rails: {rate: 400}\n"})
    (said,) = mistakes(capsys, inventory)
    assert "partition.node.rails.rate: found 400; accepted: a number from 1e+06" in said


def test_ansible_reads_no_file_that_is_beside_the_hosts(
    inventory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`acceptance waive` writes one of them: Ansible took its key for a group, with a warning."""
    settings = ConfigParser()  # ansible-playbook reads them; `check` needs no settings for it
    settings.read(ROOT / "ansible.cfg", encoding="utf-8")
    assert settings["inventory"]["ignore_patterns"] == NO_HOSTS.decode()
    (inventory / "waivers.json").write_text('{"waivers": []}\n', encoding="utf-8")
    assert mistakes(capsys, inventory) == []


TRIAD = "case: stream, metric: triad, unit: GB/s"
BOUND = "GB/s, the bound of triad here"
SHARE = "a share, at most 2; 95 % is 0.95"
MEMORY = r"^    memory: \{"
LATENCY = "case: osu-latency, metric: latency, unit: us"
CORES = "case: hpl, metric: rmax, against: {metric: rmax,"
POSSIBLE = """value: 640, at_least: 1, at_most: 1.5}
  - {number: D, text: d, derived: sum, items: ['1'], unit: MB/s, value: 640000, at_least: 1"""
IMPOSSIBLE: dict[str, tuple[str, Edits, str]] = {
    "percent": (
        "value: 320, at_least: 95",
        {},
        f"items.0.at_least: found 95; accepted: {SHARE}",
    ),
    "megabytes": (
        "value: 320000, at_least: 0.95",
        {},
        f"items.0.at_least: found 320000 × 0.95 = 304000 GB/s; accepted: at most 675.84 {BOUND}",
    ),
    "above-the-bound": (
        "value: 700, at_least: 1",
        {},
        f"items.0.at_least: found 700 × 1 = 700 GB/s; accepted: at most 675.84 {BOUND}",
    ),
    "gigabits": (
        "case: osu-bw, metric: bandwidth, unit: GB/s, value: 400, at_least: 0.95",
        {},
        "items.0.at_least: found 400 × 0.95 = 380 GB/s; accepted: at most 55 GB/s, "
        "the bound of bandwidth here",
    ),
    "milliseconds": (
        f"{LATENCY}, value: 0.0014, at_most: 1",
        {},
        "items.0.at_most: found 0.0014 × 1 = 0.0014 us; accepted: at least 0.01 us, "
        "the bound of latency here",
    ),
    "percent-of-a-latency": (
        f"{LATENCY}, value: 1.4, at_most: 105",
        {},
        f"items.0.at_most: found 105; accepted: {SHARE}",
    ),
    "percent-of-a-file-system": (
        "case: ior, metric: write, unit: GB/s, value: 96, at_least: 95",
        {},
        f"items.0.at_least: found 95; accepted: {SHARE}",
    ),
    "more-than-the-modules": (
        "case: stream, metric: triad, rule: memory_bandwidth, at_least: 1.2",
        {},
        "items.0.at_least: found 1.2; accepted: at most 1.1, the largest share of memory_bandwidth",
    ),
    "no-range": (
        "value: 320, at_least: 1.1, at_most: 0.9",
        {},
        "items.0.at_most: found 0.9; accepted: at least 1.1, as at_least",
    ),
    "no-range-of-nodes": (
        "check: nodes, at_least: 10, at_most: 5",
        {},
        "items.0.at_most: found 5; accepted: at least 10, as at_least",
    ),
    "less-than-nothing": (
        "check: clock, at_most: -1",
        {},
        "items.0.at_most: found -1; accepted: a number ≥ 0",
    ),
    "derived-unit": (
        "value: 320, at_least: 1}\n  - {number: D, text: d, derived: sum, items: ['1'], "
        "unit: us, value: 1, at_least: 1",
        {},
        "items.1.unit: found 'us'; accepted: a unit of its items: GB/s",
    ),
    "bits-of-a-link": (
        "",
        {"rails: .rate: .*}": "rails: {rate: 400.0e+9}"},
        "partition.node.rails.rate: found 400000000000.0; accepted: a number from 1e+06 to "
        "3.2e+11; did you mean 50000000000?",
    ),
    "of-two-processors": (
        "",
        {"flop_per_cycle: 32": "flop_per_cycle: 3584"},
        "partition.node.flop_per_cycle: found 3584; accepted: a number from 1 to 128",
    ),
    "megahertz": (
        "",
        {"clock_hz: 2.0e.9": "clock_hz: 2000"},
        "partition.node.clock_hz: found 2000; accepted: a number from 1e+08 to 1e+10; "
        "did you mean 2000000000?",
    ),
    "percent-of-a-figure": (
        f"{CORES} where: {{blas_kernel: as-installed}}}}, at_least: 50",
        {},
        "items.0.at_least: found 50; accepted: a share, at most 10; 95 % is 0.95",
    ),
    "percent-of-the-cores": (
        f"{CORES} times: '{{ranks * threads}}'}}, at_least: 50",
        {},
        f"items.0.at_least: found 50; accepted: {SHARE}",
    ),
    "more-than-one-direction": (
        "case: osu-bw, metric: bandwidth, rule: link_bandwidth, at_least: 1.2",
        {},
        "items.0.at_least: found 50000 × 1.2 = 60000 MB/s; accepted: at most 55000 MB/s, "
        "the bound of bandwidth here",
    ),
    **{
        derived: (
            f"{item}}}\n  - {{number: D, text: d, derived: {derived}, items: ['1'], "
            f"value: {value}, unit: {unit}, at_least: 1",
            {},
            f"items.1.at_least: found {value} × 1 = {value} {unit}; accepted: at most {bound} "
            f"{unit}, the bound of {derived}: 1 here",
        )
        for derived, item, value, unit, bound in (
            ("sum", f"{TRIAD}, value: 320, at_least: 1", "700000", "MB/s", "675840"),
            ("geometric-mean", f"{TRIAD}, value: 320, at_least: 1", "700", "GB/s", "675.84"),
            ("throughput", f"{LATENCY}, value: 1.4, at_most: 1", "2e+08", "jobs/s", "1e+08"),
        )
    },
    "above-the-servers": (
        "case: ior-easy, metric: write, unit: GB/s, value: 130, at_least: 0.9",
        {},
        "items.0.at_least: found 130 × 0.9 = 117 GB/s; accepted: at most 110 GB/s, "
        "the bound of write here",
    ),
    "above-the-servers-around-the-caches": (
        "case: ior, metric: read, where: {cache: cold}, unit: GB/s, value: 130, at_least: 0.9",
        {},
        "items.0.at_least: found 130 × 0.9 = 117 GB/s; accepted: at most 110 GB/s, "
        "the bound of read here",
    ),
    "channels": (
        "",
        {"channels: 16": "channels: 160"},
        "partition.node.memory.channels: found 160; accepted: at most 16, those of the processors",
    ),
    "many-channels": (
        "",
        {"channels: 16": "channels: 1600"},
        "partition.node.memory.channels: found 1600; accepted: a number from 1 to 256",
    ),
    "memory": (
        "",
        {"channels: 16": "channels: 16, bytes: 10995116277760"},
        "partition.node.memory.bytes: found 10.0 TiB; accepted: 512.0 GiB, as in the topology",
    ),
    **{
        f"check-of-{check}": (
            f"check: {check}, {key}: {wanted}",
            {},
            f"items.0.{key}: found {wanted}; accepted: at most {number}, as the site states",
        )
        for check, key, wanted, number in (
            ("nodes", "at_least", 65, 64),
            ("cores", "value", 128, 112),
            ("sockets", "at_least", 4, 2),
        )
    },
    "cores": (
        "",
        {
            MEMORY: "    cores: 100\n    memory: {",
            "^      memory: ": "      cores: x\n      memory: ",
        },
        "partition.node.cores: found 100, and 112 in the topology; accepted: the same number",
    ),
    **{
        f"user-{number}": (
            "",
            {"path: /lustre/.*": f"path: '{path}'"},
            f"partition.scratch.path: found '{path}'; accepted: a path in which only {{uid}} is "
            "replaced, by the number of the user",
        )
        for number, path in enumerate(
            (
                *("/lustre/$USER", "/lustre/{user}", "/lustre/%u", "/lustre/~", "/lustre/~me/x"),
                *("/lustre/UID", "/lustre/<user>", "/lustre/*", "/lustre/`id -un`"),
            )
        )
    },
}


@pytest.mark.fault("mistake-in-a-site")
@pytest.mark.parametrize("name", [*IMPOSSIBLE, "right"])
def test_what_no_machine_can_have_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    """The control is a limit just below the bound, and what follows from it."""
    monkeypatch.chdir(ROOT)
    shutil.copytree(ROOT / "inventory/example-xeon", tmp_path / "xeon")
    item, edits, expected = IMPOSSIBLE.get(name, (POSSIBLE, {}, ""))
    file = tmp_path / "xeon/group_vars/xeon/partition.yml"
    if item:
        file = tmp_path / "xeon/contract.yml"
        limit = item if item.startswith(("case", "check")) else f"{TRIAD}, {item}"
        number = "number: '1', text: a limit"
        deal = f"title: t\nparties: {{buyer: A}}\nitems:\n  - {{{number}, {limit}}}\n"
        file.write_text(deal, encoding="utf-8")
    edit(tmp_path / "xeon", edits, Path("group_vars/xeon/partition.yml"))
    said = mistakes(capsys, tmp_path / "xeon", "--suite", "node")
    assert bool(said) == bool(expected)
    for line in said:
        assert re.fullmatch(rf"{re.escape(str(file))}:\d+: {re.escape(expected)}", line), line
    assert len(said) <= 1


OF_CASES = {
    "package": (
        "package: steam",
        ":2: package: found 'steam', which nothing provides, did you mean 'stream'?; accepted: ",
    ),
    "program": (
        "program: streem_c",
        ":3: program: found 'streem_c', which nothing provides, did you mean 'stream_c'?",
    ),
    "defaults": (
        "defaults:\n  thread: 1\npackage: stream",
        ":3: defaults.thread: found a default that nothing uses: 'thread', did you mean 'threads'?",
    ),
}


@pytest.mark.fault("mistake-in-a-site")
@pytest.mark.parametrize("key", OF_CASES)
def test_a_name_in_a_case_that_nothing_has_is_refused(
    inventory: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    key: str,
) -> None:
    """The site provides a package that the kit does not have."""
    for name in ("benchmarks", "environments"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("samples"))
    monkeypatch.setenv("PROOFMARK_KIT", f"{tmp_path}")
    (tmp_path / "inventory").mkdir()
    case = tmp_path / "benchmarks/stream.yml"
    edit(tmp_path, {f"^{'package' if key == 'defaults' else key}: .*": OF_CASES[key][0]}, case)
    expected = f"proofmark: {case}{OF_CASES[key][1]}"
    for command in (["cases", "--check"], ["check", "-i", f"{inventory}", "--suite", "quick"]):
        assert main(command) == 3
        said = capsys.readouterr().err.splitlines()
        assert [line for line in said if line.startswith(expected)], said
    if key == "package":
        edit(inventory, add("  preinstalled: {steam: {prefix: /apps, version: '5'}}\n"))
        edit(inventory, {"provision_from: .*": "provision_from: preinstalled"})
        shutil.copytree(inventory, tmp_path / "inventory/mysite")
        main(["cases", "--check"])  # this folder has no site with the systems of references
        assert ": package: " not in capsys.readouterr().err


ON_HOSTS = {
    "facts-of-a-host": (
        {"node001.yml": "partition: {scheduler: slurm}\n"},
        "node001.yml:1: partition: found facts of one host; accepted: group_vars/PARTITION",
    ),
    "port": (
        {"node001.yml": "ansible_port: 99999\n"},
        "node001.yml:1: ansible_port: found '99999'; accepted: a port: a whole number from 1",
    ),
    "one-address": (
        {name: "ansible_host: 10.0.0.1\n" for name in ("node001.yml", "node002.yml")},
        "node001.yml:1: host node002: ansible_host: found '10.0.0.1', by which node001 is reached",
    ),
    "two-addresses": (
        {f"node00{n}.yml": f"ansible_host: 10.0.0.{n}\nour_port: 0\n" for n in (1, 2)},
        "",
    ),
}


@pytest.mark.fault("mistake-in-a-site")
@pytest.mark.parametrize("name", ON_HOSTS)
def test_a_slip_in_the_variables_of_a_host_is_named(
    inventory: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The control has two addresses."""
    files, expected = ON_HOSTS[name]
    (inventory / "host_vars").mkdir()
    for file, text in files.items():
        (inventory / "host_vars" / file).write_text(text)
    said = mistakes(capsys, inventory)
    assert [each.startswith(f"{inventory}/host_vars/{expected}") for each in said] == (
        [True] * bool(expected)
    )


def test_a_wrong_value_of_an_option_names_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    """It was named as a key of the inventory, which has another value."""
    site = ["-i", f"{ROOT}/inventory/template", "-l", "cluster"]
    assert main(["plan", *site, "--provision-from", "sytem"]) == 3
    expected = "proofmark: --provision-from: found 'sytem', did you mean 'system'?; accepted: "
    assert capsys.readouterr().err.startswith(expected)
