"""An MPI library as it is installed: its release, what it was built with, its drivers of files.

The release is what the library itself states: `MPI_Get_library_version` needs no MPI_Init (MPI 4.1,
9.1.1). What it was built with is read from ``ompi_info``, ``mpichversion`` and ``mpiname``, and
from the texts of ROMIO in the library. What they do not state is unknown.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from proofmark.common.processes import environment_of, run_command

RELEASES = {
    "intel-oneapi-mpi": r"Intel\(R\) MPI Library (?:for .* Version )?(\d[\w.-]*)",
    "cray-mpich": r"CRAY MPICH version (\d[\w.-]*)",
    "mvapich2": r"MVAPICH2[\w-]* (?:Version\s*:\s*)?(\d[\w.-]*)",
    "mvapich": r"MVAPICH[\w-]* (?:Version\s*:\s*)?(\d[\w.-]*)",
    "openmpi": r"Open MPI v(\d[\w.-]*)",
    "mpich": r"MPICH Version:\s*(\d[\w.-]*)",
}
"""How each MPI states its release, by Spack's package; those derived from MPICH are first."""

LIBRARY = re.compile(r"libmpi(?:ch)?\.so|libmpi_(?:gnu|cray|intel|aocc|amd|nvidia)\w*\.so")
"""The file of the library that has `MPI_Get_library_version`, and not that of another language."""

INFO: Mapping[str, Sequence[Sequence[str]]] = {
    "openmpi": (("ompi_info", "--parsable", "--all"), ("prte_info", "--parsable")),
    "mpich": (("mpichversion",),),
    "mvapich": (("mpichversion",), ("mpiname", "-a")),
    "mvapich2": (("mpiname", "-a"),),
}
"""The programs that state how an MPI was built, by Spack's package. Others have none."""

STATES = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
text, length = ctypes.create_string_buffer(65536), ctypes.c_int()
library.MPI_Get_library_version(text, ctypes.byref(length))
print(text.value.decode(errors="replace"))
"""
"""A program of its own: a library that is damaged ends it, and not this process."""

TIMEOUT_S = 60.0
"""The time after which a library or a program that states nothing is left."""

ROMIO = ("ufs", "nfs", "testfs", "lustre", "gpfs", "panfs", "xfs", "daos", "ime", "pvfs2")
"""The drivers of ROMIO, ``ad_<name>`` in its sources."""

_FABRICS = {
    "psm": ("mtl:psm",),
    "psm2": ("mtl:psm2",),
    "verbs": ("btl:openib",),
    "mxm": ("mtl:mxm", "pml:yalla"),
    "ucx": ("pml:ucx", "osc:ucx", "btl:uct"),
    "ofi": ("mtl:ofi", "btl:ofi"),
    "fca": ("coll:fca",),
    "hcoll": ("coll:hcoll",),
    "ucc": ("coll:ucc",),
    "xpmem": ("smsc:xpmem",),
    "cma": ("smsc:cma",),
    "knem": ("smsc:knem",),
}
_SCHEDULERS = {
    **{name: f"ras:{name}" for name in ("alps", "lsf", "tm", "slurm", "loadleveler")},
    "sge": "ras:gridengine",
}
_CHANNELS = {
    "ch3:mrail": "mrail",
    "ch3:sock": "sock",
    "ch3:nemesis": "nemesis",
    "ch3:nemesis:ib": "nemesisib",
    "ch3:nemesis:ib,tcp": "nemesisibtcp",
    "ch3:nemesis:tcp,ib": "nemesistcpib",
    "ch3:nemesis:ofi": "nemesisofi",
}
"""The devices of MVAPICH2; its psm is one of two variants of Spack, which are not told apart."""


def release_of(text: str) -> tuple[str, str]:
    """Return Spack's package and the release in what an MPI states; empty if it is unknown."""
    for package, pattern in RELEASES.items():
        if found := re.search(pattern, text):
            return package, found[1].rstrip(".-")
    return "", ""


def same_release(one: str, other: str) -> bool:
    """Return whether two releases are equal as far as both state them: 2.3.7 and 2.3.7-1."""
    pairs = zip(re.split(r"[.-]", one), re.split(r"[.-]", other), strict=False)
    return bool(one and other) and all(first == second for first, second in pairs)


