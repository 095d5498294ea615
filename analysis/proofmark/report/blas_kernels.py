"""Which kernel the BLAS chose, which one the processor deserves, and what each of them measured."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from proofmark.judge.verdict import Result
from proofmark.report.drawing.ticks import gigaflops
from proofmark.report.page import Block, Cell, Column, table
from proofmark.report.results import name
from proofmark.report.run_data import RunData
from proofmark.report.text import number, pairs
from proofmark.software.blas import AS_INSTALLED, RIGHT
from proofmark.software.software import BLAS_KERNEL, Package, Software

_BOUND_BY_BLAS = re.compile(r"rmax|hpl|dgemm")


def wanted_kernels(software: Software | None) -> dict[str, str]:
    """Return by choice the kernel that the program's BLAS is to take there."""
    wanted: dict[str, str] = {}
    for package in software.packages.values() if software else ():
        for choice, environment in package.variants.get(BLAS_KERNEL, {}).items():
            kernel = ", ".join(environment.values()) or _by_itself(package)
            if kernel:
                wanted.setdefault(choice, kernel)
    return wanted


def _by_itself(package: Package) -> str:
    for program in package.programs.values():
        if program.blas:
            return program.blas.chosen or program.blas.built_for or ""
    return ""


def kernels(material: RunData) -> dict[str, str]:
    """Return by choice the kernel that was used: what the outputs say, else what was wanted."""
    said = {choice: " and ".join(names) for choice, names in material.kernels.items() if names}
    return {**wanted_kernels(material.software), **said}


def block(material: RunData) -> list[Block]:
    """Return the comparison of the choices, where there are several, and what is to be said.

    Nothing where no step had a choice.
    """
    chosen = material.verdict.about(lambda record: BLAS_KERNEL in record.parameters)
    compared = _compared(chosen)
    if not compared:
        return []
    used = kernels(material)
    choices = sorted(
        {choice for values in compared.values() for choice in values},
        key=lambda choice: (choice != AS_INSTALLED, choice != RIGHT, choice),
    )
    said = tuple(_sentences(material, used))
    title = "BLAS kernel: chosen against right"
    if len(choices) < 2:
        return [Block(titles=(title,), paragraphs=said)] if said else []
    columns: list[Column | str] = [
        "Figure",
        "Node",
        *(Column(_title(choice, used), "number") for choice in choices),
        Column("Gain", "number"),
    ]
    rows: list[list[Cell | str]] = [
        [
            Cell(figure, "strong", details=(pairs(json.loads(setting)),)),
            node,
            *(_cell(values.get(choice)) for choice in choices),
            _gain(values),
        ]
        for (figure, node, setting), values in compared.items()
    ]
    caption = "The same program with the kernel that it takes by itself, and with the right one"
    return [
        Block(
            titles=(title,),
            paragraphs=said,
            tables=(table(caption, columns, rows, rest="All stand in records.parquet."),),
        )
    ]


def _compared(
    results: Iterable[Result],
) -> dict[tuple[str, str, str], dict[str, Result]]:
    """Return results by choice, by figure, node and the other parameters."""
    compared: dict[tuple[str, str, str], dict[str, Result]] = {}
    for result in results:
        record = result.record
        if not _BOUND_BY_BLAS.search(record.metric):
            continue
        if result.verdict == "INVALID" or gigaflops(record) is None:
            continue
        others = {key: value for key, value in record.parameters.items() if key != BLAS_KERNEL}
        key = (name(result), record.node, json.dumps(others, sort_keys=True))
        compared.setdefault(key, {})[str(record.parameters[BLAS_KERNEL])] = result
    return compared


def _title(choice: str, used: Mapping[str, str]) -> str:
    return f"{choice}: {used[choice]}" if choice in used else choice


def _cell(result: Result | None) -> str:
    if result is None or result.record.value is None:
        return "not measured"
    return f"{number(result.record.value)} {result.record.unit}"


def _gain(values: Mapping[str, Result]) -> str:
    own, right = values.get(AS_INSTALLED), values.get(RIGHT)
    if own is None or right is None or not own.record.value or right.record.value is None:
        return "–"
    return f"{right.record.value / own.record.value:.2f} ×"


def _sentences(material: RunData, used: Mapping[str, str]) -> list[str]:
    said = []
    own, right = used.get(AS_INSTALLED), used.get(RIGHT)
    if own and right and own == right:
        said.append(
            f"The BLAS takes {own} by itself, which is the right kernel for this processor. "
            "A second measurement with the right kernel would repeat the same command."
        )
    elif own and right:
        said.append(
            f"By itself the BLAS takes {own}; the right one for this processor is {right}. "
            "Programs that are started without the setting get what the first column says."
        )
    for choice, wanted in wanted_kernels(material.software).items():
        names = material.kernels.get(choice, ())
        if names and {name.casefold() for name in names} != {wanted.casefold()}:
            said.append(f"{choice}: {wanted} was wanted, the output says {' and '.join(names)}.")
    return said
