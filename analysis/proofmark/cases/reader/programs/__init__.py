"""The readers of the outputs of programs: the banner, units and end of each, and its function.

`PROGRAMS` is the value of the key ``program`` of a block ``read:`` → its module and its reader.
"""

from collections.abc import Mapping

PROGRAMS: Mapping[str, str] = {
    "fio": "fio:FIO",
    "hpcc": "linpack:HPCC",
    "hpl": "linpack:HPL",
    "imb": "imb:IMB",
    "ior": "ior:IOR",
    "likwid": "node_programs:LIKWID",
    "mdtest": "mdtest:MDTEST",
    "npb": "npb:NPB",
    "os_noise": "node_programs:OS_NOISE",
    "osu": "osu:OSU",
    "stability": "node_programs:STABILITY",
    "stream": "stream:STREAM",
    "stressapptest": "node_programs:STRESSAPPTEST",
}
