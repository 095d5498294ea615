"""Which words of paths are nodes: schemes of public sites, and words that count."""

from __future__ import annotations

import re

import pytest
import yaml
from tests.folders import DATA

from proofmark.packages.foreign.node_names import named_nodes
from proofmark.packages.foreign.path_rules import PathRule

SITES = yaml.safe_load((DATA / "node-names.yml").read_text())
LAYOUTS = ("{0}/hpl.out", "out/{0}.log", "hpl/{0}/run1.txt", "hpl_{0}_np4.out")
DOTTED = ("hpl.{0}.out", "slurm-hpl-12340.{0}.out", "acc-hpl-991.{0}.log")
OTHERS = (
    *("{0}/run1/hpl.out", "hpl_{0}_{job}.log", "{0}.hpl.o{job}", "all/{job}_{0}.txt"),
    *("2026-04-{day}/{0}/hpl.out", "{0}/2026-04-{day}.out", "20260401/hpl_{0}.txt"),
    *("{0}.out.gz", "{0}_N20000_NB192.out", "slurm-{job}_{0}.out", "hpl@{0}.txt", "{job}/{0}.out"),
)
"""Folders of dates and jobs, and names with numbers of jobs and settings."""
UNUSUAL = {
    "rack, chassis and blade": ("rack01.chassis02.blade03", "rack01.chassis02.blade04"),
    "places of one letter": ("r01_c02_b03", "r01_c02_b04", "r02_c01_b03"),
    "two words": ("rack1_node01", "rack2_node01", "rack2_node02"),
    "one name in two domains": ("node1.rack1.example.org", "node1.rack2.example.org"),
    "capitals": ("CN-R01-U05", "CN-R01-U07", "CN-R02-U05"),
    "random letters": ("hpc-vm-a3x7", "hpc-vm-k2p9", "hpc-vm-zz41"),
    "address with hyphens": ("10-1-0-11", "10-1-0-12", "10-1-1-11"),
    "digits": ("101", "102", "203"),
    "words": ("alice", "bob", "carol"),
    "letters behind the number": ("blade01a", "blade01b", "blade02a"),
}
SETTINGS = [
    *(("ompi4", "ompi5"), ("freq2400", "freq2200"), ("rhel8", "rhel9"), ("config01", "config02")),
    *(("attempt1", "attempt2"), ("gcc12", "gcc13"), ("trial01", "trial02"), ("seed42", "seed7")),
    *(("bios12", "bios13"), ("power400", "power350"), ("numa0", "numa1"), ("kernel5", "kernel6")),
    *(("day1", "day2"), ("turbo0", "turbo1"), ("run1-cfg01", "run2-cfg01"), ("n1000", "n2000")),
    *(("sock0", "sock1"), ("openmpi-4-1-0", "openmpi-5-0-0"), ("nb192", "nb256")),
    *(("node2", "node4", "node8"), ("N1000", "N2000"), ("r0001", "r0002"), ("pass1", "pass2")),
]
PROGRAMS = {"hpl", "stream", "osu"}


def nodes(*paths: str) -> dict[str, list[str]]:
    """Return the nodes of each path that names some."""
    pattern = named_nodes(dict.fromkeys(paths, ()), PROGRAMS).pattern
    if pattern is None:
        return {}
    rule = PathRule(pattern, {})
    return {path: found for path in paths if (found := rule.nodes(path))}


@pytest.mark.parametrize("layout", LAYOUTS, ids=("folder", "name", "inner-folder", "part"))
@pytest.mark.parametrize("site", SITES)
def test_a_scheme_of_a_public_site_is_right_or_asked(site: str, layout: str) -> None:
    paths = {layout.format(name): name for name in SITES[site]}
    found = nodes(*paths)
    asked = named_nodes(dict.fromkeys(paths, ()), PROGRAMS).questions
    for path, name in paths.items():
        assert found.get(path, [name]) in ([name], [name.partition(".")[0]])
        assert path in found or path in asked
    for path, question in asked.items():  # the answer "nodes" is right
        name = paths[path]
        assert PathRule(question.pattern, {}).nodes(path) in ([name], [name.partition(".")[0]])


@pytest.mark.parametrize("site", SITES)
def test_the_text_of_the_outputs_proves_each_scheme(site: str) -> None:
    """Numbers and names in names of files are no words of their own."""
    paths = {f"{name}/hpl.out": name for name in SITES[site]}
    found = named_nodes({path: (name,) for path, name in paths.items()}, PROGRAMS)
    assert found.pattern
    rule = PathRule(found.pattern, {})
    assert {path: rule.nodes(path) for path in paths} == {p: [n] for p, n in paths.items()}


