"""Plug-ins: classes of the kit, of its optional packages, and of a site.

A plug-in of the kit is a class in a module of the folder of its kind, and no other file names it.
The name of the module is the name of the plug-in. If the modules of a kind have several plug-ins,
each class has its name in its attribute `name`. A package below ``proofmark/packages`` lists its
plug-ins in `PLUGINS` of its ``__init__.py``, by group. A plug-in of a site is a class that an
installed distribution lists in its entry points (Python Packaging User Guide, "Entry points
specification"). A name of the kit counts before the same name of a site.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from inspect import isabstract
from pkgutil import iter_modules
from typing import Any, Generic, TypeVar

from proofmark.common.errors import bad_input, nearest
from proofmark.common.text import one_line

Base = TypeVar("Base")

PluginTable = Mapping[str, Mapping[str, str]]
"""By group, the name of each plug-in of a package and its object: ``module:Class``, or ``:NAME`` if
the ``__init__.py`` itself has the object."""


PACKAGES = "proofmark.packages"
"""The folder of the optional packages of the kit. A package that is removed is not found here."""


@cache
def _of_sites(group: str, _path: tuple[str, ...]) -> EntryPoints:
    """Return the entry points of installed distributions; the search takes 10 ms."""
    return entry_points(group=group)


@cache
def _of_packages(group: str) -> tuple[EntryPoint, ...]:
    """Return what the optional packages add to a group. Only their ``__init__.py`` is imported."""
    found: list[EntryPoint] = []
    for module in iter_modules(import_module(PACKAGES).__path__):
        package = import_module(f"{PACKAGES}.{module.name}")
        for name, value in package.PLUGINS.get(group, {}).items():
            path = value if value.startswith(":") else f".{value}"
            found.append(EntryPoint(name, f"{package.__name__}{path}", group))
    return tuple(found)


@cache
def _modules(package: str) -> frozenset[str]:
    """Return the names of the modules of a folder of the kit."""
    path = getattr(import_module(package), "__path__", ())
    return frozenset(module.name for module in iter_modules(path))


def _defined(module: str, base: type) -> tuple[type[Any], ...]:
    """Return the plug-ins that a module of the kit defines."""
    return tuple(
        each
        for each in vars(import_module(module)).values()
        if isinstance(each, type)
        and issubclass(each, base)
        and each.__module__ == module
        and not isabstract(each)
    )


def installed(group: str) -> dict[str, EntryPoint]:
    """Return what optional packages and sites add to a group, by name."""
    points = (*_of_sites(group, tuple(sys.path)), *_of_packages(group))
    return {point.name: point for point in points}


@dataclass(frozen=True)
class Plugins(Generic[Base]):
    """The plug-ins of one kind.

    Attributes:
        base: the abstract base class.
        package: the package of the kit that contains them; also the group of the entry points. A
            module has only plug-ins of optional packages and sites.
        file: where a user names a plug-in, for messages.
        named: whether each class of the kit has its name in its attribute `name`.
    """

    base: type[Base]
    package: str
    file: str
    key: str = ""
    named: bool = False

    def names(self) -> list[str]:
        """Return the names of all plug-ins of this kind."""
        return sorted({*self._of_kit, *installed(self.package)})

    def get(self, name: str) -> type[Base]:
        """Return the class of the plug-in `name`.

        Raises:
            BadInput: there is no plug-in `name`, its import fails, or it is not a concrete subclass
                of the base class.
        """
        if name in self._of_kit:
            plugins = _defined(f"{self.package}.{self._of_kit[name]}", self.base)
            (own,) = (each for each in plugins if not self.named or each.name == name)
            return own
        points = installed(self.package)
        if name not in points:
            problem = f"{name!r}{nearest(name, self.names())}"
            raise bad_input(self.file, self.key, problem, ", ".join(self.names()))
        point, accepted = points[name], f"a concrete subclass of {self.base.__qualname__}"
        try:
            plugin = point.load()
        except Exception as error:  # the code of a site: any error of its import is one of its name
            problem = f"{point.value}: {type(error).__name__}: {one_line(str(error))}"
            raise bad_input(self.file, self.key, problem, accepted) from error
        if not (isinstance(plugin, type) and issubclass(plugin, self.base)) or isabstract(plugin):
            problem = f"{point.value}: not a concrete subclass"
            raise bad_input(self.file, self.key, problem, accepted)
        return plugin

    @property
    def _of_kit(self) -> Mapping[str, str]:
        """The module of each plug-in of the kit, by the name of the plug-in."""
        modules = _modules(self.package)
        if not self.named:
            return {module: module for module in modules}
        found: dict[str, str] = {}
        for module in modules:
            plugins = _defined(f"{self.package}.{module}", self.base)
            found |= {each.name: module for each in plugins}
        return found
