"""Declarations of an inventory: hardware without a probe, modes, switch levels, mistakes."""

from __future__ import annotations

import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.fixtures.controllers import sound_controller
from tests.fixtures.kit import Kit, write_contract
from tests.fixtures.shipped import shipped_benchmarks, shipped_site
from tests.folders import ROOT

from proofmark.cli.check import site_checks
from proofmark.cli.inputs import packages_of_kit
from proofmark.cli.main import main
from proofmark.common.errors import BadInput
from proofmark.jobs.job_request import job_mistakes
from proofmark.plan.expansion import make_plan
from proofmark.plan.lacking import Available
from proofmark.plan.sweep import Layouts
from proofmark.plan.validation import SiteChecks, validate
from proofmark.site.fabric import Fabric
from proofmark.site.file_systems import FileSystem
from proofmark.site.inventory import Site, load_site
from proofmark.site.machines import Machine, machines_of
from proofmark.site.node.topology import Topology
from proofmark.software.spack.lock_check import read_target

EXAMPLES = {
    **{name: f"example-{name}" for name in ("xeon", "epyc", "grace")},
    **{name: "example-current" for name in ("rome", "milan", "cascadelake", "icelake")},
    **{name: "example-current" for name in ("turin", "xeon6", "fx700", "power10", "graviton")},
}
"""The inventory of each partition of the examples."""


@cache
def site(inventory: str, limit: str) -> Site:
    """Return a site of the kit. Each site is read once; tests cannot change it."""
    return shipped_site(inventory, limit)


@pytest.mark.parametrize(
    ("limit", "hosts", "first", "last"),
    [
        ("knl", 8305, "knl0001", "knl8305"),
        ("skl", 132, "skl0001", "skl0132"),
        ("tachyon1", 192, "tachyon1-001", "tachyon1-192"),
        ("tachyon2", 3200, "tachyon2-0001", "tachyon2-3200"),
        ("p595", 16, "p595-01", "p595-16"),
    ],
)
def test_the_papers_systems_have_all_their_nodes(
    limit: str, hosts: int, first: str, last: str
) -> None:
    inventory = {"knl": "nurion", "skl": "nurion", "p595": "p595"}.get(limit, "tachyon")
    names = site(inventory, limit).hosts
    assert (len(names), names[0], names[-1]) == (hosts, first, last)


@pytest.mark.parametrize(
    ("mode", "ddr", "mcdram"),
    [  # The sizes of the domains that the operating system must show, in GiB.
        ("a2a-flat", [96], [16]),
        ("hemisphere-flat", [96], [16]),
        ("quadrant-flat", [96], [16]),
        ("quadrant-cache", [96], []),
        ("snc2-flat", [48, 48], [8, 8]),
        ("snc4-flat", [24, 24, 24, 24], [4, 4, 4, 4]),
    ],
)
def test_each_mode_of_a_xeon_phi_has_its_domains(
    mode: str, ddr: list[int], mcdram: list[int]
) -> None:
    machines, _ = machines_of(site("nurion", "knl"))
    sizes: dict[str, list[int]] = {"ddr": [], "mcdram": []}
    machine = machines(mode)
    for domain in machine.topology.numa_domains:
        sizes[domain.kind].append(round(domain.bytes / 2**30))
    assert sizes == {"ddr": ddr, "mcdram": mcdram}
    assert (machine.symbols["cores"], machine.symbols["threads_per_core"]) == (68, 4)
    assert machine.symbols["llc_bytes"] == 34 << 20
    assert machine.symbols["domain_threads"] == 68 // len(ddr) - (mode == "snc4-flat")


