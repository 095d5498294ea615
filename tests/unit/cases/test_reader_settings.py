"""Each printed setting makes two figures; what differs in each run makes none."""

from __future__ import annotations

import json

import pytest
from tests.fixtures.outputs import SAMPLES, output_sample, readings_of
from tests.unit.cases.test_reader_marks import MDTEST

IOR = "ior-4.0.0_posix_wr_b16m_t1m_n2_shared.txt"
IOR_3 = "ior-3.0_akrr.txt"
FIO = "fio-3.33_4m_2m_n2_fpp.json"
HPL = "hpl-2.3_N2048-6144_NB128-192_P1Q2.txt"
IMB = "imb-2021.7_PingPong_n2.txt"
STREAM = "stream-5.10_N2000000_t2.txt"
MDTEST_3 = "mdtest-3.3.0_100items_one_n2.txt"
HPCC = "hpcc-1.5.0_N200-400_n1.txt"
BT = "npb-3.4.3_bt.W_full_n4.txt"
LIKWID = "likwid-bench-5.2.2_stream_kB95232_t2.txt"
OSU = "osu-7.4_multi_lat_n4.txt"
OSU_TITLE = "# OSU MPI Multi Latency Test v7.4\n"
NODES = "nodes               : {}\ntasks               : 2\nclients per node    : {}\n"
LINE = "-w -r -e -C -b 16m"

