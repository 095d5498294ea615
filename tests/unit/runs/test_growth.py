"""Hosts that join a run: they are added to the site of its start, and nothing else changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.fixtures.kit import make_kit

from proofmark.plan.kinds import Part, RunKind
from proofmark.plan.plan import Group, Plan
from proofmark.runs import start
from proofmark.runs.run import add_growth, site_now
from proofmark.site.access import Access, HostAccess
from proofmark.site.inventory import Site


def test_hosts_that_join_are_added_with_their_names_and_their_access(tmp_path: Path) -> None:
    kit = make_kit(tmp_path)
    kit.case()
    usual, other, late = (HostAccess(user=name) for name in ("usual", "other", "late"))
    first = kit.site(hosts=("n1", "n2")).model_copy(
        update={"ssh": Access(shell="bash -s", usual=usual, hosts={"n2": other})}
    )
    run = kit.run(site=first)
    assert site_now(run.folder) == first
    for hosts, names in (
        (("n3",), {"n3": ["three"]}),
        (("n4",), {"n1": ["one"], "n4": ["four"]}),
    ):
        ssh = Access(usual=late, hosts={"n4": usual})
        changes = {"hosts": hosts, "partition_hosts": ("n1", *hosts), "aliases": names, "ssh": ssh}
        add_growth(run.folder, [], first.model_copy(update=changes))
    assert [path.name for path in sorted(run.files.growth.iterdir())] == ["0001.json", "0002.json"]
    found = site_now(run.folder)
    assert found.hosts == ("n1", "n2", "n3", "n4")
    assert [*found.partition_hosts] == ["n1", "n4"]
    assert found.aliases == {**first.aliases, "n1": ["one"], "n3": ["three"], "n4": ["four"]}
    assert found.ssh == Access(shell="bash -s", usual=usual, hosts={"n2": other, "n3": late})
    same = {"hosts": found.hosts, "partition_hosts": found.partition_hosts}
    assert found == first.model_copy(update={**same, "aliases": found.aliases, "ssh": found.ssh})


class Arriving(RunKind):
    """A kind of run to which each call adds the next of some parts."""

    def __init__(self, *parts: Sequence[Group] | None, arrive: bool) -> None:
        self.parts, self.arrive = iter(parts), arrive

    @property
    def nodes_arrive(self) -> bool:  # type: ignore[override]
        return self.arrive

    def joining(self, plan: Plan, asked: Plan, site: Site) -> Part | None:
        part = next(self.parts)
        return None if part is None else [*part]


@pytest.mark.parametrize("arrive", [False, True])
@pytest.mark.parametrize("later", ["none", "empty", "no jobs", "jobs"])
def test_a_part_joins_a_run_if_it_has_jobs_and_nodes_arrive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: str, arrive: bool
) -> None:
    """Another process may have added it before the lock was taken."""
    kit = make_kit(tmp_path)
    run, site = kit.run(), kit.site()
    (group,) = run.plan.groups
    parts: dict[str, Sequence[Group] | None] = {
        "none": None,
        "empty": [],
        "no jobs": [group.model_copy(update={"jobs": []})],
        "jobs": [group],
    }
    kind = Arriving([group], parts[later], arrive=arrive)
    monkeypatch.setattr(start, "kind_of", lambda plan: kind)
    joined = start._join(run, run.plan, site)
    assert joined and joined.folder == run.folder
    assert [*run.files.growth.glob("*")] == (
        [run.files.growth / "0001.json"] if arrive and later == "jobs" else []
    )
    stranger = Arriving(None, arrive=arrive)
    monkeypatch.setattr(start, "kind_of", lambda plan: stranger)
    assert start._join(run, run.plan, site) is None


def test_a_host_that_joins_again_has_its_newest_access(tmp_path: Path) -> None:
    """Also the usual one, which no list of hosts names. The control: one that stays has its own."""
    kit = make_kit(tmp_path)
    kit.case()
    usual = HostAccess(user="usual")
    own = HostAccess(host_name="10.0.0.2", user="own", port="2222", identity_file="/key")
    moved = own.model_copy(update={"host_name": "10.0.0.9"})
    first = kit.site(hosts=("n1", "n2", "n3", "n4")).model_copy(
        update={"ssh": Access(usual=usual, hosts={"n2": own, "n3": own, "n4": own})}
    )
    run = kit.run(site=first)
    again = {"hosts": ("n2", "n3"), "ssh": Access(usual=usual, hosts={"n3": moved})}
    add_growth(run.folder, [], first.model_copy(update=again))
    assert site_now(run.folder).ssh == Access(usual=usual, hosts={"n3": moved, "n4": own})
