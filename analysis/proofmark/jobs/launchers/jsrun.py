"""IBM Job Step Manager's jsrun: an explicit resource file with the host and CPUs of each rank.

After "IBM Spectrum LSF Job Step Manager": jsrun, and "Explicit Resource File (ERF) format".
Rendered, never run.
"""

from __future__ import annotations

from proofmark.jobs.launcher import Launch, Launcher
from proofmark.plan.rank_cpus import RankCpus


class Jsrun(Launcher):
    """IBM Job Step Manager's jsrun."""

    starts_children = False

    def lines(self, launch: Launch) -> list[str]:
        """Return the lines that write the resource file and start one rank per entry.

        With ``cpu_index_using: physical`` the numbers are those of the operating system. A resource
        set has its CPUs for itself. If ranks share CPUs, or the site has ``binding: wrapper``, the
        sets of a node overlap: each has the CPUs of all ranks of the node, and the wrapper binds.
        """
        by_wrapper = launch.shared or launch.settings.binding == "wrapper"
        of_node: dict[int, set[int]] = {}
        for rank in launch.cpus:
            of_node.setdefault(rank.node, set()).update(rank.cpus)

        def entry(number: int, rank: RankCpus) -> str:
            cpus = of_node[rank.node] if by_wrapper else set(rank.cpus)
            numbers = ",".join(map(str, sorted(cpus)))
            return (
                f"rank: {number}: {{ hostname: {launch.hosts[rank.node]}; cpu: {{{numbers}}};"
                " mem: * }\n"
            )

        preamble = ["cpu_index_using: physical", "overlapping_rs: allow"]
        if by_wrapper:
            preamble.append("oversubscribe_cpu: allow")
        text = "".join(f"{line}\n" for line in preamble)
        text += "".join(entry(number, rank) for number, rank in enumerate(launch.cpus))
        return [
            *launch.exports(launch.unpinned() | launch.yielding()),
            f"cat >erf <<'END'\n{text}END",
            f"exec jsrun --erf_input erf {launch.ranked(bind=by_wrapper)}",
        ]