PAIRS = [
    ("ior", IOR, NODES.format(1, 2), NODES.format(2, 1)),
    ("ior", IOR, "task offset         : 1", "task offset         : 2"),
    ("ior", IOR, LINE, f"{LINE} -Y"),
    ("ior", IOR, LINE, f"{LINE} -g"),
    ("ior", IOR, LINE, f"{LINE} -m"),
    ("ior", IOR, LINE, LINE.replace(" -C", "")),
    ("ior", IOR, LINE, f"{LINE} -Q 4"),
    ("ior", IOR, LINE, f"{LINE} --posix.lustre.stripecount=4"),
    (
        "ior",
        IOR,
        "Results: \n",
        "\thints passed to MPI_File_open() {\n\tstriping_factor = 8\n\t}\n",
    ),
    ("ior", IOR, "Results: \n", "stripe count        : 8\n"),
    ("ior", IOR, "aggregate filesize", "collective buffering : on\naggregate filesize"),
    ("ior", IOR_3, "(12 per node)", "(6 per node)"),
    ("mdtest", "", '"-z" "0"', '"-z" "3"'),
    ("mdtest", "", '"-b" "0"', '"-b" "2"'),
    ("mdtest", "", '"-I" "32"', '"-I" "16"'),
    ("mdtest", "", '"-v"', '"-L"'),
    ("mdtest", "", '"-v"', '"-y"'),
    ("mdtest", "", '"-v"', '"-a" "MPIIO"'),
    ("mdtest", "", "on 2 node(s)", "on 4 node(s)"),
    ("mdtest", "", "\n16 tasks", "\nsync_file               : True\n16 tasks"),
    ("osu-latency", OSU, OSU_TITLE, f"{OSU_TITLE}# Number of Sender threads: 2\n"),
    ("osu-latency", OSU, OSU_TITLE, f"{OSU_TITLE}# Number of forked processes in sender: 4\n"),
    ("osu-latency", OSU, OSU_TITLE, f"{OSU_TITLE}# Send Buffer on DEVICE (D)\n"),
    ("osu-latency", OSU, OSU_TITLE, f"{OSU_TITLE}# Using MANAGED buffers\n"),
    ("osu-latency", OSU, OSU_TITLE, f"{OSU_TITLE}# MPI Tag: 7\n"),
    ("imb-pingpong", IMB, "MPI-1 part", "MPI-1 part (GPU)"),
    ("imb-pingpong", IMB, "MPI_BYTE", "MPI_FLOAT"),
    ("imb-pingpong", IMB, "IMB-MPI1 PingPong", "IMB-MPI1 PingPong -off_cache -1"),
    ("imb-pingpong", IMB, "IMB-MPI1 PingPong", "IMB-MPI1 PingPong -multi 0"),
    ("imb-pingpong", IMB, "IMB-MPI1 PingPong", "IMB-MPI1 PingPong -root_shift on"),
    ("stream", STREAM, "Offset = 0", "Offset = 64"),
    ("stream", STREAM, "executed 10 times", "executed 20 times"),
    ("hpl", HPL, "Row-major process", "Column-major process"),
    ("hpl", HPL, "EQUIL  : yes", "EQUIL  : no"),
    ("hpl", HPL, "ALIGN  : 8 double", "ALIGN  : 4 double"),
    ("hpl", HPL, "SWAP   : Mix (threshold = 64)", "SWAP   : Binary-exchange"),
    ("stream", STREAM, "Revision: 5.10", "Revision: 5.9"),
    ("ior", IOR, "/scratch/iortest", "/scratch2/iortest"),
    ("ior", IOR, "/scratch/iortest", "/mnt/nfs4/iortest"),
    ("ior", IOR, "/scratch/iortest", "nfs:/scratch/iortest"),
    ("ior", IOR, "/scratch/iortest", "/scratch/nvme/iortest"),
    ("mdtest", MDTEST_3, "/scratch/mdtest", "/nvme/mdtest"),
    ("mdtest", MDTEST_3, "/scratch/mdtest", "/scratch/fast/mdtest"),
    ("osu-latency", OSU, OSU_TITLE, f"{OSU_TITLE}# Persistent\n"),
    ("osu-latency", OSU, OSU_TITLE, f"{OSU_TITLE}# MPI_THREAD_MULTIPLE\n"),
    ("hpcc", HPCC, "STREAM_Threads=1", "STREAM_Threads=8"),
    ("hpcc", HPCC, "omp_get_num_threads=0", "omp_get_num_threads=8"),
    ("hpcc", HPCC, "STREAM_VectorSize=53333", "STREAM_VectorSize=99999"),
    ("hpcc", HPCC, "FFT_N=32768", "FFT_N=65536"),
    ("hpcc", HPCC, "PTRANS_nprow=1", "PTRANS_nprow=2"),
    ("hpcc", HPCC, "DGEMM_N=230", "DGEMM_N=999"),
    ("npb-btio", BT, "write interval:   5", "write interval:   1"),
    ("npb-btio", BT, "= -O3", "= -O0"),
    ("npb-btio", BT, "3.4.3", "3.3.1"),
    ("likwid-triad", LIKWID, "Using 1 work groups", "Using 2 work groups"),
    ("osu-latency", OSU, OSU_TITLE, f"{OSU_TITLE}# Window size: 64\n"),
    ("imb-pingpong", IMB, " -iter 200", " -iter 400"),
    ("ior", IOR, LINE, f"{LINE} --posix.odirect"),
    ("ior", IOR, LINE, f"{LINE} -O useO_DIRECT=1"),
    ("ior", IOR, "ordering in a file  : ", "ordering in a file  : random"),
    ("mdtest", MDTEST_3, "'-i' '3'", "'-i' '3' '--posix.odirect'"),
    ("hpcc", HPCC, "MPIRandomAccess_N=131072", "MPIRandomAccess_N=262144"),
    ("osu-latency", OSU, OSU_TITLE, f"# Number of Sender threads: 2\n{OSU_TITLE}"),
]
DOCUMENTED = {
    "ior": (IOR, LINE, "A c d E g G H I J l m M n p P Q s S T u U V W x X Y"),
    "mdtest": (MDTEST_3, "'-i' '3'", "a b B c C d D E F G I k L p R r s S t T U V x X Y z Z"),
    "imb-pingpong": (
        IMB,
        "IMB-MPI1 PingPong",
        "multi off_cache cache_off iter iter_policy warm_up data_type red_data_type map msglog"
        " mem_alloc_type sync root_shift imb_barrier thread_level aggregate_mode zero_size dynamic",
    ),
}
"""Options of the manuals that change a figure and that no line of the header states."""
OPTIONS_OF_FIO = {
    "filename": "/dev/nvme1n1",
    "rate": "100m",
    "rate_iops": "100",
    "thinktime": "10",
    "hipri": "1",
    "percentage_random": "50",
    "rwmixwrite": "70",
    "filesize": "100g",
    "thread": "1",
    "directory": "/mnt/nfs4",
    "random_distribution": "zipf:1.2",
    "nrfiles": "4",
    "ramp_time": "5",
    "prio": "3",
    "an_option_of_a_later_version": "7",
}
OF_A_RUN = [
    ("ior", IOR, "Sat Nov 21 08:22:59 2026", "Sun Nov 22 09:00:00 2026"),
    ("ior", IOR, "Linux vm", "Linux vm"),
    ("ior", IOR, "252.0 GiB", "100.0 GiB"),
    ("ior", IOR, "/scratch/iortest", "/scratch/job.4711/ior"),
    ("ior", IOR, "TestID              : 0", "TestID              : 3"),
    ("mdtest", "", "03/02/2024 15:35:56", "04/02/2024 16:35:56"),
    ("mdtest", "", "/opt/mdtest", "/usr/bin/mdtest"),
    ("mdtest", MDTEST_3, "/scratch/mdtest", "/scratch/tmp.aB3dE5fG7h"),
    ("mdtest", "", "\n16 tasks", "\nrandom_seed             : 1712345\n16 tasks"),
    ("osu-latency", OSU, OSU_TITLE, f"{OSU_TITLE}# Hostname: n02\n"),
    ("osu-latency", OSU, OSU_TITLE, f"{OSU_TITLE}# PID: 4711\n"),
    ("imb-pingpong", IMB, "# Machine               : x86_64", "# Machine               : amd64"),
    ("stream", STREAM, "on the order of 5945", "on the order of 6001"),
]


