"""Which names are one host, in Python and in the scripts of steps."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from tests.folders import PACKAGE

from proofmark.common.host_names import (
    HostTable,
    canonical,
    clashes,
    same_host,
    shared_domain,
    short_name,
)
from proofmark.machine.scheduler_commands import one_by_one
from proofmark.records.binding import HostNames

NAMES = [
    ("n1", "n1", True),
    ("n1", "n2", False),
    ("n1", "n1.site", True),
    ("n1.site", "n1", True),
    ("n1.site", "n1.site", True),
    ("n1.racka.x", "n1.rackb.x", False),
    ("n1.site", "n1.site.example", False),
    ("n1", "n10", False),
    ("n1", "n1-ib", False),
    ("N1.Site", "n1.sITE", True),
    ("N1", "n1.site", True),
    ("10.0.0.5", "10.0.0.5", True),
    ("10.0.0.5", "10.0.0.6", False),
    ("10.0.0.5", "10.1.0.5", False),
    ("10.0.0.5", "10", False),
    ("10.0.0.5", "n1", False),
    ("0001", "0002", False),
    ("0001.site", "0001", True),
    ("fe80::1", "fe80::2", False),
]
ONLY_PYTHON = [
    ("n1.site.", "n1.site", True),
    ("fe80::1", "fe80:0:0::1", True),
]


@pytest.mark.parametrize(("one", "other", "same"), [*NAMES, *ONLY_PYTHON])
def test_names_of_one_host(one: str, other: str, same: bool) -> None:
    assert same_host(one, other) is same
    assert same_host(other, one) is same
    assert (HostTable.of([one]).find(other) == one) is same
    assert HostNames().accepts(one, other) is same
    assert HostNames(hosts=[one]).accepts(one, other) is same
    for count in (1, 6):
        nodes = [one, *(f"x{number}" for number in range(count - 1))]
        assert (HostNames().wrong_host(nodes, [other]) == "") is same


@pytest.mark.parametrize("shell", [["dash"], ["busybox", "sh"], ["bash", "--posix"]])
def test_scripts_have_the_same_rule(shell: list[str]) -> None:
    script = (PACKAGE / "jobs/shell/hosts.sh").read_text(encoding="utf-8")
    calls = [
        f"same_host {shlex.quote(a)} {shlex.quote(b)} && echo yes || echo no" for a, b, _ in NAMES
    ]
    text = "\n".join([script, *calls])
    printed = subprocess.check_output([*shell], input=text, text=True).split()
    assert printed == ["yes" if same else "no" for _, _, same in NAMES]


@pytest.mark.parametrize(
    ("node", "here", "same"),
    [
        ("n1", "n1", True),
        ("n1", "n1.site", True),
        ("n1.site", "n1", True),
        ("n1.racka", "n1.rackb", False),
        ("10.0.0.5", "10.0.0.6", False),
        ("n1", "n10", False),
    ],
)
def test_a_job_takes_no_other_host_for_its_own(node: str, here: str, same: bool) -> None:
    lines = [*one_by_one([node], "printf remote; :"), "on_all -c 'printf local'"]
    done = subprocess.check_output(["dash", "-c", "\n".join(lines)], env={"HOST": here}, text=True)
    assert done == ("local" if same else "remote")


@pytest.mark.parametrize(
    ("names", "alike"),
    [
        ({"n1": (), "n2": ()}, []),
        ({"n1": (), "N1": ()}, [["N1", "n1"]]),
        ({"n1": (), "n1.racka": ()}, [["n1", "n1.racka"]]),
        ({"n1.racka": (), "n1.rackb": ()}, [["n1.racka", "n1.rackb"]]),
        ({"n1.racka": (), "n2.rackb": ()}, []),
        ({"n1": ("ib1.a",), "n2": ("ib1.b",)}, [["n1", "n2"]]),
        ({"n1.racka": (), "n1.rackb": (), "n1": ()}, [["n1", "n1.racka", "n1.rackb"]]),
        ({"10.0.0.5": (), "10.0.0.6": ()}, []),
        ({"10.0.0.5": (), "n1": ("10.0.0.5",)}, [["10.0.0.5", "n1"]]),
        ({"n1": ("n1.site", "n1-ib"), "n2": ("n2-ib",)}, []),
        ({"n1": ("ib",), "n2": ("ib",)}, [["n1", "n2"]]),
        ({"0001": (), "0002": ()}, []),
    ],
)
def test_hosts_that_cannot_be_told_apart(
    names: dict[str, tuple[str, ...]], alike: list[list[str]]
) -> None:
    assert clashes(names) == alike


def test_a_short_name_of_several_hosts_is_none_of_them() -> None:
    hosts = ["n1.racka", "n1.rackb", "n2.racka"]
    table, names = HostTable.of(hosts), HostNames(hosts=hosts)
    assert [table.find(name) for name in ("n1", "n1.racka", "n2", "n2.x", "n3")] == [
        None,
        "n1.racka",
        "n2.racka",
        None,
        None,
    ]
    assert not names.accepts("n1.racka", "n1")
    assert names.accepts("n2.racka", "n2")
    assert names.wrong_host(["n1.racka"], ["n1"]) == "ran on n1, planned on n1.racka"
    assert table.found(["n1", "n1.rackb", "N2"]) == {"n1.rackb", "n2.racka"}


def test_further_names_are_those_of_their_host() -> None:
    names = HostNames({"n1.a": ["ib1", "box"], "n1.b": ["ib2", "box"]}, ["n1.a", "n1.b"])
    accepted = {
        (node, name)
        for node in ("n1.a", "n1.b")
        for name in ("ib1", "ib2", "box", "IB1.x")
        if names.accepts(node, name)
    }
    assert accepted == {
        ("n1.a", "ib1"),
        ("n1.a", "box"),
        ("n1.a", "IB1.x"),
        ("n1.b", "ib2"),
        ("n1.b", "box"),
    }


def test_addresses_keep_all_their_parts() -> None:
    assert [short_name(name) for name in ("10.0.0.5", "fe80::1", "n1.site", "n1")] == [
        "10.0.0.5",
        "fe80::1",
        "n1",
        "n1",
    ]
    assert canonical("FE80:0::1") == "fe80::1"


@pytest.mark.parametrize(
    ("reported", "domain"),
    [
        ((), None),
        (("10.0.0.5",), None),
        (("n1", "n2"), ""),
        (("n1.site", "n2.SITE."), "site"),
        (("n1", "n2", "n3.evil.example"), ""),
        (("n1.site", "n2.site", "n3.evil.example"), "site"),
        (("n1.site", "n2.evil.example"), ""),
        (("n3.site",), "site"),
    ],
)
def test_the_domain_that_hosts_share(reported: tuple[str, ...], domain: str | None) -> None:
    assert shared_domain(reported) == domain


@pytest.mark.parametrize("domain", ["", "site"])
def test_a_host_of_another_domain_is_another_host(domain: str) -> None:
    others = [f"n{number}.{domain}".rstrip(".") for number in (1, 2)]
    reported = [*others, "n3.evil.example"]
    planned = ["n1", "n2", "n3"]
    names = HostNames(hosts=planned, domain=shared_domain(reported))
    assert names.accepts("n1", others[0])
    assert not names.accepts("n3", "n3.evil.example")
    assert names.wrong_host(planned, reported) == ("ran on n3.evil.example, planned on n[1-3]")
    table = HostTable.reported(reported)
    assert [table.find(name) for name in planned] == [*others, None]
    assert table.find("n3.evil.example") == "n3.evil.example"


def test_a_declared_name_may_have_another_domain() -> None:
    names = HostNames({"n3": ["n3.ib.example"]}, ["n3"], domain="site")
    assert names.accepts("n3", "n3.ib.example")
    assert names.accepts("n3", "n3.site")
    assert names.accepts("n3", "n3")