@pytest.mark.parametrize("site", SITES)
def test_pairs_of_a_scheme_are_pairs(site: str) -> None:
    names = [name for name in SITES[site] if re.search("[A-Za-z]", name)]
    paths = [f"{a}--{b}.out" for a in names for b in names if a < b and "." not in a]
    asked = named_nodes(dict.fromkeys(paths, ()), PROGRAMS).questions
    for path, found in nodes(*paths).items():
        assert "--".join(found) + ".out" == path or path in asked
    if len(names) > 1 and paths:
        assert nodes(*paths) or asked


@pytest.mark.parametrize("separator", ["--", "_", "-", "+"])
@pytest.mark.parametrize("others", ["x000", "r00", "blade", "x"])
def test_a_pair_of_two_schemes_keeps_both_nodes(separator: str, others: str) -> None:
    hosts = ["w0001", "w0002", "w0003", f"{others}1", f"{others}2"]
    pairs = [(a, b) for place, a in enumerate(hosts) for b in hosts[place + 1 :]]
    paths = {separator.join(pair) + ".out": list(pair) for pair in pairs}
    assert nodes(*paths) == paths


@pytest.mark.parametrize(
    "paths",
    [
        {"n01/r01.out": "n01", "n01/r02.out": "n01", "n02/r01.out": "n02"},
        {"r01/n01.out": "n01", "r02/n01.out": "n01", "r01/n02.out": "n02"},
        {"r01/n01.out": "n01", "r02/n01.out": "n01", "r01/summary.out": ""},
        {"node1/p4.out": "node1", "node1/p8.out": "node1", "node2/p4.out": "node2"},
        {"n1/hpl_t001.out": "n1", "n2/hpl_t002.out": "n2"},
        {f"b000{n}/hpl-b200-8x.out": f"b000{n}" for n in range(1, 10)},
        {f"hpl-b200_b000{n}.out": f"b000{n}" for n in range(1, 10)},
        {"n1/t4.out": "n1", "n2/t4.out": "n2"},
    ],
)
def test_counts_beside_nodes_are_no_nodes(paths: dict[str, str]) -> None:
    assert nodes(*paths) == {path: [node] for path, node in paths.items() if node}


@pytest.mark.parametrize(
    "names",
    [
        ("p1", "p2", "p4", "p8"),
        ("n2", "n4", "n8", "n16"),
        ("t64", "t128"),
        ("r1", "r2", "r3"),
        ("m1024", "m2048"),
        ("n2p4t8", "n4p4t8"),
        ("v1", "v2"),
        ("1", "2"),
        ("run1", "run2"),
        ("mb016", "mb032"),
        ("20260401", "20260402"),
        ("N2000NB128P2Q4", "N4000NB128P2Q4"),
        *SETTINGS,
    ],
)
def test_words_that_may_count_are_never_nodes_alone(names: tuple[str, ...]) -> None:
    for layout in (*LAYOUTS[:2], *LAYOUTS[3:], *DOTTED):
        assert nodes(*(layout.format(name) for name in names)) == {}


def test_a_word_that_a_text_or_a_person_names_is_a_node() -> None:
    paths = [f"config0{number}/hpl.out" for number in (1, 2, 3)]
    found = named_nodes(dict.fromkeys(paths, ()), PROGRAMS, hosts=["config01", "config02"])
    assert found.pattern and PathRule(found.pattern, {}).nodes(paths[2]) == ["config03"]


def test_words_of_two_schemes_that_may_count_are_asked_about() -> None:
    paths = [f"{a}_{b}.out" for a in ("x01", "x02") for b in ("r01", "r02")]
    assert nodes(*paths) == {}
    assert named_nodes(dict.fromkeys(paths, ()), PROGRAMS).questions


def test_a_folder_with_nodes_of_its_own_is_asked_about() -> None:
    paths = ["c01/b01.out", "c01/b02.out", "c02/b03.out", "c02/b04.out"]
    assert nodes(*paths) == {}
    assert {*named_nodes(dict.fromkeys(paths, ()), PROGRAMS).questions} == {*paths}


def test_one_name_in_two_racks_is_two_nodes() -> None:
    paths = ["rack1/node01/a.out", "rack2/node01/a.out", "rack2/node02/a.out"]
    assert nodes(*paths) == {
        paths[0]: ["rack1-node01"],
        paths[1]: ["rack2-node01"],
        paths[2]: ["rack2-node02"],
    }
    printed = dict.fromkeys(paths, ("node01",))
    assert "place" not in str(named_nodes(printed, PROGRAMS).pattern)


@pytest.mark.parametrize(
    "layout", ["{0}/a.out", "hpl-{0}.out", "hpl.{0}.out", "slurm-17_{0}_N9.out", "{0}.hpl.log"]
)
def test_one_name_in_two_racks_of_one_word_is_two_nodes(layout: str) -> None:
    names = ["rack1_node01", "rack2_node01", "rack2_node02"]
    assert nodes(*(layout.format(name) for name in names)) == {
        layout.format(name): [name.replace("_", "-")] for name in names
    }