def test_the_plan_shows_all_assumed_facts(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["-i", str(ROOT / "inventory" / "p595"), "-l", "p595", "--suite", "p5"]
    assert main(["plan", *arguments]) == 0
    assert "assumed: memory: no paper states the memory" in capsys.readouterr().out


def test_each_partition_has_its_own_plan(capsys: pytest.CaptureFixture[str]) -> None:
    inventory = str(ROOT / "inventory" / "rehearsal")
    assert main(["plan", "-i", inventory, "-l", "knl:skl", "--suite", "quick"]) == 0
    out = capsys.readouterr().out
    (knl,) = re.findall(r"suite: quick, partition: knl, jobs: 1, steps: (\d+),", out)
    (skl,) = re.findall(r"suite: quick, partition: skl, jobs: 1, steps: (\d+),", out)
    assert f"2 partitions: 2 jobs, {int(knl) + int(skl)} steps" in out
    with pytest.raises(BadInput, match="hosts of exactly one partition"):
        load_site(ROOT / "inventory" / "rehearsal", "knl:skl")


def test_the_distance_of_two_hosts_is_their_nearest_common_switch() -> None:
    levels: list[dict[str, Any]] = [
        {"name": "chip", "hosts_per_switch": 2},
        {"name": "card", "hosts_per_switch": 4},
    ]
    fabric = Fabric.model_validate({"levels": levels, "top": "switch", "rack": 8})
    distances = [fabric.distance((0, "a"), (other, "b")) for other in (1, 2, 3, 4)]
    assert distances == ["chip", "card", "card", "switch"]
    assert fabric.location(5) == {"chip": "chip-003", "card": "card-002", "rack": "rack-001"}
    levels[1]["hosts_per_switch"] = 3
    with pytest.raises(ValidationError, match=r"levels\.1\.hosts_per_switch: a multiple of"):
        Fabric.model_validate({"levels": levels})
    levels[1] = {"name": "chip", "hosts_per_switch": 4}
    with pytest.raises(ValidationError, match=r"levels\.0\.name: a name of no other level"):
        Fabric.model_validate({"levels": levels})


def test_memory_of_a_kind_is_local_to_the_cores_in_use() -> None:
    two = Topology.from_lstopo("pack:2 [numa(memory=4GiB)] core:2 pu:1")
    layouts = Layouts(two)
    counts = {"nodes": 1, "ranks": 1, "threads": 2}
    close = layouts.of({"placement": "close"}, counts, "here")
    spread = layouts.of({"placement": "spread"}, counts, "here")
    assert [each.os_index for each in layouts.memory("ddr", close, "here")] == [0]
    assert [each.os_index for each in layouts.memory("ddr", spread, "here")] == [0, 1]
    with pytest.raises(BadInput, match="memory mcdram: found none in the node; accepted: ddr"):
        layouts.memory("mcdram", close, "here")


def machine(kit: Kit) -> Machine:
    symbols = {"cores": 4, "nodes": 2, "memory_bytes": 8 << 30}
    return Machine(symbols, Topology.from_lstopo("pack:2 [numa(memory=4GiB)] core:2 pu:1"))


@pytest.mark.fault("topology-lacks-placement")
def test_a_placement_that_the_node_lacks_is_left_out_and_listed(kit: Kit) -> None:
    kit.case(launch="mpi", sweep={"size": 1, "ranks": 2, "placement": ["same-socket", "2-hop"]})
    made = make_plan(kit.benchmarks(), "quick", kit.site(), machine(kit))
    assert [step.placement for step in made.steps()] == ["same-socket"]
    (why,) = made.left_out
    assert why.startswith("fake: placement 2-hop: a request for two sockets 2 hops apart")
    kit.case(launch="mpi", sweep={"size": 1, "ranks": 2, "placement": "2-hop"})
    with pytest.raises(BadInput, match="two sockets 2 hops apart"):
        make_plan(kit.benchmarks(), "quick", kit.site(), machine(kit))
    kit.case(launch="mpi", sweep={"size": 1, "ranks": 2, "placement": ["same-socket", "close"]})
    assert make_plan(kit.benchmarks(), "quick", kit.site(), machine(kit)).left_out == []


def test_bound_memory_and_file_system_reach_the_command(kit: Kit) -> None:
    kit.case(
        launch="mpi",
        sweep={"size": 1, "memory": ["ddr", "mcdram"], "file_system": "{file_systems}"},
        let={"half": "{bound_bytes / 2}"},
        arguments=["{size}", "{half}", "{scratch}/file"],
    )
    chosen = kit.site()
    notation = "pack:2 [numa(memory=4GiB)] [numa(memory=1GiB)] core:2 pu:1"
    topology = Topology.from_lstopo(notation).of_processor("Xeon Phi")
    seen = Machine({"cores": 4, "nodes": 2}, topology)
    systems = [
        FileSystem(name=f"fs{n}", path=f"{kit.folder}/fs{n}", block_bytes=n << 20) for n in (1, 2)
    ]
    partition = chosen.partition.model_copy(update={"file_systems": systems})
    chosen = chosen.model_copy(update={"partition": partition})
    made = make_plan(kit.benchmarks(), "quick", chosen, seen)
    steps = [(s.membind, s.file_system, s.parameters["fs_block_bytes"]) for s in made.steps()]
    both = [("fs1", 1 << 20), ("fs2", 2 << 20)]
    assert steps == [([domain], *each) for domain in (0, 1) for each in both]
    assert next(made.steps()).arguments[1] == str(float(2 << 30))
    made = make_plan(kit.benchmarks(), "quick", chosen, machine(kit))
    assert "mcdram" in made.left_out[0]


def copied(tmp_path: Path, inventory: str) -> Path:
    target = tmp_path / "inventory" / inventory
    shutil.copytree(ROOT / "inventory" / inventory, target)
    return target


def check(inventory: Path, limit: str = "compute", suite: str | None = None) -> list[str]:
    def packages(site: Site) -> Available | None:
        with sound_controller(site):
            return packages_of_kit(site)

    benchmarks = shipped_benchmarks()
    checks = SiteChecks(site_checks(ROOT), packages, job_mistakes)
    checked = validate(inventory, limit, benchmarks, checks, suite)
    return [f"{mistake}" for mistake in checked.mistakes]


VALID = ["nurion", "tachyon", *sorted(set(EXAMPLES.values()))]


@pytest.mark.parametrize(
    ("inventory", "suite"),
    [
        *((each, "node") for each in VALID),
        *(pytest.param(each, None, marks=pytest.mark.soak) for each in VALID),
    ],
)
def test_the_kits_sites_are_valid(inventory: str, suite: str | None) -> None:
    """A test below checks the site template with all suites, by its command."""
    assert check(ROOT / "inventory" / inventory, suite=suite) == []


@pytest.mark.slow
def test_the_power_595_has_another_system_and_lacks_programs_of_quick() -> None:
    programs, system = sorted(check(ROOT / "inventory" / "p595"), key=lambda each: "aix" in each)
    assert "partition.node.operating_system: found 'aix'" in system
    assert "quick lacks ior, osu-micro-benchmarks, stream" in programs


@pytest.mark.parametrize(
    ("limit", "target", "hosts", "cores", "per_core", "domains", "cache_mib", "jobs"),
    [
        ("xeon", "sapphirerapids", 64, 112, 2, 2, 2 * 105, "slurm"),
        ("epyc", "zen4", 128, 192, 2, 8, 2 * 12 * 32, "pbs"),
        ("grace", "neoverse_v2", 32, 144, 1, 2, 2 * 114, "slurm"),
        ("rome", "zen2", 64, 128, 2, 2, 2 * 16 * 16, "slurm"),
        ("milan", "zen3", 64, 128, 2, 2, 2 * 8 * 32, "slurm"),
        ("cascadelake", "cascadelake", 64, 56, 2, 2, 2 * 38.5, "slurm"),
        ("icelake", "icelake", 64, 80, 2, 2, 2 * 60, "slurm"),
        ("turin", "zen5", 64, 256, 2, 2, 2 * 16 * 32, "slurm"),
        ("xeon6", "sapphirerapids", 64, 256, 2, 2, 2 * 504, "slurm"),
        ("fx700", "a64fx", 16, 48, 1, 4, 4 * 8, "slurm"),
        ("power10", "power10le", 16, 48, 8, 4, 48 * 8, "lsf"),
        ("graviton", "neoverse_v1", 32, 64, 1, 1, 32, "slurm"),
    ],
)
def test_the_example_sites_follow_from_their_topologies(
    limit: str,
    target: str,
    hosts: int,
    cores: int,
    per_core: int,
    domains: int,
    cache_mib: float,
    jobs: str,
) -> None:
    """No inventory states a number of cores. The array of STREAM exceeds the caches four times."""
    example = site(EXAMPLES[limit], limit)
    partition = example.partition
    assert (len(example.hosts), partition.scheduler) == (hosts, jobs)
    assert partition.node.architecture == target
    assert read_target(ROOT / "environments" / partition.environment) == target
    assert (partition.node.memory.all_bytes, partition.node.llc_bytes) == (None, None)
    machines, _ = machines_of(example)
    machine = machines(partition.current_mode)
    symbols = machine.symbols
    assert (symbols["cores"], symbols["threads_per_core"]) == (cores, per_core)
    assert len(machine.topology.numa_domains) == domains
    assert symbols["llc_bytes"] == round(cache_mib * 2**20)
    array = int(partition.facts["stream_array_size"])
    assert 8 * array >= 4 * int(symbols["llc_bytes"])
    source = (ROOT / "environments" / partition.environment / "spack.yaml").read_text()
    assert f"stream_array_size={array}" in source


@pytest.mark.parametrize("limit", EXAMPLES)
def test_an_example_site_places_hpl_and_stream_on_all_its_cores(limit: str) -> None:
    example = site(EXAMPLES[limit], limit)
    machines, _ = machines_of(example)
    made = make_plan(shipped_benchmarks(), "node", example, machines)
    topology = machines(example.partition.current_mode).topology
    for case in ("hpl", "stream"):
        of_case = [step for step in made.steps() if step.case == case]
        steps = [step for step in of_case if "domain" not in step.parameters]
        used = [[cpu for rank in step.cpus for cpu in rank.cpus] for step in steps]
        assert used
        for cpus in used:  # one hardware thread of each core
            assert len({topology.core_of[cpu] for cpu in cpus}) == len(cpus) == len(topology.cores)


def test_the_preinstalled_example_names_the_programs_of_all_suites() -> None:
    cases = shipped_benchmarks().cases.values()
    # The kit compiles os-noise. The example has no memory test (fact memory_test).
    others = {"os-noise", "stressapptest"}
    needed = {case.package for case in cases if case.launch != "counted"} - others
    assert needed <= site("example-xeon", "xeon").partition.preinstalled.keys()


def test_the_template_is_a_valid_site(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "-i", str(ROOT / "inventory" / "template")]) == 0
    out = capsys.readouterr().out
    assert {"quick", "node", "links", "system", "burnin", "io", "full"} <= {*out.split()}