def library_states(library: Path) -> str:
    """Load a library in another process; return what it states, empty if it cannot be loaded."""
    return _output([sys.executable, "-P", "-c", STATES, str(library)], environment_of("python"))


def info_of(package: str, programs: Path, environment: Mapping[str, str] | None = None) -> str:
    """Return what the programs of `INFO` in the folder `programs` print; empty if none is there."""
    commands = [[str(programs / name), *words] for name, *words in INFO.get(package, ())]
    present = [words for words in commands if Path(words[0]).is_file()]
    return "\n".join(_output(words, environment) for words in present)


def _output(words: Sequence[str], environment: Mapping[str, str] | None) -> str:
    try:
        done = run_command(words, timeout_s=TIMEOUT_S, environment=environment)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def romio_drivers(content: bytes) -> tuple[str, ...]:
    """Return the drivers that a file of ROMIO has, by the names of their functions in its text."""
    found = {name.decode().lower() for name in re.findall(rb"\bADIOI?_([A-Z0-9]+)_", content)}
    return tuple(name for name in ROMIO if name in found)


def file_drivers(words: str) -> tuple[str, ...]:
    """Return the drivers of files, ``romio:ufs`` or ``ompio:lustre``, by names in the library."""
    romio = [f"romio:{name}" for name in romio_drivers(words.encode())]
    ompio = [f"ompio:{name}" for name in re.findall(r"\bmca_fs_(?!base)(\w+?)_component", words)]
    return (*sorted(ompio), *romio)


REPORTED = re.compile(r"^key = romio_filesystem_type\s+value = (\w+)", re.MULTILINE)
"""What ROMIO prints of the driver that it uses, with ROMIO_PRINT_HINTS."""


def reported_drivers(output: str) -> tuple[str, ...]:
    """Return the drivers by which ROMIO opened files, by its own words in an output."""
    return tuple(sorted({f"romio:{name.lower()}" for name in REPORTED.findall(output)}))


def writing_drivers(reported: Sequence[str], built: Sequence[str]) -> tuple[str, ...]:
    """Return the driver that wrote files by MPI-IO; empty if it is unknown.

    Args:
        reported: what the output of the program states.
        built: the drivers of its MPI. Open MPI writes by its own ones unless hints exclude them,
            and then ROMIO reports: a driver that is the only own one wrote.
    """
    own = [each for each in built if each.startswith("ompio:")]
    return tuple(reported) or (tuple(own) if len(own) == 1 else ())


def romio_files(info: str) -> Iterator[Path]:
    """Yield the files that can have ROMIO, by the output of ``ompi_info``."""
    paths = dict(re.findall(r"^path:(libdir|pkglibdir):(.+)$", info, re.MULTILINE))
    folder = Path(paths.get("pkglibdir", "/nonexistent"))
    yield from sorted(folder.glob("mca_io_romio*.so"))
    libdir = Path(paths.get("libdir", "/nonexistent"))
    yield from (path for path in [libdir / "libmpi.so"] if path.is_file())


def built_variants(package: str, version: str, info: str, drivers: Sequence[str] = ()) -> str:
    """Return the variants of Spack that the output of the programs of `INFO` states.

    Args:
        version: the release; the output of another release states nothing.
        drivers: the drivers of ROMIO; empty if they are not known.
    """
    if package == "openmpi":
        words = _of_openmpi(version, info, drivers)
    elif package in ("mpich", "mvapich", "mvapich2"):
        words = _of_mpich(package, version, info)
    else:
        words = []
    return " ".join(words)