def output(name: str) -> str:
    return output_sample(name) if name else MDTEST


def identities(case: str, text: str) -> set[str]:
    """Return what makes the figures of an imported output: names and all parameters."""
    readings = readings_of(case, text)
    assert any(reading.valid for reading in readings)
    return {
        json.dumps(
            [each.benchmark, each.metric, {**each.settings, **each.parameters}], sort_keys=True
        )
        for each in readings
    }


@pytest.mark.parametrize(("case", "name", "old", "new"), PAIRS)
def test_a_printed_setting_makes_two_figures(case: str, name: str, old: str, new: str) -> None:
    text = output(name)
    assert old in text
    first, second = identities(case, text), identities(case, text.replace(old, new))
    assert first.isdisjoint(second)


@pytest.mark.parametrize(("case", "name", "old", "new"), OF_A_RUN)
def test_what_differs_in_each_run_makes_no_figure(case: str, name: str, old: str, new: str) -> None:
    text = output(name)
    assert old in text
    assert identities(case, text) == identities(case, text.replace(old, new))


@pytest.mark.parametrize("case", DOCUMENTED)
def test_a_documented_option_makes_two_figures(case: str) -> None:
    name, line, options = DOCUMENTED[case]
    text = output(name)
    for option in options.split():
        if f" -{option} " in text or f"'-{option}'" in text:
            continue
        first, second = (
            identities(case, text.replace(line, f"{line} -{option} /fs{value}/x"))
            for value in (1, 2)
        )
        assert first.isdisjoint(second), option


def with_option(name: str, value: str) -> str:
    document = json.loads(output_sample(FIO)[output_sample(FIO).index("{") :])
    for job in document["jobs"]:
        job["job options"][name] = value
    return json.dumps(document, indent=2)


@pytest.mark.parametrize("name", OPTIONS_OF_FIO)
def test_an_option_of_fio_makes_two_figures(name: str) -> None:
    first = identities("fio-cache", output_sample(FIO))
    second = identities("fio-cache", with_option(name, OPTIONS_OF_FIO[name]))
    assert first.isdisjoint(second)


def test_a_folder_of_a_job_makes_no_figure() -> None:
    first = identities("fio-cache", with_option("directory", "/local/job4711/n01"))
    assert first == identities("fio-cache", with_option("directory", "/local/job4712/n02"))
    assert first.isdisjoint(
        identities("fio-cache", with_option("directory", "/lustre/job4711/n01"))
    )
    devices = (with_option("filename", f"/dev/nvme{number}n1") for number in (0, 1))
    assert len(set.union(*(identities("fio-cache", each) for each in devices))) == 4


@pytest.mark.fault("different-jobs-in-one-group")
@pytest.mark.parametrize("metric", ["write", "read"])
def test_a_group_of_different_jobs_is_invalid(metric: str) -> None:
    document = json.loads(output_sample(FIO)[output_sample(FIO).index("{") :])
    for job in document["jobs"]:
        for direction in ("write", "read"):
            for name in ("io_bytes", "io_kbytes", "bw_bytes", "bw", "total_ios", "iops"):
                job[direction][name] *= 2
    readings = readings_of("fio-cache", json.dumps(document, indent=2))
    found = [reading for reading in readings if reading.metric == metric]
    assert found
    assert {reading.reason.code for reading in found} == {"reader-contradiction"}


def test_no_sample_has_a_moment_or_a_host_as_a_setting() -> None:
    for path in sorted(SAMPLES.glob("*.expected.json")):
        case = json.loads(path.read_text(encoding="utf-8"))[0]["case"]
        name = next(each.name for each in SAMPLES.glob(f"{path.name.split('.expected')[0]}.[tj]*"))
        for reading in readings_of(case, output_sample(name)):
            words = {f"{value}" for value in reading.settings.values()}
            assert not {word for word in words if "2026" in word or word == "vm"}, name