def test_an_unknown_provider_is_refused_with_the_accepted_names(tmp_path: Path) -> None:
    inventory = copied(tmp_path, "template")
    file = inventory / "group_vars" / "cluster" / "partition.yml"
    text = file.read_text(encoding="utf-8")
    file.write_text(re.sub("provision_from: .*", "provision_from: spak", text), encoding="utf-8")
    (mistake,) = check(inventory)
    assert "partition.provision_from: found 'spak', did you mean 'spack'?; accepted: " in mistake


def test_all_mistakes_are_reported_together_with_file_and_line(tmp_path: Path) -> None:
    inventory = copied(tmp_path, "template")
    file = inventory / "group_vars" / "cluster" / "partition.yml"
    valid = file.read_text(encoding="utf-8")
    text = valid.replace("scheduler: none", "scheduler: nome").replace(
        "environment: local", "environment: locale"
    )
    text = text.replace("l3:1(size=32MiB)", "l3:one")
    file.write_text(text, encoding="utf-8")
    lines = text.splitlines()

    def at(word: str) -> str:
        return f"{file}:{next(n for n, line in enumerate(lines, 1) if word in line)}"

    mistakes = check(inventory)
    assert any(line.startswith(f"{at('environment:')}: partition.environment") for line in mistakes)
    assert any(f"{at('scheduler:')}: partition.scheduler: found 'nome', did" in x for x in mistakes)
    of_topology = f"{at('topology: >-')}: partition.node.topology: found "
    assert any(line.startswith(of_topology) and "at 'one " in line for line in mistakes)
    # Keys that cannot be read do not hide mistakes in other keys.
    broken = valid.replace("off_root: true", "of_root: true").replace(": none", ": nome")
    limit = {"metric": "triad", "value": 1, "at_least": 0.9}
    contract = write_contract(inventory, [{**limit, "case": "streem"}, {**limit, "case": "steam"}])
    file.write_text(broken + "  limitz: []\n  modes: {}\n", encoding="utf-8")
    lines = broken.splitlines()
    mistakes = check(inventory)
    assert any(
        f"{at('scheduler:')}: partition.scheduler: found 'nome'" in line for line in mistakes
    )
    for case in ("streem", "steam"):
        number = contract.read_text().splitlines().index(f"  case: {case}") + 1
        assert any(
            f"{contract}:{number}: items." in line and f"{case!r}" in line for line in mistakes
        )
    assert any(f"{at('of_root:')}: partition.scratch.of_root" in line for line in mistakes)
    assert any(f"{file}:{len(lines) + 1}: partition.limitz" in line for line in mistakes)
    assert any("partition.modes" in line for line in mistakes)
    contract.unlink()
    file.write_text(valid, encoding="utf-8")
    assert check(inventory) == []


def test_a_key_given_twice_is_a_mistake(tmp_path: Path) -> None:
    inventory = copied(tmp_path, "template")
    file = inventory / "group_vars" / "cluster" / "partition.yml"
    file.write_text(file.read_text() + "  scheduler: none\n", encoding="utf-8")
    assert any("scheduler: found the key a second time" in line for line in check(inventory))


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_site_with_several_rails_is_planned_and_checked(count: int, tmp_path: Path) -> None:
    """No node was probed: the parts of a declared node have no board and no slot."""
    inventory = tmp_path / "site"
    shutil.copytree(ROOT / "inventory" / "example-xeon", inventory)
    stated = inventory / "group_vars" / "xeon" / "partition.yml"
    adapters = ", ".join(f'"mlx5_{number}:1": {number % 2}' for number in range(count))
    text, rate = stated.read_text(encoding="utf-8"), "rate: 400 Gb/sec (4X NDR)"
    assert rate in text
    stated.write_text(text.replace(rate, f"{rate}, adapters: {{{adapters}}}"), encoding="utf-8")
    assert main(["plan", "-i", f"{inventory}", "-l", "xeon", "--suite", "node"]) == 0
    assert main(["check", "-i", f"{inventory}"]) == 0