def test_a_site_knows_its_hosts() -> None:
    printed = dict.fromkeys(("p1/a.out", "p2/a.out", "p3/a.out"), ())
    found = named_nodes(printed, PROGRAMS, {"p1", "p2"}.__contains__)
    assert found.pattern and PathRule(found.pattern, {}).nodes("p1/a.out") == ["p1"]


@pytest.mark.parametrize("layout", DOTTED)
@pytest.mark.parametrize("site", SITES)
def test_a_name_between_dots_is_right_or_asked(site: str, layout: str) -> None:
    """A job id before it is no node, and different names are never one node."""
    paths = {layout.format(name): name for name in SITES[site]}
    for path, found in nodes(*paths).items():
        assert found in ([paths[path]], [paths[path].partition(".")[0]])


@pytest.mark.parametrize(
    "names",
    [
        ("rack1-n01", "rack1-n02", "rack2-n01", "rack2-n02"),
        ("blade1-node1", "blade1-node2", "blade2-node1"),
        ("queue1-dy-compute1-1", "queue1-dy-compute1-2", "queue1-dy-compute1-11"),
        ("R00-M0-N00-J00", "R01-M0-N00-J00"),
    ],
)
def test_names_that_share_a_word_stay_apart(names: tuple[str, ...]) -> None:
    assert nodes(*(f"hpl.{name}.out" for name in names)) == {
        f"hpl.{name}.out": [name] for name in names
    }


@pytest.mark.parametrize(
    "names",
    [
        ("slurm-hpl-12340", "slurm-hpl-12341"),
        ("nightly-8812", "nightly-8813"),
        ("linpack-v23-12345", "linpack-v23-12346"),
        ("test-hpl-N100000-NB192", "test-hpl-N100000-NB256"),
        ("run1-n01", "run2-n01"),
    ],
)
def test_names_with_job_ids_and_settings_are_no_nodes(names: tuple[str, ...]) -> None:
    found = nodes(*(f"{name}.out" for name in names))
    assert not {node for of in found.values() for node in of} & {*names}


PARTS_OF_NAMES = ("n{:03}-ib0", "n{:04}-p", "vega-cn{:04}", "node{:02}-mgmt", "alps-nid{:06}")
NAMES_OF_FILES = (*LAYOUTS, *DOTTED, "hpl-{0}.out", "{0}.out", "hpl-{0}-4.out")


@pytest.mark.parametrize("layout", NAMES_OF_FILES)
@pytest.mark.parametrize("scheme", PARTS_OF_NAMES)
def test_a_part_of_a_name_is_no_node_unless_something_confirms_it(scheme: str, layout: str) -> None:
    names = [scheme.format(number) for number in range(1, 5)]
    paths = {layout.format(name): name for name in names}
    asked = named_nodes(dict.fromkeys(paths, ()), PROGRAMS).questions
    for path, name in paths.items():
        assert nodes(*paths).get(path, [name]) == [name]
        assert path in nodes(*paths) or path in asked
    short = {path: [re.findall("[a-z]+[0-9]{2,}", path)[-1]] for path in paths}
    printed = {path: tuple(found) for path, found in short.items()}
    confirmed = named_nodes(printed, PROGRAMS).pattern
    assert confirmed
    assert {path: PathRule(confirmed, {}).nodes(path) for path in paths} == short


@pytest.mark.parametrize("layout", (*LAYOUTS, *DOTTED, *OTHERS))
def test_names_in_any_folder_are_right_or_asked(layout: str) -> None:
    """A node has all of its name or the part before the domain, and two names are two nodes."""
    for names in (*SITES.values(), *UNUSUAL.values()):
        paths = {
            layout.format(name, job=12340 + number, day=f"{number + 1:02}"): name
            for number, name in enumerate(names)
        }
        found = nodes(*paths)
        for path, (node, *more) in found.items():
            name = paths[path]
            whole = node.startswith((name, name.replace("_", "-")))
            assert not more and (whole or node == name.partition(".")[0]), path
        assert len({node for (node,) in found.values()}) == len({paths[path] for path in found})


@pytest.mark.parametrize("separator", ["--", "+", ","])
def test_a_pair_of_two_racks_has_the_place_of_each_node(separator: str) -> None:
    pairs = [("rack1_n01", "rack2_n01"), ("rack1_n01", "rack2_n02"), ("rack1_n02", "rack2_n01")]
    paths = {separator.join(pair) + ".out": [n.replace("_", "-") for n in pair] for pair in pairs}
    assert nodes(*paths) == paths


def test_what_is_behind_a_name_and_no_domain_keeps_the_node() -> None:
    paths = [f"n0{node}.run{run}.stdout.txt" for node in (1, 2) for run in (1, 2)]
    assert nodes(*paths) == {path: [path[:3]] for path in paths}
