"""fio, with and without `--client`: its document of JSON (fio's HOWTO, "JSON output"; stat.c)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from proofmark.cases.reader.agreement import Agreement
from proofmark.cases.reader.documents import at, first_of, truth, words_of
from proofmark.cases.reader.reader import Documents, Item, Reader, line, words

_LAYOUTS = ("single-shared-file", "file-per-process")
_WAYS = ("write", "read")
_WRITES = ("write", "randwrite", "rw", "readwrite", "randrw")
_READS = ("read", "randread", "rw", "randrw")
_NO_TIME_LEFT = (0, 2147483647)
"""The values of `eta` at the end. Documents of `--status-interval` have another one."""
_CHANGES_BYTES = (
    *("time_based", "runtime", "loops", "number_ios", "verify", "zonesize", "fill_device"),
    *("bssplit", "bsrange", "trim", "experimental_verify", "read_iolog", "file_append"),
    *("ramp_time", "filesize", "exitall", "exitall_on_error", "steadystate", "io_limit", "offset"),
)
"""The options with which a job moves other bytes than its size."""

_CHANGES_TRANSFERS = ("read_iolog", "bs_unaligned", "verify", "replay_align")
"""The options with which a request can have another size than that of the transfers."""
_COMPARED = {
    **{"kib": "io_kbytes", "ms": "runtime"},
    **{"rate": "bw_bytes", "requests": "total_ios", "iops": "iops"},
}
"""The numbers of a way that are only compared → their keys."""


def _is_partial(document: object) -> bool:
    """Return whether a job has time left."""
    left = (at(job, "eta") for job in _list(at(document, "jobs")))
    return any(each is not None and each not in _NO_TIME_LEFT for each in left)


def _items(document: object) -> Iterator[Item]:
    """Yield the jobs; those of each client, without their sum."""
    jobs = at(document, "jobs")
    if not truth(jobs):
        clients = _list(at(document, "client_stats"))
        jobs = [job for job in clients if at(job, "jobname") != "All clients"]
    common = _options(at(document, "global options"))
    for job in _list(jobs):
        own = _options(at(job, "job options"))
        if common is not None and own is not None:
            yield _item(job, {**common, **own})


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _options(value: object) -> Mapping[str, object] | None:
    """Return the options of a document, which may lack them; None for anything else."""
    if not truth(value):
        return {}
    return value if isinstance(value, Mapping) else None


def _item(job: object, options: Mapping[str, object]) -> Item:
    # The pattern may have the number of I/Os before the next offset, or a step: rw=write:8k.
    pattern = first_of(options.get("rw"), options.get("readwrite"), "read")
    values = {}
    idle = [way for way in _WAYS if _is_zero(at(job, way, "io_bytes"))]
    for metric, patterns in (("write", _WRITES), ("read", _READS)):
        moved = metric not in idle or len(idle) > 1  # rwmixread=100 writes nothing
        if moved and (not isinstance(pattern, str) or pattern.startswith(patterns)):
            values[metric] = (f"job.{metric}.bw", at(job, metric, "bw"))
    parameters = {
        **_amounts(job, options),
        **_transfers(options),
        **_ways(options),
        "pattern": pattern,
        "tasks": first_of(options.get("numjobs"), "1"),
        "client": at(job, "hostname"),
        "wrote": at(job, "write", "io_bytes"),
        "has_read": at(job, "read", "io_bytes"),
    }
    changed = any(truth(options.get(name)) for name in _CHANGES_TRANSFERS)
    if _is_zero(at(job, "error")) and not changed and {"bs", "blocksize"} & options.keys():
        parameters["request_bytes"] = parameters["transfer_bytes"]
    for way in _WAYS:
        parameters |= {f"{way}_{name}": at(job, way, key) for name, key in _COMPARED.items()}
    settings = {k: v for k, v in options.items() if k != "size" or truth(options.get("io_size"))}
    return Item(values, parameters, settings, tuple(_problems(job, options)))


def _amounts(job: object, options: Mapping[str, object]) -> dict[str, object]:
    """Return what each process moves. Without a size it is that of the existing file.

    A time-based job moves its files several times. A size in percent is that of a file or device.
    """
    share = words_of(options.get("size")).endswith("%")
    size = None if share else options.get("size")
    amount = first_of(options.get("io_size"), size)
    timed = options.get("time_based", "0") != "0"
    plain = _is_zero(at(job, "error")) and not any(truth(options.get(k)) for k in _CHANGES_BYTES)
    return {
        "block_bytes": None if timed else amount,
        "job_bytes": amount if plain else None,
        "file_bytes": size if timed else None,
        "size_share": options.get("size") if share else None,
        "runtime": options.get("runtime"),
    }


def _transfers(options: Mapping[str, object]) -> dict[str, object]:
    """Return the size of the transfers, or the word for sizes that are mixed."""
    block = first_of(options.get("bs"), options.get("blocksize"), "4k")
    mixed = first_of(options.get("bssplit"), options.get("bsrange"), "," in f"{block}" and block)
    return {
        "transfer_bytes": None if truth(mixed) else block,
        "transfer_sizes": mixed if truth(mixed) else None,
    }


def _ways(options: Mapping[str, object]) -> dict[str, object]:
    """Return how the requests are made, and where the data lie."""
    direct = options.get("direct", "1" if options.get("buffered") == "0" else "0")
    layout = options.get("description")
    if layout not in _LAYOUTS:  # the file options imply it
        layout = _LAYOUTS[0 if truth(options.get("filename")) else 1]
    return {
        "direct": "0" if direct == "0" else "1",
        "iodepth": first_of(options.get("iodepth"), "1"),
        "engine": first_of(options.get("ioengine"), "psync"),
        "sync": options.get("sync") if options.get("sync") != "0" else None,
        "fsync": first_of(options.get("fsync"), options.get("fdatasync")),
        "read_share": _read_share(options),
        "layout": layout,
    }


def _read_share(options: Mapping[str, object]) -> object:
    """Return the reads of a mixed pattern in percent; fio takes either option."""
    writes = words_of(options.get("rwmixwrite"))
    rest = f"{100 - int(writes)}" if writes.isdecimal() and len(writes) < 4 else None
    return first_of(options.get("rwmixread"), rest)


def _problems(job: object, options: Mapping[str, object]) -> Iterator[str]:
    if not _is_zero(at(job, "error")):
        yield "the job ended with an error"
    if options.get("kb_base") == "1000":
        yield "kb_base=1000: the suffixes of sizes mean something else"
    if all(_is_zero(at(job, way, "io_bytes")) for way in _WAYS):
        yield "the job moved no byte"
    tasks = first_of(options.get("numjobs"), "1")
    if tasks != "1" and "group_reporting" not in options:
        yield "each process reports by itself (no group_reporting)"


def _is_zero(value: object) -> bool:
    return value == 0 and not isinstance(value, bool)


def _rates(metric: str, moved: str) -> tuple[Agreement, ...]:
    # fio divides the bytes by the run time (show_ddir_status() in stat.c), and cuts the fraction. A
    # group of different jobs has the options of the first one and the bytes of all.
    share = f"{moved} / (wrote + has_read)"
    job = f"1000 * job_bytes * tasks / 1024 * {share} / {metric}_ms"
    exact = partial(Agreement, rounding=1, within=0.001)
    return (
        exact(metric, (f"1000 * {metric}_kib / {metric}_ms",)),
        exact(metric, (f"{metric}_rate / 1024",)),
        exact(f"{metric}_kib", (f"{moved} / 1024",)),
        exact(f"{metric}_iops", (f"1000 * {metric}_requests / {metric}_ms",)),
        Agreement(f"{metric}_kib", (f"{metric}_requests * request_bytes / 1024",), within=0.03),
        Agreement(metric, (job,), rounding=1, within=0.03),
    )


FIO = Reader(
    finds="fio job that writes or reads",
    benchmark="fio",
    units={"write": "KiB/s", "read": "KiB/s"},
    # A time-based job moves its files several times: then it has file_bytes,
    # not block_bytes. Sizes of transfers that are mixed (bsrange, bssplit,
    # bs=4k,64k) are a word.
    parameters={
        "pattern": "word",
        "block_bytes": "suffixed",
        "file_bytes": "suffixed",
        # Of a file or device: 100%.
        "size_share": "word",
        "runtime": "word",
        "transfer_bytes": "suffixed",
        "transfer_sizes": "word",
        "tasks": "int",
        "layout": "word",
        # 1: without the page cache (O_DIRECT).
        "direct": "word",
        # Requests in flight of each process, and how it makes them.
        "iodepth": "int",
        "engine": "word",
        # Writes that are made durable: sync=1 (O_SYNC), or an fsync after so many
        # writes.
        "sync": "word",
        "fsync": "word",
        # Reads of a mixed pattern, in percent.
        "read_share": "word",
        # With --client: the host of each figure.
        "client": "word",
    },
    documents=Documents(
        keys=("fio version",),
        stated=frozenset({"pattern", "tasks", "direct", "iodepth", "engine", "layout"}),
        items=_items,
        is_partial=_is_partial,
        refused=(line(r"fio: terminating on signal.*"),),
    ),
    aside={
        **dict.fromkeys([f"{way}_{name}" for way in _WAYS for name in _COMPARED], "printed"),
        **{"job_bytes": "suffixed", "request_bytes": "suffixed"},
        "wrote": "int",
        "has_read": "int",
    },
    # Read by other rules, or without an effect on a figure.
    no_setting=words(
        "rw readwrite bs blocksize io_size runtime time_based numjobs iodepth"
        " ioengine direct buffered sync fsync fdatasync rwmixread rwmixwrite bssplit bsrange"
        " description name stonewall wait_for new_group group_reporting filename_format"
        " write_bw_log write_lat_log write_iops_log write_hist_log log_avg_msec"
    ),
    agree=(*_rates("write", "wrote"), *_rates("read", "has_read")),
)
