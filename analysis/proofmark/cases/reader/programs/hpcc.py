"""HPC Challenge: its summary, and the row of HPL in it."""

from __future__ import annotations

from proofmark.cases.reader.rules import Agreement, Keys, Quantity, RowRule, TextSpec, line
from proofmark.cases.reader.spec import Program, ReadSpec


class Hpcc(Program):
    """HPC Challenge 1.4 and 1.5."""

    def rules(self) -> ReadSpec:
        """Return how its output is read."""
        return ReadSpec(
            finds="HPC Challenge result",
            benchmark="HPCC",
            parameters={"n": "int", "nb": "int", "p": "int", "q": "int", "ranks": "int"},
            aside={
                "seconds": "printed",
                "updates": "int",
                "access_s": "printed",
                "updates_lcg": "int",
                "access_lcg_s": "printed",
            },
            agree=(
                Agreement(
                    metric="hpl_rmax",
                    equals="(2 / 3 * n ** 3 + 3 / 2 * n ** 2) / (seconds * 1e9)",
                    rounding=0,
                    within=0.002,
                ),
                Agreement(
                    metric="randomaccess_mpi",
                    equals="updates / (access_s * 1e9)",
                    rounding=0,
                    within=0.001,
                ),
                Agreement(
                    metric="randomaccess_lcg_mpi",
                    equals="updates_lcg / (access_lcg_s * 1e9)",
                    rounding=0,
                    within=0.001,
                ),
            ),
            text=TextSpec(
                starts=line("This is the DARPA/DOE HPC Challenge Benchmark version.*"),
                once="ends",
                facts=(
                    line("Hostname: '(?P<node>[^']+)'"),
                    line("CommWorldProcs=(?P<ranks>.*)"),
                    line("HPL_N=(?P<n>.*)"),
                    line("HPL_NB=(?P<nb>.*)"),
                    line("MPIRandomAccess_ExeUpdates=(?P<updates>.*)"),
                    line("MPIRandomAccess_time=(?P<access_s>.*)"),
                    line("MPIRandomAccess_LCG_ExeUpdates=(?P<updates_lcg>.*)"),
                    line("MPIRandomAccess_LCG_time=(?P<access_lcg_s>.*)"),
                ),
                rows=(
                    # The row of HPL, not HPL_Tflops: only the row has a line with the
                    # residual.
                    RowRule(
                        under=line("T/V +N +NB +P +Q +Time +Gflops"),
                        begins=line(r"W[RC]\d.*"),
                        match=line(
                            r"\S+ +(?P<n>\S+) +(?P<nb>\S+) +(?P<p>\S+) +(?P<q>\S+)"
                            r" +(?P<seconds>\S+) +(?P<hpl_rmax>\S+)"
                        ),
                        metrics={"hpl_rmax": "Gflops"},
                        confirm=line(r"\|\|Ax-b\|\|_oo.*\.\.\. PASSED"),
                        refuse=line(r"\|\|Ax-b\|\|_oo.*\.\.\. FAILED"),
                        # PTRANS prints its number of tests, too, with a comma after the word.
                        count=line(r"Finished\s+(?P<count>\d+) tests with the following results:"),
                    ),
                ),
                keys=(
                    Keys(
                        under=line(r"Begin of Summary section\."),
                        match=line(r"(?P<key>\w+)=(?P<value>.*)"),
                        # A test that did not run (ping-pong on one rank) prints -1 or 0, or
                        # memory that was never set: 6.95e-310.
                        not_run=line(r"-1(?:\.0*)?|0(?:\.0*)?|-?\d(?:\.\d*)?e-3[012]\d"),
                        metrics={
                            "StarDGEMM_Gflops": Quantity(metric="dgemm_star", unit="Gflop/s"),
                            "SingleDGEMM_Gflops": Quantity(metric="dgemm_single", unit="Gflop/s"),
                            "PTRANS_GBs": Quantity(metric="ptrans", unit="GB/s"),
                            "MPIRandomAccess_LCG_GUPs": Quantity(
                                metric="randomaccess_lcg_mpi", unit="GUP/s"
                            ),
                            "MPIRandomAccess_GUPs": Quantity(
                                metric="randomaccess_mpi", unit="GUP/s"
                            ),
                            "StarRandomAccess_LCG_GUPs": Quantity(
                                metric="randomaccess_lcg_star", unit="GUP/s"
                            ),
                            "SingleRandomAccess_LCG_GUPs": Quantity(
                                metric="randomaccess_lcg_single", unit="GUP/s"
                            ),
                            "StarRandomAccess_GUPs": Quantity(
                                metric="randomaccess_star", unit="GUP/s"
                            ),
                            "SingleRandomAccess_GUPs": Quantity(
                                metric="randomaccess_single", unit="GUP/s"
                            ),
                            "StarSTREAM_Copy": Quantity(metric="stream_star_copy", unit="GB/s"),
                            "StarSTREAM_Scale": Quantity(metric="stream_star_scale", unit="GB/s"),
                            "StarSTREAM_Add": Quantity(metric="stream_star_add", unit="GB/s"),
                            "StarSTREAM_Triad": Quantity(metric="stream_star_triad", unit="GB/s"),
                            "SingleSTREAM_Copy": Quantity(metric="stream_single_copy", unit="GB/s"),
                            "SingleSTREAM_Scale": Quantity(
                                metric="stream_single_scale", unit="GB/s"
                            ),
                            "SingleSTREAM_Add": Quantity(metric="stream_single_add", unit="GB/s"),
                            "SingleSTREAM_Triad": Quantity(
                                metric="stream_single_triad", unit="GB/s"
                            ),
                            "StarFFT_Gflops": Quantity(metric="fft_star", unit="Gflop/s"),
                            "SingleFFT_Gflops": Quantity(metric="fft_single", unit="Gflop/s"),
                            "MPIFFT_Gflops": Quantity(metric="fft_mpi", unit="Gflop/s"),
                            "MaxPingPongLatency_usec": Quantity(
                                metric="pingpong_latency_max", unit="usec"
                            ),
                            "RandomlyOrderedRingLatency_usec": Quantity(
                                metric="ring_latency_random", unit="usec"
                            ),
                            "MinPingPongBandwidth_GBytes": Quantity(
                                metric="pingpong_bandwidth_min", unit="GB/s"
                            ),
                            "NaturallyOrderedRingBandwidth_GBytes": Quantity(
                                metric="ring_bandwidth_natural", unit="GB/s"
                            ),
                            "RandomlyOrderedRingBandwidth_GBytes": Quantity(
                                metric="ring_bandwidth_random", unit="GB/s"
                            ),
                            "MinPingPongLatency_usec": Quantity(
                                metric="pingpong_latency_min", unit="usec"
                            ),
                            "AvgPingPongLatency_usec": Quantity(
                                metric="pingpong_latency_avg", unit="usec"
                            ),
                            "MaxPingPongBandwidth_GBytes": Quantity(
                                metric="pingpong_bandwidth_max", unit="GB/s"
                            ),
                            "AvgPingPongBandwidth_GBytes": Quantity(
                                metric="pingpong_bandwidth_avg", unit="GB/s"
                            ),
                            "NaturallyOrderedRingLatency_usec": Quantity(
                                metric="ring_latency_natural", unit="usec"
                            ),
                        },
                    ),
                ),
                require={
                    "Success=1": line("Success=1"),
                    "End of HPC Challenge tests.": line(r"End of HPC Challenge tests\."),
                },
                reject=(
                    line("HPL ERROR.*"),
                    line(r"\s*[1-9]\d* tests completed and failed residual checks.*"),
                ),
                expects="all",
                needs=("n", "nb", "ranks"),
            ),
        )
