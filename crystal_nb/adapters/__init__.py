"""The registry: adapters by name, built-ins first, in the order in which they are imported."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from types import MappingProxyType

from crystal_nb.adapters import claude_code, codex, copilot, cursor, gemini, plugins, trae
from crystal_nb.adapters.base import SourceAdapter
from crystal_nb.adapters.usable import usable
from crystal_nb.errors import DuplicateAdapterWarning, UnknownAdapterError

__all__ = ["add_to", "for_profile", "get_adapter", "register", "registered", "versions"]

_REGISTRY: dict[str, SourceAdapter] = {}
_VERSIONS: dict[str, SourceAdapter] = {}
"""Released versions of the built-ins, oldest first."""


def register(adapter: SourceAdapter) -> SourceAdapter:
    """Add an adapter under its name.

    A name that is taken keeps its place in the order and gets the new adapter, with a
    `DuplicateAdapterWarning`, as pinned.

    Returns
    -------
    SourceAdapter
        The adapter itself.

    Raises
    ------
    AdapterError
        If it lacks what the importer needs of it.
    """
    return add_to(_REGISTRY, adapter)


def add_to(registry: dict[str, SourceAdapter], adapter: SourceAdapter) -> SourceAdapter:
    """`register` for a registry of one's own."""
    if usable(adapter).name in registry:
        warnings.warn(
            f"adapter {adapter.name!r} was registered already; replaced", DuplicateAdapterWarning, stacklevel=3
        )
    registry[adapter.name] = adapter
    return adapter


def get_adapter(name: str) -> SourceAdapter:
    """The adapter of that name, or that released version of a built-in.

    Raises
    ------
    UnknownAdapterError
        If there is none; it carries the known names.

    >>> get_adapter("codex").parser_version, get_adapter("codex@1").parser_version
    ('codex@1', 'codex@1')
    """
    if isinstance(name, str) and name not in _REGISTRY and name not in _VERSIONS:
        _load_plugins()
    try:
        return _VERSIONS[name] if "@" in name and name not in _REGISTRY else _REGISTRY[name]
    except (KeyError, TypeError):
        known = [*_REGISTRY, *_VERSIONS] if "@" in str(name) else _REGISTRY
        raise UnknownAdapterError(name, known) from None


def versions() -> Mapping[str, SourceAdapter]:
    """Released versions of the built-ins, such as ``codex@1``, read-only.

    >>> "codex@1" in versions()
    True
    """
    return MappingProxyType(_VERSIONS)


def for_profile(profile: str) -> Mapping[str, SourceAdapter]:
    """The registered adapters, by the profile ``careful`` the built-ins in their newest version.

    >>> list(for_profile("chatcrystal")) == list(registered())
    True
    """
    if profile != "careful":
        return registered()
    newest = {adapter.name: adapter for adapter in _VERSIONS.values()}
    return {name: newest[name] if adapter in _VERSIONS.values() else adapter for name, adapter in _REGISTRY.items()}


def registered() -> Mapping[str, SourceAdapter]:
    """All registered adapters by name, read-only and live; those of other packages are loaded now.

    >>> list(registered())[:3]
    ['claude-code', 'codex', 'cursor']
    """
    _load_plugins()
    return MappingProxyType(_REGISTRY)


_asked_for_plugins = False


def _load_plugins() -> None:
    """Register what other packages announce, once; a name that is taken stays whose it is."""
    global _asked_for_plugins
    if _asked_for_plugins:
        return
    _asked_for_plugins = True
    try:
        _add_plugins()
    except KeyboardInterrupt:  # those that were not reached are asked for the next time
        _asked_for_plugins = False
        raise


def _add_plugins() -> None:
    for adapter in plugins.announced():
        if _REGISTRY.get(adapter.name) is adapter:
            continue
        if adapter.name in _REGISTRY:
            plugins.warn(f"adapter {adapter.name!r} of another package left out: the name is taken")
        else:
            add_to(_REGISTRY, adapter)


for _module in (claude_code, codex, cursor, trae, copilot, gemini):
    register(_module.ADAPTER)
    for _adapter in (_module.ADAPTER, *getattr(_module, "LATER", ())):
        _VERSIONS[_adapter.parser_version] = _adapter
