"""Removes what a run left in scratch: files of killed steps, and files that no step read."""

from __future__ import annotations

from pathlib import Path

from proofmark.common.errors import bad_input
from proofmark.common.messages import say
from proofmark.machine.node_scripts import check_failure_budget, run_on_nodes
from proofmark.runs.run_names import NamedRun
from proofmark.site.inventory import Site


def clean(run: NamedRun, site: Site) -> list[str]:
    """Remove the folder of `run` in each scratch file system; return the nodes that removed one.

    The first node removes those of a shared file system. The others follow, for scratch of a node.

    Raises:
        BadInput: a job of the run may still be in the queue, or too many nodes failed.
    """
    if job := run.names.submitted:
        found = f"{job}: may still be in the queue"
        raise bad_input("RUN", "", found, "a run without a submitted job")
    bases = dict.fromkeys(
        [site.partition.scratch.path, *(each.path for each in site.partition.scratches.values())]
    )
    folders = [f"{Path(base) / run.id}" for base in bases]
    nodes = run.names.nodes
    changed: list[str] = []
    for names in (nodes[:1], nodes[1:]):
        outputs, failed = run_on_nodes(site, names, ("scratch-clean.sh", folders))
        check_failure_budget(site, "scratch", len(names), failed, "a node that removes it")
        for node, text in outputs.items():
            for line in text.splitlines():
                say(f"{node}: {line}")
            changed += [node] if text else []
    return changed
