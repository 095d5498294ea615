"""The instruction sets that programs need if they were built for a target of archspec.

A processor ends a program by SIGILL at the first instruction that it lacks, in the middle of a
step. A job therefore compares its nodes with the target before its first step: the script
``shell/fit.awk`` does so on the cluster, from the probes of the nodes. After an installation
`guard` compares the instructions of the programs themselves with the target.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from archspec.cpu import TARGETS, UnsupportedMicroarchitecture

from proofmark.common.errors import InputError, bad_input, nearest
from proofmark.common.processes import run_command
from proofmark.site.node.cpu import POWER

PERMITTED = {"pku", "flush_l1d", "tsc_adjust", "amx_bf16", "amx_int8", "amx_tile"}
"""Features that a kernel or a hypervisor permits, or hides. No compiler uses one by itself."""
_LINUX_NAMES = {"sse3": "pni"}
"""Names in ``/proc/cpuinfo`` of the instruction sets for which archspec uses another name."""


def target_requirements(target: str) -> str:
    """Return the line that ``fit.awk`` reads: what programs built for `target` need.

    It has the target, the machine, the generation of POWER (9 for POWER9), else 0, and the flags of
    ``/proc/cpuinfo``, sorted; none for POWER, which the generation describes.

    Raises:
        BadInput: archspec has no such target.
    """
    if target not in TARGETS:
        hint = nearest(target, TARGETS)
        raise bad_input("software.json", "target", f"{target!r}{hint}", "an archspec name")
    known = TARGETS[target]
    machine = known.family.name
    needed = known.features - PERMITTED if machine not in POWER else ()
    flags = sorted(_LINUX_NAMES.get(word, word) for word in needed)
    return " ".join([target, machine, str(known.generation), *flags])


def gcc_flags(target: str, version: str) -> str:
    """Return the options of gcc `version` for the processor `target`, ``-march=knl -mtune=knl``.

    Raises:
        BadInput: archspec has no such target, or this gcc does not know it.
    """
    target_requirements(target)  # refuses an unknown one
    known = TARGETS[target]
    # The range 10.3:12.2 of archspec has 12.2, and by its own order not 12.2.0.
    for release in (version, ".".join(version.split(".")[:2])):
        with suppress(UnsupportedMicroarchitecture):
            return str(known.optimization_flags("gcc", release))
    accepted = ", ".join(str(entry["versions"]) for entry in known.compilers["gcc"])
    raise bad_input("gcc", target, version, f"gcc {accepted}")


def controller_gcc() -> str:
    """Return the version of the ``gcc`` in PATH, ``12.2.0``; empty if there is none."""
    gcc = shutil.which("gcc")
    done = gcc and run_command([gcc, "-dumpfullversion"])
    return done.stdout.strip() if done and done.returncode == 0 else ""


INSTRUCTIONS = {
    "avx": r"\bv[a-z]\w+\s.*%[xyz]mm",
    "fma": r"\bvfn?m(?:add|sub)\w*\d{3}[ps][ds]\b",
    "avx2": r"\bvp(?:add|sub|and|or|xor|mul|s[lr]l)\w*\s.*%ymm|\bvperm(?:q|d|p[ds])\s",
    "bmi2": r"\b(?:s[ah][lr]x|rorx|bzhi|mulx|pdep|pext)[lq]?\s",
    "avx512f": r"\bv\w+\s.*%zmm",
    "avx512vl": r"\bv\w+\s.*%ymm(?:1[6-9]|2\d|3[01]|\d+\{%k)",
    "avx512dq": r"\bv(?:andn?|x?or)p[ds]\s.*%zmm|\bv(?:extract|insert)[fi](?:64x2|32x8)\s"
    r"|\bvcvtt?(?:p[ds]2u?qq|u?qq2p[ds])\s|\bkmovb\s",
    "avx512bw": r"\bkmov[dq]\s|\bvmovdqu(?:8|16)\s|\bvp(?:add|sub)[bw]\s.*%zmm",
    "avx512er": r"\bv(?:exp2|rcp28|rsqrt28)[ps][sd]\b",
    "avx512pf": r"\bv(?:gather|scatter)pf[01][dq]p[sd]\b",
}
"""Instructions that gcc gives a program, by the CPU feature of archspec (Intel SDM, volume 2).

Their form is that of ``objdump -d --no-show-raw-insn``.
"""
_CALCULATION = re.compile(r"\b(?:add|sub|mul|div)([ps])[ds]\s")
"""Floating point of SSE, packed or scalar; with AVX gcc encodes it as AVX."""
ENOUGH = 24
"""Instructions of one kind in a program that measures. Others have fewer: a shell has 16."""
BEYOND_PHI = {"avx512bw", "avx512dq", "avx512vl"}
"""What AVX-512 has in all processors but the Xeon Phi."""
_RECORDED = re.compile(rb"-m(?:arch|cpu)=[\w.+-]+")
"""An option that gcc recorded (``-frecord-gcc-switches``, ``-g``) or a program prints."""


def guard(target: str, programs: Iterable[Path]) -> Iterator[InputError]:
    """Yield the signs that programs were built for another processor than `target`.

    The signs are the options that gcc recorded. Without any they are the instructions, on x86-64:
    some processors have none of their own that gcc uses, such as zen2 and zen3, and look alike. A
    file that `objdump` cannot read, such as a script, has no sign.

    Raises:
        BadInput: archspec has no such target.
    """
    if target not in TARGETS:
        raise bad_input("--target", "", f"{target}{nearest(target, TARGETS)}", "an archspec name")
    known = TARGETS[target]
    accepted = f"a program for {target}"
    entries = known.compilers.get("gcc", ())
    options = " ".join(each["flags"].format(name=each.get("name", target)) for each in entries)
    for program in programs:
        recorded = {option.decode() for option in _RECORDED.findall(program.read_bytes())}
        if others := recorded.difference(options.split()):
            yield InputError(f"{program}", "gcc", ", ".join(sorted(others)), accepted)
        if not recorded and known.family.name == "x86_64" and shutil.which("objdump"):
            listing = run_command(["objdump", "-d", "--no-show-raw-insn", f"{program}"]).stdout
            for sign in signs_of_another(listing, frozenset(known.features)):
                yield InputError(f"{program}", "", sign, accepted)


def signs_of_another(disassembly: str, features: frozenset[str]) -> Iterator[str]:
    """Yield the signs that instructions of x86-64 are not those of a processor with `features`.

    A program that asks for the processor itself (cpuid) has code for several ones, and no sign.
    """
    if re.search(r"\bcpuid\b", disassembly):
        return
    used = {name: re.search(rule, disassembly, re.M) for name, rule in INSTRUCTIONS.items()}
    for name, found in used.items():
        if found and name not in features:
            yield f"{found[0].split()[0]} of {name}"
    wide, widest = re.search("%[yz]mm", disassembly), disassembly.count("%zmm")
    plain = _CALCULATION.findall(disassembly)
    if "avx" in features and not used["avx"] and ("p" in plain or len(plain) >= ENOUGH):
        yield f"{len(plain)} calculations of SSE, and nothing of AVX"
    if not wide or "avx512er" in features or "avx" not in features:
        return
    if "vzeroupper" not in disassembly:
        yield "wide registers without vzeroupper, as gcc writes only for mic_knl"
    elif features >= BEYOND_PHI and widest >= ENOUGH and not any(map(used.get, BEYOND_PHI)):
        yield f"zmm registers, and nothing of {', '.join(sorted(BEYOND_PHI))}: as for mic_knl"
