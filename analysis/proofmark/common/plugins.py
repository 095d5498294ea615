"""Plug-ins: classes of the kit, one module each, and classes that a site adds by entry points.

A module of the kit defines one plug-in, and its name is the plug-in's. A site's own plug-in is a
class that an installed package names in its entry points (Python Packaging User Guide, "Entry
points specification"); the kit is not changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from inspect import isabstract
from pkgutil import iter_modules
from typing import Generic, TypeVar

from proofmark.common.errors import bad_input, nearest

Base = TypeVar("Base")


@dataclass(frozen=True)
class Plugins(Generic[Base]):
    """The plug-ins of one kind.

    Attributes:
        base: the abstract base class.
        package: the package of the kit that contains them; also the group of the entry points.
        file: where a user names a plug-in, for messages.
        key: the key there.
    """

    base: type[Base]
    package: str
    file: str
    key: str = ""

    def names(self) -> list[str]:
        """Return the names of all plug-ins of this kind."""
        return sorted({*self._modules(), *self._entry_points()})

    def get(self, name: str) -> type[Base]:
        """Return the class of the plug-in `name`.

        Raises:
            BadInput: there is no such plug-in, or it is no concrete subclass of the base class.
        """
        if name in self._modules():
            return self._of_module(name)
        points = self._entry_points()
        if name not in points:
            hint = nearest(name, self.names())
            raise bad_input(self.file, self.key, f"{name!r}{hint}", ", ".join(self.names()))
        loaded = points[name].load()
        if not (isinstance(loaded, type) and issubclass(loaded, self.base)) or isabstract(loaded):
            found = f"{points[name].value}: no concrete subclass"
            raise bad_input(self.file, self.key, found, f"a subclass of {self.base.__qualname__}")
        return loaded

    def _modules(self) -> list[str]:
        folders = import_module(self.package).__path__
        return [module.name for module in iter_modules(folders) if not module.name.startswith("_")]

    def _entry_points(self) -> dict[str, EntryPoint]:
        return {point.name: point for point in entry_points(group=self.package)}

    def _of_module(self, name: str) -> type[Base]:
        module = import_module(f"{self.package}.{name}")
        (plugin,) = (
            each
            for each in vars(module).values()
            if isinstance(each, type)
            and issubclass(each, self.base)
            and each.__module__ == module.__name__
            and not isabstract(each)
        )
        return plugin
