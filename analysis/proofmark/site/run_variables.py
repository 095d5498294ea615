"""Run-time variables of MPI: which are refused, and which the kit does not know.

The rules are in ``data/run_variables.yml``, each with its source.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from proofmark.cases.vocabulary import Text, Variable
from proofmark.common.errors import closest
from proofmark.common.message import NOTHING, Message, joined
from proofmark.common.strict_model import StrictModel
from proofmark.common.yaml_models import shipped_data

MPIS_OF_LAUNCHER = {"openmpi": ("openmpi",), "hydra": ("intel", "mpich", "mvapich")}
"""The families of MPI that a launcher starts. The other launchers start any."""


class Refused(StrictModel):
    """Patterns of names that must not be set, and the reason."""

    names: tuple[str, ...]
    why: Text


class ReadingLibrary(StrictModel):
    """A library that reads variables: the prefix, and patterns of the rest of the known names.

    ``mpis`` are the families of MPI that use it; empty: it does not depend on the MPI.
    """

    library: Text
    prefix: Text
    mpis: tuple[str, ...]
    names: tuple[str, ...]
    source: Text

    def knows(self, name: str) -> bool:
        """Return whether the variable `name`, which has the prefix, is known."""
        rest = name.removeprefix(self.prefix)
        for pattern in self.names:
            if fnmatchcase(rest, pattern) or fnmatchcase(f"{rest}_", pattern):
                return True
        return False


class _Table(StrictModel):
    transports: tuple[Variable, ...]
    refused: tuple[Refused, ...]
    libraries: tuple[ReadingLibrary, ...]


@cache
def _table() -> _Table:
    return shipped_data("proofmark.site", "run_variables.yml", _Table)


def _value(given: object) -> object:
    """Return a number as its text. A YAML truth value is refused: its text is not known."""
    if isinstance(given, bool):
        raise ValueError(f"quotes around the value: YAML reads it as {given}")
    return str(given) if isinstance(given, int | float) else given


def _accepted(environment: dict[str, str]) -> dict[str, str]:
    for name in environment:
        if why := _refusal(name):
            raise ValueError(f"other names than {name}: {why}")
    return environment


def _refusal(name: str) -> str:
    rules = _table().refused
    refusing = (rule.why for rule in rules if any(fnmatchcase(name, each) for each in rule.names))
    return next(refusing, "")


RunEnvironment = Annotated[
    dict[
        Variable,
        Annotated[
            str,
            BeforeValidator(_value, json_schema_input_type=str | int | float),
            Field(pattern=r"^[^\x00-\x1f\x7f]*$"),
        ],
    ],
    AfterValidator(_accepted),
]
"""Variables by name. The values are data: they have no control characters, and are quoted."""


def of_mpi(name: str) -> bool:
    """Return whether an MPI, or a library that only MPIs use, reads the variable `name`."""
    return any(each.mpis and name.startswith(each.prefix) for each in _table().libraries)


def transports(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of `environment` that choose the transport of an MPI."""
    return {name: environment[name] for name in _table().transports if name in environment}


def doubtful(names: Iterable[str], mpis: Collection[str]) -> Iterator[Message]:
    """Yield a warning for each variable that is not known, or that none of `mpis` reads.

    `mpis` are the possible families of MPI; empty: any.
    """
    for name in (name for name in names if not _refusal(name)):  # a case may set those
        readers = [each for each in _table().libraries if name.startswith(each.prefix)]
        library = max(readers, key=lambda each: len(each.prefix), default=None)
        if library is None:
            yield Message("variable-of-none", name=name)
        elif library.mpis and mpis and not set(mpis) & set(library.mpis):
            yield Message(
                "variable-of-other", name=name, library=library.library, mpi=", ".join(sorted(mpis))
            )
        elif not library.knows(name):
            close = closest(name, {library.prefix + each.rstrip("_*") for each in library.names})
            near = Message("variable-near", name=close) if close else NOTHING
            unknown = Message("variable-unknown", name=name, library=library.library)
            yield joined((unknown, near))
