"""Hosts that join a run: they are added to the site of its start, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

from tests.fixtures.kit import make_kit

from proofmark.runs.run import add_growth, site_now
from proofmark.site.access import Access, HostAccess


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
