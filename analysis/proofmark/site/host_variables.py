"""The variables of the hosts of an inventory, as Ansible merges and templates them.

Ansible merges the variables of each host anew. The hosts of one kind share one merge.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class HostVariables:
    """Reads variables of hosts.

    Hosts of one kind are in the same groups, and have the same variables in the files of hosts.
    A host is of no kind if anything else gives it variables: a file of ``host_vars``, another
    plug-in, or a fact.
    """

    def __init__(self, manager: Any, variables: Any, loader: Any) -> None:
        """Read from Ansible's ``InventoryManager``, ``VariableManager`` and ``DataLoader``."""
        self._sources = manager._sources
        self._variables = variables
        self._loader = loader
        self._kinds: dict[tuple[str, ...], tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
        """The variables in the files of hosts, and all variables, of the first host of a kind."""

    def of(self, host: Any, names: tuple[str, ...]) -> dict[str, Any]:
        """Return the variables of `host` in `names`. Their templates are filled in.

        Raises:
            AnsibleError: a variable cannot be templated.
        """
        scope = self._like(host)
        kept = {key: scope[key] for key in names if key in scope}
        if any("{" in str(value) for value in kept.values()):  # Templating is slow.
            from ansible.template import Templar

            scope = self._variables.get_vars(host=host)
            kept = Templar(loader=self._loader, variables=scope).template(kept)
        return dict(plain(kept))

    def _like(self, host: Any) -> Mapping[str, Any]:
        """Return the variables of a host of the kind of `host`, before they are templated."""
        if self._is_alone(host):
            own: Mapping[str, Any] = self._variables.get_vars(host=host)
            return own
        kind = tuple(group.name for group in host.groups)
        declared, merged = self._kinds.get(kind, ({}, {}))
        if not merged or declared != host.vars:
            declared, merged = host.vars, self._variables.get_vars(host=host)
            self._kinds[kind] = declared, merged
        return merged

    def _is_alone(self, host: Any) -> bool:
        """Return whether facts or plug-ins give variables to `host`."""
        from ansible.vars.plugins import get_vars_from_inventory_sources, get_vars_from_path

        of, loader = self._variables, self._loader
        remembered = host.name in of._vars_cache or host.name in of._nonpersistent_fact_cache
        if remembered or of._fact_cache.contains(host.name):
            return True
        beside = loader.get_basedir()
        return bool(
            get_vars_from_inventory_sources(loader, self._sources, [host], "task")
            or (of.safe_basedir and get_vars_from_path(loader, beside, [host], "task"))
        )


def plain(value: Any) -> Any:
    """Return `value` in the types of Python.

    Ansible's values are of subclasses with tags. The strict types of pydantic refuse them.
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value
