"""Intel MPI Benchmarks: tables below the name of a benchmark."""

from __future__ import annotations

from proofmark.cases.reader.rules import (
    Agreement,
    ColumnRule,
    ContextRule,
    TableRule,
    TextSpec,
    line,
    words,
)
from proofmark.cases.reader.spec import Program, ReadSpec


class Imb(Program):
    """Intel MPI Benchmarks 3 to 2021."""

    def rules(self) -> ReadSpec:
        """Return how its output is read."""
        return ReadSpec(
            finds="IMB result row",
            parameters={
                "ranks": "int",
                "threads": "int",
                "waiting": "int",
                "groups": "int",
                "group": "int",
                "mode": "lower",
                "bytes": "int",
            },
            no_setting=words("-npmin -include -exclude -time -mem"),
            # IMB computes the bandwidth from the longest time. Until 2018 a megabyte
            # was 2 ** 20 bytes.
            agree=(
                # The mean of the ranks is between the fastest and the slowest.
                Agreement(metric="t_min", at_most="t_avg", rounding=0.011, within=0.001),
                Agreement(metric="t_avg", at_most="t_max", rounding=0.011, within=0.001),
                Agreement(
                    metric="bandwidth",
                    benchmark=line("(?:Multi-)?PingP[io]ng(?:Specificsource)?"),
                    equals=(
                        "bytes / t_max",
                        "bytes / t_avg",
                        "bytes / t_max * 1e6 / 2 ** 20",
                        "bytes / t_avg * 1e6 / 2 ** 20",
                        # IMB-P2P prints the rate of messages, too.
                        "rate * bytes / 1e6",
                    ),
                    rounded={"t_max": 0.005, "t_avg": 0.005, "rate": 0.5},
                    rounding=0.006,
                    within=0.002,
                ),
                Agreement(
                    metric="bandwidth",
                    benchmark=line("(?:Multi-)?Sendrecv"),
                    equals=("2 * bytes / t_max", "2 * bytes / t_max * 1e6 / 2 ** 20"),
                    rounded={"t_max": 0.005},
                    rounding=0.006,
                    within=0.002,
                ),
                Agreement(
                    metric="bandwidth",
                    benchmark=line("(?:Multi-)?Exchange"),
                    equals=("4 * bytes / t_max", "4 * bytes / t_max * 1e6 / 2 ** 20"),
                    rounded={"t_max": 0.005},
                    rounding=0.006,
                    within=0.002,
                ),
                Agreement(
                    metric="bandwidth",
                    benchmark=line("(?:Multi-)?(?:Uni|Bi)band"),
                    equals=("rate * bytes / 1e6", "rate * bytes / 2 ** 20"),
                    rounded={"rate": 0.5},
                    rounding=0.006,
                    within=0.002,
                ),
            ),
            text=TextSpec(
                starts=line(r"#\s+Intel ?\(R\) MPI Benchmark.*"),
                once="ends",
                # Below: Calling sequence was
                command=line(r"# (?P<command>(?:\S*/)?IMB-\w+(?: .*)?)"),
                settings=(
                    line(r"#\s+Intel ?\(R\) MPI Benchmark\S* .*? part (?P<variant>\S.*)"),
                    line(
                        r"# (?!Date|Mach|Sys|Rel|Ver|Minimum|Maximum)(?P<key>[A-Z][\w"
                        r" ]*?)\s*:\s+(?P<value>\S.*)"
                    ),
                ),
                context=(
                    ContextRule(
                        match=line(r"# Benchmarking (?P<benchmark>\S+).*"),
                        resets=("ranks", "threads", "waiting", "groups", "mode"),
                        titles=True,
                    ),
                    ContextRule(
                        match=line(r"# #processes = (?P<ranks>\d+)(?:; rank order \(rowwise\):)?")
                    ),
                    ContextRule(
                        match=line(r"# #processes = (?P<ranks>\d+) \(threads: (?P<threads>\d+)\)")
                    ),
                    ContextRule(
                        match=line(
                            r"# \( (?P<groups>\d+) groups of (?P<ranks>\d+) processes"
                            " each running .*"
                        )
                    ),
                    ContextRule(
                        match=line(
                            r"# \( ?(?P<waiting>\d+) additional process(?:es)? waiting in"
                            r" MPI_Barrier ?\)"
                        )
                    ),
                    ContextRule(match=line(r"#\s+MODE: (?P<mode>\S+)"), titles=True),
                ),
                tables=(
                    TableRule(
                        header=line(r"\s*(?:Group\s+)?(?:#bytes\s+)?#repetitions\s.*"),
                        columns={
                            "Group": ColumnRule(parameter="group"),
                            "#bytes": ColumnRule(parameter="bytes"),
                            "#repetitions": ColumnRule(),
                            "t[usec]": ColumnRule(metric="t_avg", unit="usec"),
                            "t_min[usec]": ColumnRule(metric="t_min", unit="usec"),
                            "t_max[usec]": ColumnRule(metric="t_max", unit="usec"),
                            "t_avg[usec]": ColumnRule(metric="t_avg", unit="usec"),
                            "t_ovrl[usec]": ColumnRule(metric="t_ovrl", unit="usec"),
                            "t_pure[usec]": ColumnRule(metric="t_pure", unit="usec"),
                            "t_CPU[usec]": ColumnRule(metric="t_cpu", unit="usec"),
                            "overlap[%]": ColumnRule(metric="overlap", unit="%"),
                            "Mbytes/sec": ColumnRule(metric="bandwidth", unit="Mbytes/sec"),
                            "Msg/sec": ColumnRule(metric="rate", unit="Msg/sec"),
                            "defects": ColumnRule(accept="0.00"),
                        },
                        skip=line("#.*"),
                        gives_up=line(
                            r"\s*(?:(?P<group>\d+) +)?(?P<bytes>\d+) +(?P<reason>time-out"
                            r"|out-of-mem|int-overflow)\.?;.*"
                        ),
                        ends=line("# All processes entering MPI_Finalize"),
                        stray=line(r"\s*\d+\s+[\d.]+.*"),
                    ),
                ),
                require={
                    "All processes entering MPI_Finalize": line(
                        "# All processes entering MPI_Finalize"
                    )
                },
                reject=(line("EXCEPTION: .*"),),
                fails=(
                    line("# NO SUCCESSFUL EXECUTIONS"),
                    line(
                        r"# !! Benchmark (?P<benchmark>\S+) is invalid for"
                        r" (?P<ranks>\d+) processes !!"
                    ),
                ),
                needs=("benchmark", "ranks"),
            ),
        )
