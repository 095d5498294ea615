"""Discovery of the local machine, so that no core count is typed by hand."""

from __future__ import annotations

from importlib.resources import as_file, files

from proofmark.common.errors import bad_input
from proofmark.common.processes import run_command
from proofmark.site.inventory import Site
from proofmark.site.machine import Machine
from proofmark.site.node.facts import parse_probe


def discover(site: Site) -> tuple[Machine, str]:
    """Return the machine of the partition's nodes, and the output of the probe it was read from.

    Raises:
        BadInput: the partition is not the local machine, or its topology cannot be read.
    """
    if site.connection != "local":
        found = f"nothing, and hosts reached by {site.connection}"
        accepted = "the topology of a node, or hosts reached by local"
        raise bad_input(site.inventory, "partition.node.topology", found, accepted)
    probe = probe_here()
    return Machine.from_facts(parse_probe(probe, "probe of this machine"), len(site.hosts)), probe


def probe_here() -> str:
    """Run the probe on this machine and return its output.

    Raises:
        BadInput: the probe failed.
    """
    with as_file(files("proofmark.site.node") / "probe.sh") as script:
        done = run_command(["sh", str(script), "facts"])
    if done.returncode:
        stderr = done.stderr.strip()
        raise bad_input("probe.sh", "", f"exit code {done.returncode}: {stderr}", "exit code 0")
    return done.stdout