def _of_openmpi(version: str, info: str, drivers: Sequence[str]) -> list[str]:
    stated = re.search(r"^ompi:version:full:(\S+)$", info, re.MULTILINE)
    if not stated or not same_release(stated[1], version):
        return []
    parts = {f"{kind}:{name}" for kind, name in re.findall(r"^mca:(\w+):(\w+):", info, re.M)}
    words = [_set("fabrics", [name for name, own in _FABRICS.items() if parts & set(own)])]
    managers = [name for name, part in sorted(_SCHEDULERS.items()) if part in parts]
    if any(part.startswith("ras:") for part in parts):  # from release 5 on, prte_info has them
        words.append(_set("schedulers", managers))
        if "slurm" in managers and version.partition(".")[0] in "234":
            words.append(_switch("pmi", bool(parts & {"pmix:s1", "pmix:s2"})))
    romio = any(part.startswith("io:romio") for part in parts)
    words.append(_switch("romio", romio))
    if romio and drivers:
        words.append(_set("romio-filesystem", drivers))
    words += [_switch("lustre", "fs:lustre" in parts), _switch("gpfs", "fs:gpfs" in parts)]
    if cuda := re.search(r"mpi_built_with_cuda_support:value:(\w+)", info):
        words.append(_switch("cuda", cuda[1] == "true"))
    return words


def _of_mpich(package: str, version: str, info: str) -> list[str]:
    """Return the variants that the words of a ``configure`` state, and those of its defaults."""
    named, stated = release_of(info)
    if named != package or not same_release(version, stated):
        return []
    words: list[str] = []
    device = re.search(r"\b(ch[34](?::[a-z:,]+)?)", info)
    given = dict(re.findall(r"--((?:with|without|enable|disable)-[\w-]+)(?:=([^\s'\"]*))?", info))
    if package == "mvapich2":
        if device and device[1] in _CHANNELS:
            words.append(f"fabrics={_CHANNELS[device[1]]}")
    elif device:
        kind, _, rest = device[1].partition(":")
        network = next((name for name in ("ucx", "ofi", "mxm", "tcp") if name in rest), "")
        if package == "mpich":
            words.append("device=ch3:sock" if device[1] == "ch3:sock" else f"device={kind}")
        if network and (package == "mpich" or network in ("ucx", "ofi")):
            words.append(f"netmod={network}")
    words += _mvapich(given) if package != "mpich" else _mpich(given)
    for option in ("with", "enable"):
        if (value := _given(given, option, "cuda")) is not None and package != "mvapich":
            words.append(_switch("cuda", value))
    return words


def _mpich(given: Mapping[str, str]) -> list[str]:
    words = [_switch("romio", _given(given, "enable", "romio") is not False)]
    words.append(_switch("hydra", "hydra" in given.get("with-pm", "hydra")))
    if (slurm := _given(given, "with", "slurm")) is not None:
        words.append(_switch("slurm", slurm))
    if _given(given, "with", "pmix") or given.get("with-pmi") == "pmix":
        words.append("pmi=pmix")
    else:
        known = {"simple": "pmi", "pmi": "pmi", "pmi2/simple": "pmi2", "pmi2": "pmi2"}
        known |= {"cray": "cray", "": "default", "default": "default"}
        asked = given.get("with-pmi", "")
        words += [f"pmi={known[asked]}"] if asked in known else []
    return words


def _mvapich(given: Mapping[str, str]) -> list[str]:
    words = []
    systems = set(given.get("with-file-system", "").replace("+", " ").replace(",", " ").split())
    if kept := sorted(systems & {"lustre", "gpfs", "nfs", "ufs"}):
        words.append(_set("file_systems", kept))
    if given.get("enable-threads") in ("single", "funneled", "serialized", "multiple"):
        words.append(f"threads={given['enable-threads']}")
    managers = set(given.get("with-pm", "").replace(":", " ").replace(",", " ").split())
    if kept := sorted(managers & {"slurm", "hydra", "gforker", "remshell"}):
        words.append(_set("process_managers", kept))
    return words


def _given(given: Mapping[str, str], yes: str, name: str) -> bool | None:
    """Return whether ``configure`` got ``--with-name``; None if it got neither it nor its denial.

    A later word replaces an earlier one only under the same name; the denial decides.
    """
    denial = {"with": "without", "enable": "disable"}[yes]
    if f"{denial}-{name}" in given or given.get(f"{yes}-{name}") == "no":
        return False
    return True if f"{yes}-{name}" in given else None


def _set(name: str, values: Sequence[str]) -> str:
    return f"{name}={','.join(values) or 'none'}"


def _switch(name: str, on: bool) -> str:
    return f"{'+' if on else '~'}{name}"
